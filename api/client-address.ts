import { BlockList, isIP } from 'node:net'

import type { Middleware } from 'koa'

/**
 * Sets `ctx.ip` to the client's address: behind trusted proxies, the last address in X-Forwarded-For that is not a
 * trusted proxy. From any other sender the header is ignored, because clients can forge it.
 */
export function readClientAddress(trustedProxies: readonly string[]): Middleware {
  const trusted = new BlockList()
  for (const entry of trustedProxies) {
    const [address = '', bits] = entry.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) trusted.addAddress(address, family)
    else trusted.addSubnet(address, Number(bits), family)
  }
  const isTrusted = (address: string) => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

  return async (ctx, next) => {
    let address = plain(ctx.req.socket.remoteAddress ?? '')
    const hops = ctx.get('x-forwarded-for').split(',').map(plain)
    while (isIP(address) !== 0 && isTrusted(address)) {
      const hop = hops.pop()
      if (hop === undefined || isIP(hop) === 0) break
      address = hop
    }
    ctx.request.ip = address
    await next()
  }
}

/** Removes the prefix of IPv4 addresses on dual-stack sockets. */
function plain(address: string): string {
  return address.trim().replace(/^::ffff:(?=\d+\.)/i, '')
}
