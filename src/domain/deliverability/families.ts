import type { DnsAnswer } from '../../ports/dns.ts'

/** Of a receiver that no name server told of. */
export const UNKNOWN_FAMILY = 'unknown'
/** Of a domain that names no mail server. */
export const NO_MX = 'no MX'

/** What stands for the family of a domain until a name server was asked; no host name holds an "@". */
export function strangerOf(domain: string): string {
  return `@${domain}`
}

/** Whether this stands for the family of a domain. */
export function isStranger(family: string): boolean {
  return family.startsWith('@')
}

const KNOWN: readonly (readonly [family: string, suffixes: readonly string[]])[] = [
  ['Google', ['google.com', 'googlemail.com']],
  ['Microsoft', ['outlook.com', 'hotmail.com', 'mx.microsoft']],
  ['Yahoo', ['yahoodns.net', 'yahoo.com']],
  ['Apple', ['icloud.com', 'apple.com']],
  ['Proton', ['protonmail.ch', 'proton.me']],
]
/** Under a country's two letters, these are not anybody's own name: `example.co.uk`. */
const SHARED_LABELS = new Set(['ac', 'co', 'com', 'edu', 'go', 'gov', 'ne', 'net', 'or', 'org'])

/** Who receives, by the MX that is asked first; null when no server said. */
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

/** The part of a host name that somebody registered, near enough to tell hosts of one provider from those of another. */
function ownName(host: string): string {
  const labels = host.split('.')
  const [second = '', top = ''] = labels.slice(-2)
  return labels.slice(top.length === 2 && SHARED_LABELS.has(second) ? -3 : -2).join('.')
}
