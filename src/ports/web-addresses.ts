import { isIP } from 'node:net'

import ipaddr from 'ipaddr.js'

/** The wire server of one cloud provider: its address is in a public range but only answers inside. */
const PUBLIC_BUT_INTERNAL = new Set(['168.63.129.16'])

/**
 * Returns whether an address belongs to the public internet. No address that the registries reserve does: loopback,
 * private, link-local (where clouds keep their metadata), shared (CGNAT), multicast, documentation and reserved ranges.
 * Neither does an IPv6 address that stands for an IPv4 one (mapped, translated, NAT64, 6to4, Teredo), whichever that
 * is.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || PUBLIC_BUT_INTERNAL.has(address)) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== 'unicast') return false
  // RFC 4291: only 2000::/3 is assigned; the library also calls the unassigned rest unicast.
  return parsed.kind() === 'ipv4' || (parsed.toByteArray()[0] ?? 0) >> 5 === 1
}
