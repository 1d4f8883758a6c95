import type { DomainRecord } from '../../../schema/domain.ts'
import type { Dns, DnsAnswer, DnsRecord } from '../../ports/dns.ts'
import { isDmarcPolicy, judge, type Verdict } from './judge.ts'
import type { NeededRecord } from './records.ts'

/** The combined result of all name servers; PENDING when they disagree. */
export type Finding = Omit<Verdict, 'status'> & { status: DomainRecord['status'] }

const FOUND_SHOWN = 10
const FOUND_LENGTH = 1_000
const CONTROL = /\p{Cc}/gu

/** Looks up all records at once; null when no server answered for a record. */
export async function lookUpRecords(
  dns: Dns,
  domain: string,
  needed: readonly NeededRecord[],
): Promise<(Finding | null)[]> {
  return await Promise.all(needed.map((record) => lookUpRecord(dns, domain, record)))
}

async function lookUpRecord(dns: Dns, domain: string, needed: NeededRecord): Promise<Finding | null> {
  const finding = combine(needed, await dns.lookUp(needed.name, needed.type))
  // Other TXT records at the name, such as those of a wildcard, do not keep the policy of a parent from applying.
  if (needed.purpose === 'DMARC' && finding && !finding.found.some(isDmarcPolicy))
    return (await inheritedPolicy(dns, domain, needed)) ?? shown(finding)
  if (finding?.status !== 'MISSING') return finding && shown(finding)
  return (await isDoubled(dns, domain, needed))
    ? { ...finding, repair: doubledRepair(domain, needed) }
    : finding
}

/** Combines the answers of several servers: VERIFIED only when all that answered agree. */
function combine(needed: NeededRecord, answers: readonly DnsAnswer[]): Finding | null {
  const verdicts = answers.flatMap((answer) =>
    'records' in answer ? [judge(needed, answer.records.map(clean))] : [],
  )
  const right = verdicts.filter(({ status }) => status === 'VERIFIED')
  const wrong =
    verdicts.find(({ status }) => status === 'MISMATCH') ??
    verdicts.find(({ status }) => status === 'MISSING')
  if (!wrong) return right[0] ?? null
  if (right.length === 0) return wrong
  return {
    status: 'PENDING',
    found: [...new Set(verdicts.flatMap(({ found }) => found))],
    repair: `${right.length} of ${verdicts.length} name servers have the right record ${needed.name}; wait until the TTL of the earlier answer has passed at the others.`,
  }
}

/** Looks for the policy of a parent domain, which applies to a subdomain (RFC 7489 6.6.3). */
async function inheritedPolicy(dns: Dns, domain: string, needed: NeededRecord): Promise<Finding | null> {
  const labels = domain.split('.')
  for (let from = 1; from <= labels.length - 2; from++) {
    const name = `_dmarc.${labels.slice(from).join('.')}`
    const finding = combine({ ...needed, name }, await dns.lookUp(name, 'TXT'))
    if (finding?.status === 'VERIFIED') return shown(finding)
  }
  return null
}

/** Detects a doubled domain: many DNS panels append the domain to the entered name. */
async function isDoubled(dns: Dns, domain: string, needed: NeededRecord): Promise<boolean> {
  const deeper = await dns.lookUp(`${needed.name}.${domain}`, needed.type)
  return combine(needed, deeper)?.status === 'VERIFIED'
}

function doubledRepair(domain: string, needed: NeededRecord): string {
  const label = needed.name.slice(0, -domain.length - 1)
  return `The record is at ${needed.name}.${domain}, because the domain was added to the name; enter only ${label} as the name.`
}

/** Replaces control characters and broken Unicode, so that the values can be stored and shown. */
function clean(record: DnsRecord): DnsRecord {
  return record.type === 'TXT'
    ? { ...record, strings: record.strings.map(printable) }
    : { ...record, exchange: printable(record.exchange) }
}

function printable(text: string): string {
  return text.toWellFormed().replaceAll(CONTROL, '\uFFFD')
}

function shown(finding: Finding): Finding {
  const found = finding.found.slice(0, FOUND_SHOWN).map((text) => text.slice(0, FOUND_LENGTH).toWellFormed())
  return { ...finding, found }
}
