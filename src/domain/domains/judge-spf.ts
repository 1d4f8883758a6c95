import type { Verdict } from './judge.ts'
import type { NeededRecord } from './records.ts'

/** RFC 7208 4.6.4: receivers give up after this many terms that need a look-up. */
const MOST_LOOKUPS = 10
const LOOKUP_TERM = /^[+?~-]?(?:include:|exists:|redirect=|a(?:[:/]|$)|mx(?:[:/]|$)|ptr(?::|$))/i

/** One SPF record that allows our mechanisms, whatever else it allows (RFC 7208). */
export function judgeSpf(needed: NeededRecord, texts: readonly string[]): Verdict {
  const policies = texts.filter((text) => /^"?v=spf1(?:\s|"|$)/i.test(text.trim()))
  const [text] = policies
  const wanted = mechanismsOf(needed.value)
  if (text === undefined) {
    const repair = `Add the TXT record ${needed.name} with the value: ${needed.value}`
    return texts.length === 0
      ? { status: 'MISSING', found: [], repair }
      : {
          status: 'MISMATCH',
          found: [...texts],
          repair: `What ${needed.name} holds now is no SPF policy and may stay. ${repair}`,
        }
  }
  if (policies.length > 1) {
    const all = new Set(policies.flatMap(mechanismsOf))
    return {
      status: 'MISMATCH',
      found: [...policies],
      repair: `${needed.name} has ${policies.length} SPF records, which receivers take for an error; merge them into one: ${merged([...all], wanted, text)}`,
    }
  }
  const repair = repairOf(needed, text, wanted)
  return repair === null
    ? { status: 'VERIFIED', found: [...policies] }
    : { status: 'MISMATCH', found: [...policies], repair }
}

function repairOf({ name }: NeededRecord, text: string, wanted: readonly string[]): string | null {
  if (text.includes('"'))
    return `Take the quotation marks out of the value of ${name}: receivers read them as part of it.`
  const terms = text.trim().split(/\s+/).slice(1)
  const end = terms.findIndex((term) => /^[+?~-]?all$/i.test(term))
  const reached = (end < 0 ? terms : terms.slice(0, end)).map(withoutPlus)
  const lacking = wanted.filter((mechanism) => !reached.includes(mechanism.toLowerCase()))
  if (lacking.length > 0) {
    return `Let it allow ${lacking.join(' and ')} by changing ${name} to: ${merged(mechanismsOf(text), wanted, text)}`
  }
  if (terms.filter((term) => LOOKUP_TERM.test(term)).length > MOST_LOOKUPS) {
    return `${name} needs more than ${MOST_LOOKUPS} look-ups, and receivers give up; take some of its mechanisms out.`
  }
  return null
}

/** The mechanisms of a policy, without its version and its end. */
function mechanismsOf(policy: string): string[] {
  return policy
    .replaceAll('"', '')
    .trim()
    .split(/\s+/)
    .slice(1)
    .filter((term) => !/^[+?~-]?all$/i.test(term))
}

function merged(present: readonly string[], wanted: readonly string[], policy: string): string {
  const known = new Set(wanted.map((mechanism) => mechanism.toLowerCase()))
  const others = present.filter(
    (term) => !known.has(withoutPlus(term)) && !known.has(term.slice(1).toLowerCase()),
  )
  const end = /\s([+?~-]?all)\b/i.exec(policy)?.[1] ?? '~all'
  return ['v=spf1', ...wanted, ...others, end].join(' ')
}

function withoutPlus(term: string): string {
  return term.toLowerCase().replace(/^\+/, '')
}
