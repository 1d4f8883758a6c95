import type { DomainRecord } from '../../../schema/domain.ts'
import type { DnsRecord } from '../../ports/dns.ts'
import { judgeSpf } from './judge-spf.ts'
import type { NeededRecord } from './records.ts'

/**
 * The result of comparing records with a needed one. `repair` is one sentence, absent for VERIFIED. When it ends with a
 * value to copy, it has no full stop, because that would be copied too.
 */
export type Verdict = {
  status: Exclude<DomainRecord['status'], 'PENDING'>
  found: string[]
  repair?: string
}

/**
 * Judges the records that one server returned. Differences that receivers ignore are accepted, such as letter case,
 * quotes, split strings and extra tags.
 */
export function judge(needed: NeededRecord, records: readonly DnsRecord[]): Verdict {
  if (needed.purpose === 'MAIL_FROM_MX') return judgeMx(needed, records)
  const texts = records.flatMap((record) => (record.type === 'TXT' ? [record.strings.join('')] : []))
  switch (needed.purpose) {
    case 'OWNERSHIP':
      return judgeOwnership(needed, texts)
    case 'DKIM':
      return judgeDkim(needed, texts)
    case 'MAIL_FROM_SPF':
      return judgeSpf(needed, texts)
    case 'DMARC':
      return judgeDmarc(needed, texts)
  }
}

/** Returns the verdict for a name without such a record. */
function missing({ name, type, value, priority, purpose }: NeededRecord): Verdict {
  const why = purpose === 'DMARC' ? 'Recommended, because large receivers expect a DMARC policy: add' : 'Add'
  const what = priority === undefined ? 'the value' : `priority ${priority} and the value`
  return { status: 'MISSING', found: [], repair: `${why} the ${type} record ${name} with ${what}: ${value}` }
}

function judgeOwnership(needed: NeededRecord, texts: readonly string[]): Verdict {
  if (texts.length === 0) return missing(needed)
  const plain = texts.map((text) => unquoted(text).toLowerCase())
  if (plain.includes(needed.value.toLowerCase())) return { status: 'VERIFIED', found: [...texts] }
  return mismatch(
    texts,
    `Add ${needed.value} as a TXT record of ${needed.name}; other records there may stay.`,
  )
}

/**
 * RFC 6376 3.6.1: there is exactly one record. `v` comes first, no tag is repeated (3.2), and other tags have any
 * order. Unknown tags and spaces in `p` are ignored.
 */
