import { BlockList, isIP } from 'node:net'

import type { Middleware } from 'koa'

/**
 * Makes `ctx.ip` the address a request really came from: behind proxies that are trusted, the last address of
 * X-Forwarded-For that is none of theirs. From anybody else the header is only a claim and does not count.
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

/** Without the prefix that IPv4 has on a socket that takes both kinds. */
function plain(address: string): string {
  return address.trim().replace(/^::ffff:(?=\d+\.)/i, '')
}
