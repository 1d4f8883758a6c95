import type { DnsAnswer } from '../../ports/dns.ts'

/** The family of a receiver that no name server knows. */
export const UNKNOWN_FAMILY = 'unknown'
/** The family of a domain without MX records. */
export const NO_MX = 'no MX'

/** Returns the placeholder family of a domain whose family is not known yet; host names never contain "@". */
export function placeholderOf(domain: string): string {
  return `@${domain}`
}

/** Whether a family is such a placeholder. */
export function isPlaceholder(family: string): boolean {
  return family.startsWith('@')
}

const KNOWN: readonly (readonly [family: string, suffixes: readonly string[]])[] = [
  ['Google', ['google.com', 'googlemail.com']],
  ['Microsoft', ['outlook.com', 'hotmail.com', 'mx.microsoft']],
  ['Yahoo', ['yahoodns.net', 'yahoo.com']],
  ['Apple', ['icloud.com', 'apple.com']],
  ['Proton', ['protonmail.ch', 'proton.me']],
]
/** Second-level labels that registries share under country codes, such as `co` in `example.co.uk`. */
const SHARED_LABELS = new Set(['ac', 'co', 'com', 'edu', 'go', 'gov', 'ne', 'net', 'or', 'org'])

/** Returns the family of a receiver by its most preferred MX; null when no server answered. */
export function familyOf(answers: readonly DnsAnswer[]): string | null {
  const answer = answers.find((each) => 'records' in each)
  if (!answer || !('records' in answer)) return null
  const servers = answer.records.flatMap((record) => (record.type === 'MX' ? [record] : []))
  const [first] = servers.toSorted((one, other) => one.priority - other.priority)
  const host = (first?.exchange ?? '').toLowerCase().replace(/\.$/, '')
  if (host === '') return NO_MX
  const known = KNOWN.find(([, suffixes]) => suffixes.some((suffix) => isWithin(host, suffix)))
  return known ? known[0] : ownName(host)
}

function isWithin(host: string, suffix: string): boolean {
  return host === suffix || host.endsWith(`.${suffix}`)
}

/** Returns about the registered part of a host name, which is enough to tell providers apart. */
function ownName(host: string): string {
  const labels = host.split('.')
  const [second = '', top = ''] = labels.slice(-2)
  return labels.slice(top.length === 2 && SHARED_LABELS.has(second) ? -3 : -2).join('.')
}
