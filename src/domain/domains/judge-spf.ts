import type { Verdict } from './judge.ts'
import type { NeededRecord } from './records.ts'
import { covers, readTerm, type SpfTerm } from './spf-terms.ts'

/** RFC 7208 4.6.4: receivers reject policies with more than this many terms that need a look-up. */
const MOST_LOOKUPS = 10
const LOOKED_UP: ReadonlySet<SpfTerm['kind']> = new Set(['include', 'exists', 'redirect', 'a', 'mx', 'ptr'])
const AT_MOST_ONCE = ['redirect', 'exp'] as const

/** Requires exactly one SPF record, and that it allows our mechanisms; it may allow others (RFC 7208). */
export function judgeSpf(needed: NeededRecord, texts: readonly string[]): Verdict {
  const policies = texts.filter((text) => /^"?v=spf1(?:\s|"|$)/i.test(text.trim()))
  const [text] = policies
  if (text === undefined) {
    const repair = `Add the TXT record ${needed.name} with the value: ${needed.value}`
    return texts.length === 0
      ? { status: 'MISSING', found: [], repair }
      : {
          status: 'MISMATCH',
          found: [...texts],
          repair: `The present record of ${needed.name} is not an SPF policy and may stay. ${repair}`,
        }
  }
  if (policies.length > 1) {
    const all = new Set(policies.flatMap(termsOf))
    return {
      status: 'MISMATCH',
      found: [...policies],
      repair: `${needed.name} has ${policies.length} SPF records, which receivers treat as an error; merge them into one: ${merged(needed, [...all])}`,
    }
  }
  const repair = repairOf(needed, text)
  return repair === null
    ? { status: 'VERIFIED', found: [...policies] }
    : { status: 'MISMATCH', found: [...policies], repair }
}

function repairOf(needed: NeededRecord, text: string): string | null {
  const { name } = needed
  if (text !== text.trimStart())
    return `Remove the space at the beginning of the value of ${name}: receivers do not take it for an SPF policy.`
  if (text.includes('"'))
    return `Remove the quotation marks from the value of ${name}: receivers read them as part of it.`
  const written = termsOf(text)
  const refused = written.find((term) => readTerm(term, name) === null)
  if (refused !== undefined) {
    return `Receivers refuse the whole policy because SPF has no term ${refused}; change ${name} to: ${merged(needed, written)}`
  }
  const terms = readTerms(written, name)
  const twice = AT_MOST_ONCE.find((kind) => terms.filter((term) => term.kind === kind).length > 1)
  if (twice) return `${name} has ${twice}= more than once, which receivers refuse; keep only one of them.`
  const lacking = mechanismsOf(needed).filter((term) => !isAllowed(readTerm(term, name), terms))
  if (lacking.length > 0) {
    return `Let it allow ${lacking.join(' and ')} by changing ${name} to: ${merged(needed, written)}`
  }
  if (lookedUp(terms).length > MOST_LOOKUPS) {
    return `${name} needs more than ${MOST_LOOKUPS} lookups, and receivers give up; remove some of its mechanisms.`
  }
  return null
}

/** Returns the terms that need a look-up. Receivers read nothing after `all`, and no `redirect` beside it (5.1). */
function lookedUp(terms: readonly SpfTerm[]): SpfTerm[] {
  const all = terms.findIndex(({ kind }) => kind === 'all')
  const read = all === -1 ? terms : terms.slice(0, all).filter(({ kind }) => kind !== 'redirect')
  return read.filter(({ kind }) => LOOKED_UP.has(kind))
}

/** The first mechanism that a sender matches decides (RFC 7208 4.6.2); modifiers may stand anywhere. */
function isAllowed(wanted: SpfTerm | null, terms: readonly SpfTerm[]): boolean {
  if (!wanted) return false
  const decisive = terms.find((term) => covers(term, wanted) || (!term.allows && covers(wanted, term)))
  return decisive?.allows === true
}

/** Returns the terms of a policy as written, without its version. */
function termsOf(policy: string): string[] {
  return policy.replaceAll('"', '').trim().split(/\s+/).slice(1)
}

/** Returns the mechanisms that a record has to allow. */
function mechanismsOf({ name, value }: Pick<NeededRecord, 'name' | 'value'>): string[] {
  return termsOf(value).filter((term) => readTerm(term, name)?.kind !== 'all')
}

function readTerms(written: readonly string[], name: string): SpfTerm[] {
  return written.flatMap((term) => readTerm(term, name) ?? [])
}

/** Merges the needed mechanisms and the given terms into one policy; `all` makes `redirect` useless (RFC 7208 6.1). */
function merged({ name, value }: NeededRecord, written: readonly string[]): string {
  const own = mechanismsOf({ name, value })
  const wanted = readTerms(own, name)
  const present = written.map((text) => ({ text, term: readTerm(text, name) }))
  const isOurs = (term: SpfTerm) => wanted.some((one) => covers(one, term) && covers(term, one))
  const others = present.flatMap(({ text, term }) =>
    term && term.kind !== 'all' && !isOurs(term) ? [text] : [],
  )
  const end = present.find(({ term }) => term?.kind === 'all')?.text
  const isRedirected = present.some(({ term }) => term?.kind === 'redirect')
  return ['v=spf1', ...own, ...others, end ?? (isRedirected ? '' : '~all')].join(' ').trim()
}