function judgeDkim(needed: NeededRecord, texts: readonly string[]): Verdict {
  const keys = texts.filter((text) => /(^|;|")\s*p\s*=/.test(text))
  const [text] = keys
  if (text === undefined) {
    if (texts.length === 0) return missing(needed)
    return mismatch(texts, `${needed.name} holds no DKIM key; replace its value by: ${needed.value}`)
  }
  if (keys.length > 1) {
    return mismatch(
      keys,
      `${needed.name} holds ${keys.length} keys, and receivers accept only one; delete all but this: ${needed.value}`,
    )
  }
  if (/["\\]/.test(text)) {
    return mismatch(
      keys,
      `Remove the quotation marks and backslashes from the value of ${needed.name}: receivers read them as part of the key.`,
    )
  }
  const repeated = repeatedTag(text)
  if (repeated !== null) return mismatch(keys, onceOnly(needed, repeated))
  const [tags, wanted] = [readTags(text), readTags(needed.value)]
  if (tags.has('v') && tags.keys().next().value !== 'v') {
    return mismatch(
      keys,
      `Move v=${tags.get('v')} to the beginning of ${needed.name}: receivers ignore the key otherwise.`,
    )
  }
  const key = wanted.get('p') ?? ''
  const given = (tags.get('p') ?? '').replaceAll(/\s/g, '')
  if (given === '')
    return mismatch(
      keys,
      `The key of ${needed.name} is empty, which means revoked; its value should be: ${needed.value}`,
    )
  if (given !== key) {
    const cut = key.startsWith(given)
      ? `The key of ${needed.name} is cut off after ${given.length} of ${key.length} characters; enter it as two quoted strings of at most 255 characters, or in a field that takes it whole.`
      : `${needed.name} holds another key; replace its value by: ${needed.value}`
    return mismatch(keys, cut)
  }
  const wrong = wrongDkimTag(tags)
  if (wrong)
    return mismatch(
      keys,
      `Remove the tag ${wrong} from ${needed.name}: receivers refuse the key because of it.`,
    )
  return { status: 'VERIFIED', found: keys }
}

function wrongDkimTag(tags: ReadonlyMap<string, string>): string | null {
  const list = (name: string) =>
    tags
      .get(name)
      ?.split(':')
      .map((part) => part.trim().toLowerCase())
  if (tags.has('v') && tags.get('v') !== 'DKIM1') return `v=${tags.get('v')}`
  if (tags.has('k') && tags.get('k')?.toLowerCase() !== 'rsa') return `k=${tags.get('k')}`
  if (list('h')?.includes('sha256') === false) return `h=${tags.get('h')}`
  const services = list('s')
  if (services && !services.includes('*') && !services.includes('email')) return `s=${tags.get('s')}`
  return null
}

/** Bounces go to the host with the lowest priority value, so our host must have a lower one than all others. */
function judgeMx(needed: NeededRecord, records: readonly DnsRecord[]): Verdict {
  const hosts = records.flatMap((record) => (record.type === 'MX' ? [record] : []))
  if (hosts.length === 0) return missing(needed)
  const found = hosts.map(({ exchange, priority }) => `${priority} ${exchange}`)
  const ours = hosts.filter(({ exchange }) => hostName(exchange) === hostName(needed.value))
  const first = Math.min(...ours.map(({ priority }) => priority))
  if (ours.length === 0) {
    return mismatch(
      found,
      `Replace the MX record of ${needed.name} by ${needed.value}, priority ${needed.priority ?? 10}.`,
    )
  }
  const before = hosts.filter((host) => !ours.includes(host) && host.priority <= first)
  if (before.length === 0) return { status: 'VERIFIED', found }
  const names = before.map(({ exchange }) => exchange).join(', ')
  return mismatch(
    found,
    `Delete the MX ${names} of ${needed.name}, or give it a higher number than ${first}: bounces go there instead of to us.`,
  )
}

/** RFC 7489 6.3: exactly one record that begins with v=DMARC1 and has a policy, whichever it is. */
function judgeDmarc(needed: NeededRecord, texts: readonly string[]): Verdict {
  const policies = texts.filter(isDmarcPolicy)
  const [text] = policies
  if (text === undefined) {
    if (texts.length === 0) return missing(needed)
    return mismatch(
      texts,
      `${needed.name} holds no DMARC policy; it has to begin with v=DMARC1, as in: ${needed.value}`,
    )
  }
  if (policies.length > 1) {
    return mismatch(
      policies,
      `${needed.name} holds ${policies.length} policies, which receivers treat as none; delete all but one.`,
    )
  }
  const repeated = repeatedTag(text)
  if (repeated !== null) return mismatch(policies, onceOnly(needed, repeated))
  const policy = readTags(text).get('p')?.toLowerCase() ?? ''
  if (['none', 'quarantine', 'reject'].includes(policy)) return { status: 'VERIFIED', found: policies }
  return mismatch(policies, `The policy of ${needed.name} needs p=none, p=quarantine or p=reject.`)
}

/** Returns whether receivers take a TXT record for a DMARC policy; they ignore all others (RFC 7489 6.6.3). */
export function isDmarcPolicy(text: string): boolean {
  return /^v\s*=\s*DMARC1\s*(;|$)/.test(text)
}

function readTags(text: string): Map<string, string> {
  return new Map(listTags(text))
}

/** Returns a tag name that occurs more than once, which makes the whole list invalid (RFC 6376 3.2), or null. */
function repeatedTag(text: string): string | null {
  const names = listTags(text).map(([name]) => name)
  return names.find((name, index) => names.indexOf(name) !== index) ?? null
}

function onceOnly({ name }: NeededRecord, tag: string): string {
  return `${name} has the tag ${tag} more than once, which receivers refuse; keep only one of them.`
}

/** Parses a tag list (RFC 6376 3.2); the case of names counts. */
function listTags(text: string): (readonly [name: string, value: string])[] {
  return text.split(';').flatMap((part) => {
    const equals = part.indexOf('=')
    return equals < 0 ? [] : [[part.slice(0, equals).trim(), part.slice(equals + 1).trim()] as const]
  })
}

function mismatch(found: readonly string[], repair: string): Verdict {
  return { status: 'MISMATCH', found: [...found], repair }
}

function unquoted(text: string): string {
  return text.trim().replaceAll(/^"|"$/g, '').trim()
}

function hostName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
