import { type RawBuilder, sql } from 'kysely'

import type { FieldKind, FilterOperator, FilterValue } from '../../../schema/audience.ts'
import { array } from '../../database.ts'
import { likeLiteral } from '../text.ts'
import { type Calendar, comparesDates, dateTest, jsonDate } from './dates.ts'
import { anyOf, never, partial, type Test, total } from './predicate.ts'

/** Comparisons of numbers, which the compiler also decides in JavaScript for a missing row. */
const COMPARISONS: Readonly<
  Record<string, { sql: string; holds: (left: number, right: number) => boolean }>
> = {
  equals: { sql: '=', holds: (left, right) => left === right },
  gt: { sql: '>', holds: (left, right) => left > right },
  gte: { sql: '>=', holds: (left, right) => left >= right },
  lt: { sql: '<', holds: (left, right) => left < right },
  lte: { sql: '<=', holds: (left, right) => left <= right },
}

/** How text in SQL is compared: `exact` for equality, `folded` (may be the same) where letter case is ignored. */
export type TextExpression = {
  exact: RawBuilder<unknown>
  /** Equality ignores letter case as well: the expression is lower case already. */
  lower?: boolean
}

/** Lists up to this length are spelled as single comparisons that an inverted index answers. */
const SPELLED_LIST = 16

/**
 * Compares text. Equality is exact, or ignores case where the expression is lower case; parts of text (contains,
 * starts_with, ends_with) always ignore case, and %, _ and \ in them are letters like any other.
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
 * Compares the part of an email behind its last @. Equality and endings are endings of the whole address, which the
 * trigrams of emails answer.
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

/** Compares a number. Not total: null is unknown. */
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

/** Whether a comparison holds for a number that is known here: the zero of a row that does not exist. */
export function numberHolds(left: number, operator: string, value: unknown): boolean {
  if (Array.isArray(value)) return Number(value[0]) <= left && left <= Number(value[1])
  return COMPARISONS[operator]?.holds(left, Number(value)) ?? false
}

/**
 * Compares a value out of JSON. Its own type must be the one that is asked for; another type is as if missing. `kind`
 * is the type where it is known, which only matters for dates: they are text in JSON.
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
    // Values in JSON have an order among them, in which numbers are numbers and other types lie apart.
    const { holds } = numberTest(json, operator, value, 'jsonb')
    return partial(sql<boolean>`(${holds} and jsonb_typeof(${json}) = 'number')`)
  }
  const text = sql`(case when jsonb_typeof(${json}) = 'string' then ${json} #>> '{}' end)`
  return textTest({ exact: text }, operator, value)
}

/** Compares a custom field, whose name has been validated; equality goes through the index on all fields. */
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

/** A bound list of text. */
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
