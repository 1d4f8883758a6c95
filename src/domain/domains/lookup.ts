import type { DomainRecord } from '../../../schema/domain.ts'
import type { Dns, DnsAnswer, DnsRecord } from '../../ports/dns.ts'
import { judge, type Verdict } from './judge.ts'
import type { NeededRecord } from './records.ts'

/** What the name servers say together; PENDING: they do not agree yet. */
export type Finding = Omit<Verdict, 'status'> & { status: DomainRecord['status'] }

const FOUND_SHOWN = 10
const FOUND_LENGTH = 1_000
const CONTROL = /\p{Cc}/gu

/** Asks for every record at once; null stands for a record about which no server said anything. */
export async function lookUpRecords(
  dns: Dns,
  domain: string,
  needed: readonly NeededRecord[],
): Promise<(Finding | null)[]> {
  return await Promise.all(needed.map((record) => lookUpRecord(dns, domain, record)))
}

async function lookUpRecord(dns: Dns, domain: string, needed: NeededRecord): Promise<Finding | null> {
  const finding = combine(needed, await dns.lookUp(needed.name, needed.type))
  if (finding?.status !== 'MISSING') return finding && shown(finding)
  if (needed.purpose === 'DMARC') return (await inheritedPolicy(dns, domain, needed)) ?? finding
  return (await isDoubled(dns, domain, needed))
    ? { ...finding, repair: doubledRepair(domain, needed) }
    : finding
}

/** One answer out of those of several servers: right only when all that answered say so. */
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

/** A subdomain goes by the policy of the domain above it (RFC 7489 6.6.3). */
async function inheritedPolicy(dns: Dns, domain: string, needed: NeededRecord): Promise<Finding | null> {
  const labels = domain.split('.')
  for (let from = 1; from <= labels.length - 2; from++) {
    const name = `_dmarc.${labels.slice(from).join('.')}`
    const finding = combine({ ...needed, name }, await dns.lookUp(name, 'TXT'))
    if (finding?.status === 'VERIFIED') return shown(finding)
  }
  return null
}

/** Many panels add the domain to what is entered, and then the record is one level too deep. */
async function isDoubled(dns: Dns, domain: string, needed: NeededRecord): Promise<boolean> {
  const deeper = await dns.lookUp(`${needed.name}.${domain}`, needed.type)
  return combine(needed, deeper)?.status === 'VERIFIED'
}

function doubledRepair(domain: string, needed: NeededRecord): string {
  const label = needed.name.slice(0, -domain.length - 1)
  return `The record is at ${needed.name}.${domain}, because the domain was added to the name; enter only ${label} as the name.`
}

/** Values as they can be stored and shown, whatever bytes a server sent. */
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
