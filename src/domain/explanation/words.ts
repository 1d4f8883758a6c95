import {
  CUSTOM_FIELD_PREFIX,
  ENTRY_PREFIX,
  FIELDS,
  type FilterOperator,
  type Leaf,
  type Period,
} from '../../../schema/audience.ts'
import { isRecord } from '../../../schema/json.ts'

/** Formats a moment in the organization's time zone: "1 March 2030 at 09:00 (Europe/Paris)". */
export function spoken(at: string, timezone: string): string {
  const words = { dateStyle: 'long', timeStyle: 'short', timeZone: timezone } as const
  return `${new Intl.DateTimeFormat('en-GB', words).format(new Date(at))} (${timezone})`
}

const OPERATOR_WORDS: Readonly<Record<FilterOperator, string>> = {
  equals: 'to be',
  not_equals: 'not to be',
  contains: 'to contain',
  not_contains: 'not to contain',
  starts_with: 'to start with',
  ends_with: 'to end with',
  in: 'to be one of',
  not_in: 'to be none of',
  gt: 'to be more than',
  gte: 'to be at least',
  lt: 'to be less than',
  lte: 'to be at most',
  between: 'to be between',
  before: 'to be before',
  after: 'to be after',
  within_last: 'to lie within the last',
  more_than_ago: 'to lie further back than',
  within_next: 'to lie within the next',
  anniversary_in: 'to have its anniversary within',
  is_set: 'to be set',
  is_not_set: 'not to be set',
  has_any: 'to include any of',
  has_all: 'to include all of',
  has_none: 'to include none of',
  received: 'to have been received:',
  not_received: 'not to have been received:',
  opened: 'to have been opened:',
  not_opened: 'not to have been opened:',
  clicked: 'to have been clicked:',
  not_clicked: 'not to have been clicked:',
  bounced: 'to have bounced:',
  active_in: 'to be gone through now:',
  completed: 'to have been completed:',
  never_entered: 'never to have been entered:',
  performed: 'to have happened:',
  not_performed: 'not to have happened:',
  percent: 'to fall into a share of, in percent,',
}

/** Returns a leaf in words: `“Country” to be one of “DE”, “AT”`. `names` maps ids to names. */
export function leafWords(leaf: Leaf, names: ReadonlyMap<string, string>): string {
  const { field, operator, event, within, count } = leaf
  const words = [`“${fieldWords(field)}”`, OPERATOR_WORDS[operator]]
  if (event !== undefined) words.push(event)
  if (leaf.value !== undefined) words.push(valueWords(leaf.value, names))
  if (leaf.where !== undefined && leaf.where.length > 0) words.push('with the data that it asks for')
  if (count !== undefined) words.push(`as often as ${OPERATOR_WORDS[count.operator]} ${count.value} times`)
  if (within !== undefined) words.push(`within ${periodWords(within)}`)
  return words.join(' ')
}

function fieldWords(field: string): string {
  if (field.startsWith(CUSTOM_FIELD_PREFIX)) return field.slice(CUSTOM_FIELD_PREFIX.length)
  if (field.startsWith(ENTRY_PREFIX)) return `${field.slice(ENTRY_PREFIX.length)} of what started it`
  return (Object.hasOwn(FIELDS, field) ? FIELDS[field]?.label : undefined) ?? field
}

/** Returns a value in words; long values are cut. */
export function valueWords(value: unknown, names: ReadonlyMap<string, string> = new Map()): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) {
    const shown = value.slice(0, SHOWN).map((each) => valueWords(each, names))
    return value.length === 0 ? 'none' : shown.join(', ') + (value.length > SHOWN ? ' and more' : '')
  }
  if (isPeriod(value)) return periodWords(value)
  if (isRecord(value)) return `the email of step ${String(value.stepId)}`
  if (typeof value !== 'string') return JSON.stringify(value)
  const name = names.get(value) ?? value
  return `“${name.length > LENGTH ? `${name.slice(0, LENGTH).toWellFormed()}…` : name}”`
}

const SHOWN = 10
const LENGTH = 200

function isPeriod(value: unknown): value is Period {
  return isRecord(value) && 'amount' in value && 'unit' in value
}

/** Returns a period in words. */
export function periodWords({ amount, unit }: { amount: number; unit: string }): string {
  const plural = unit.toLowerCase()
  return `${amount} ${amount === 1 ? plural.slice(0, -1) : plural}`
}
