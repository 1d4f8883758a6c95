import { type RawBuilder, sql } from 'kysely'

import type { FieldKind, FilterOperator, FilterValue } from '../../../schema/audience.ts'
import { array } from '../../database.ts'
import { likeLiteral } from '../text.ts'
import { type Calendar, comparesDates, dateTest, jsonDate } from './dates.ts'
import { anyOf, never, partial, type Test, total } from './predicate.ts'

/** Number comparisons in SQL, and in JavaScript for the zero of a missing row. */
const COMPARISONS: Readonly<
  Record<string, { sql: string; holds: (left: number, right: number) => boolean }>
> = {
  equals: { sql: '=', holds: (left, right) => left === right },
  gt: { sql: '>', holds: (left, right) => left > right },
  gte: { sql: '>=', holds: (left, right) => left >= right },
  lt: { sql: '<', holds: (left, right) => left < right },
  lte: { sql: '<=', holds: (left, right) => left <= right },
}

/** A text expression in SQL; `exact` is compared for equality. */
export type TextExpression = {
  exact: RawBuilder<unknown>
  /** The expression is in lower case already, so equality ignores letter case too. */
  lower?: boolean
}

/** Lists up to this length become single comparisons, which an inverted index can answer. */
const SPELLED_LIST = 16

/**
 * Compares text. Equality is exact, or ignores letter case when the expression is in lower case. `contains`,
 * `starts_with` and `ends_with` always ignore letter case, and %, _ and \ have no special meaning.
 */
export function textTest(
  text: TextExpression,
  operator: FilterOperator,
  value: FilterValue | undefined,
): Test {
  const { exact } = text
  switch (operator) {
    case 'is_set':
      return total(sql<boolean>`(${exact} is not null)`)
    case 'equals':
      return partial(sql<boolean>`${exact} = ${text.lower ? sql`lower(${value})` : sql`${value}`}`)
    case 'in':
      return partial(sql<boolean>`${exact} = any(${textArray(value, text.lower ?? false)})`)
    case 'contains':
      return partial(like(text, `%${literal(value)}%`))
    case 'starts_with':
      return partial(like(text, `${literal(value)}%`))
    case 'ends_with':
      return partial(like(text, `%${literal(value)}`))
    default:
      return never
  }
}

/**
 * Compares the part of an email after its last @. Equality and `ends_with` become suffix tests of the whole address,
 * which the trigram index on emails answers.
 */
export function emailDomainTest(operator: FilterOperator, value: FilterValue | undefined): Test {
  const whole = { exact: sql`s.email_key`, lower: true }
  const isEnding = operator === 'equals' || operator === 'ends_with'
  if (isEnding && typeof value === 'string' && !value.includes('@'))
    return textTest(whole, 'ends_with', operator === 'equals' ? `@${value}` : value)
  if (operator === 'in' && Array.isArray(value) && value.length <= SPELLED_LIST) {
    return partial(sql<boolean>`(${anyOf(value.map((each) => emailDomainTest('equals', each).holds))})`)
  }
  return textTest({ exact: sql`split_part(s.email_key, '@', -1)`, lower: true }, operator, value)
}

/** Compares a number. Partial: null when the number is null. */
export function numberTest(
  number: RawBuilder<unknown>,
  operator: FilterOperator,
  value: FilterValue | undefined,
  type: 'int' | 'numeric' | 'jsonb' = 'numeric',
): Test {
  const bound = (each: unknown) => sql`${type === 'jsonb' ? String(each) : each}::${sql.raw(type)}`
  if (operator === 'between' && Array.isArray(value)) {
    return partial(sql<boolean>`(${number} between ${bound(value[0])} and ${bound(value[1])})`)
  }
  const comparison = COMPARISONS[operator]
  if (!comparison || typeof value !== 'number') return never
  return partial(sql<boolean>`${number} ${sql.raw(comparison.sql)} ${bound(value)}`)
}

/** Whether a comparison holds for a number known in JavaScript: the zero of a missing row. */
export function numberHolds(left: number, operator: string, value: unknown): boolean {
  if (Array.isArray(value)) return Number(value[0]) <= left && left <= Number(value[1])
  return COMPARISONS[operator]?.holds(left, Number(value)) ?? false
}

/**
 * Compares a value inside JSON. A value of another type than the compared one counts as missing. `kind` is the known
 * type; it matters only for dates, which are text in JSON.
 */
export function jsonTest(
  json: RawBuilder<unknown>,
  kind: FieldKind,
  operator: FilterOperator,
  value: FilterValue | undefined,
  calendar: Calendar,
): Test {
  if (operator === 'is_set') return total(sql<boolean>`(coalesce(jsonb_typeof(${json}), 'null') <> 'null')`)
  if (kind === 'date' || comparesDates(operator, value))
    return dateTest(jsonDate(json, calendar.timezone), operator, value, calendar)
  if (operator === 'equals') return partial(sql<boolean>`${json} = ${JSON.stringify(value)}::jsonb`)
  const sample = Array.isArray(value) ? value[0] : value
  if (typeof sample === 'number') {
    // jsonb values are ordered across types, so the type is checked as well.
    const { holds } = numberTest(json, operator, value, 'jsonb')
    return partial(sql<boolean>`(${holds} and jsonb_typeof(${json}) = 'number')`)
  }
  const text = sql`(case when jsonb_typeof(${json}) = 'string' then ${json} #>> '{}' end)`
  return textTest({ exact: text }, operator, value)
}

/** Compares a custom field with a validated name; equality uses the index on all fields. */
export function customFieldTest(
  name: string,
  kind: FieldKind,
  operator: FilterOperator,
  value: FilterValue | undefined,
  calendar: Calendar,
): Test {
  const field = sql.raw(`s.fields->'${name}'`)
  if (kind === 'date' || comparesDates(operator, value))
    return jsonTest(sql`(${field})`, kind, operator, value, calendar)
  if (operator === 'equals')
    return total(sql<boolean>`(s.fields @> ${JSON.stringify({ [name]: value })}::jsonb)`)
  if (operator === 'in' && Array.isArray(value) && value.length <= SPELLED_LIST) {
    const each = value.map((item) => sql<boolean>`s.fields @> ${JSON.stringify({ [name]: item })}::jsonb`)
    return total(sql<boolean>`(${anyOf(each)})`)
  }
  if (operator === 'is_set')
    return total(sql<boolean>`(coalesce(s.fields->'${sql.raw(name)}', 'null') <> 'null')`)
  if (kind === 'string')
    return textTest({ exact: sql`(${sql.raw(`s.fields->>'${name}'`)})` }, operator, value)
  return jsonTest(sql`(${field})`, kind, operator, value, calendar)
}

/** Binds a list of text. */
export function textArray(value: unknown, lower = false): RawBuilder<unknown> {
  const words = array(Array.isArray(value) ? value : [value], 'text')
  return lower ? sql`array(select lower(word) from unnest(${words}) as word)` : words
}

function like(text: TextExpression, pattern: string): RawBuilder<boolean> {
  return text.lower
    ? sql<boolean>`${text.exact} like lower(${pattern})`
    : sql<boolean>`${text.exact} ilike ${pattern}`
}

function literal(value: unknown): string {
  return likeLiteral(String(value))
}
