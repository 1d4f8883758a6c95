import { isIP } from 'node:net'

import ipaddr from 'ipaddr.js'

/** The wire server of one cloud provider: an address that is public by its range and answers inside only. */
const PUBLIC_BUT_INTERNAL = new Set(['168.63.129.16'])

/**
 * Whether an address belongs to the public internet. Everything the registries set apart is not: loopback, private,
 * link-local (where clouds keep their metadata), shared (CGNAT), multicast, documentation and reserved ranges. An IPv6
 * address that stands for an IPv4 one (mapped, translated, NAT64, 6to4, Teredo) is none either, whatever it carries.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || PUBLIC_BUT_INTERNAL.has(address)) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== 'unicast') return false
  // RFC 4291: only 2000::/3 is given out; the rest of what the library calls unicast is not assigned.
  return parsed.kind() === 'ipv4' || (parsed.toByteArray()[0] ?? 0) >> 5 === 1
}
