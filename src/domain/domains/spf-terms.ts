import { BlockList, isIP } from 'node:net'

/**
 * A term of an SPF policy: a mechanism or a modifier. `host` is a host name in lower case without the final dot, an
 * address, or empty; `bits` are the prefix lengths for IPv4 and IPv6; `allows` is whether matching senders pass.
 */
export type SpfTerm = {
  kind: 'all' | 'include' | 'a' | 'mx' | 'ptr' | 'ip4' | 'ip6' | 'exists' | 'redirect' | 'exp' | 'unknown='
  allows: boolean
  host: string
  bits: readonly [number, number]
}

const MODIFIER = /^([a-z][a-z0-9._-]*)=(.*)$/i
const MECHANISM = /^([+?~-]?)([a-z0-9]+)([:/].*)?$/i
const HOST = String.raw`(?:[!-$&-~]|%[%_-]|%\{[slodiphcrtv]\d{0,3}r?[.+,/_=-]*\})+?`
const BITS = String.raw`(0|[1-9]\d{0,2})`
const MODIFIER_HOST = new RegExp(`^${HOST}$`, 'i')
const ONE_HOST = new RegExp(`^:(${HOST})$`, 'i')
const HOST_AND_BITS = new RegExp(`^(?::(${HOST}))?(?:/${BITS})?(?://${BITS})?$`, 'i')
const ADDRESS = new RegExp(String.raw`^:([\da-f:.]+)(?:/${BITS})?$`, 'i')
const WHOLE = [32, 128] as const

/**
 * Parses a term of the policy of `name` (RFC 7208 4.6.1, 5, 6). Returns null for a syntax error, which makes receivers
 * reject the whole policy.
 */
export function readTerm(term: string, name: string): SpfTerm | null {
  const [, modifier, value = ''] = MODIFIER.exec(term) ?? []
  if (modifier !== undefined) {
    const kind = modifier.toLowerCase()
    if (kind !== 'redirect' && kind !== 'exp') return termOf('unknown=')
    return MODIFIER_HOST.test(value) ? termOf(kind, value) : null
  }
  const [, sign = '', written = '', rest = ''] = MECHANISM.exec(term) ?? []
  const read = readMechanism(written.toLowerCase(), rest, name)
  return read && { ...read, allows: sign === '' || sign === '+' }
}

function readMechanism(kind: string, rest: string, name: string): SpfTerm | null {
  switch (kind) {
    case 'all':
      return rest === '' ? termOf(kind) : null
    case 'ip4':
    case 'ip6': {
      const [, address = '', bits] = ADDRESS.exec(rest) ?? []
      if (kind === 'ip4') return isIP(address) === 4 ? withBits(termOf(kind, address), bits) : null
      return isIP(address) === 6 ? withBits(termOf(kind, address), undefined, bits) : null
    }
    case 'include':
    case 'exists':
    case 'ptr': {
      if (kind === 'ptr' && rest === '') return termOf(kind, name)
      const host = ONE_HOST.exec(rest)?.[1]
      return host === undefined ? null : termOf(kind, host)
    }
    case 'a':
    case 'mx': {
      const found = HOST_AND_BITS.exec(rest)
      return found && withBits(termOf(kind, found[1] ?? name), found[2], found[3])
    }
    default:
      return null
  }
}

function termOf(kind: SpfTerm['kind'], host = ''): SpfTerm {
  return { kind, allows: true, host: host.toLowerCase().replace(/\.$/, ''), bits: WHOLE }
}

function withBits(term: SpfTerm, bits4: string | undefined, bits6?: string): SpfTerm | null {
  const bits = [Number(bits4 ?? WHOLE[0]), Number(bits6 ?? WHOLE[1])] as const
  return bits[0] > WHOLE[0] || bits[1] > WHOLE[1] ? null : { ...term, bits }
}

/** Whether every sender that matches `inner` matches `outer`, as far as the terms show without DNS look-ups. */
export function covers(outer: SpfTerm, inner: SpfTerm): boolean {
  if (outer.kind === 'all') return true
  if (outer.kind !== inner.kind || outer.bits.some((bits, of) => bits > (inner.bits[of] ?? 0))) return false
  if (outer.kind !== 'ip4' && outer.kind !== 'ip6') return outer.host === inner.host
  const family = outer.kind === 'ip4' ? 'ipv4' : 'ipv6'
  const net = new BlockList()
  net.addSubnet(outer.host, outer.bits[outer.kind === 'ip4' ? 0 : 1], family)
  return net.check(inner.host, family)
}
