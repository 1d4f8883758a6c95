import { type RawBuilder, sql } from 'kysely'

import {
  type FilterOperator,
  type FilterValue,
  type Leaf,
  type Period,
  type PeriodUnit,
} from '../../../schema/audience.ts'
import { type Moment, readMoment } from './moment.ts'
import { type Predicate, type Test, never, partial } from './predicate.ts'
import { isPeriod } from './values.ts'

/** The current moment and the time zone in which days begin. A simulation has its own `now`. */
export type Calendar = { timezone: string; now: RawBuilder<unknown> }

/** Uses the database clock, rounded like stored times, so that a value just written is not in the future. */
export function calendarOf(timezone: string): Calendar {
  return { timezone, now: sql`now()::timestamptz(3)` }
}

/** A date in SQL: the moment, and whether it means a whole day instead of an instant (null: never). */
export type DateExpression = { at: RawBuilder<unknown>; isDay: RawBuilder<unknown> | null }

const RELATIVE = new Set<FilterOperator>(['within_last', 'more_than_ago', 'within_next', 'anniversary_in'])
const ORDERED = new Set<FilterOperator>(['equals', 'gt', 'gte', 'lt', 'lte', 'between', 'before', 'after'])

/** Whether an operator compares dates: relative operators always do, ordered ones when the value is text. */
export function comparesDates(operator: FilterOperator, value: FilterValue | undefined): boolean {
  if (RELATIVE.has(operator)) return true
  const sample = Array.isArray(value) ? value[0] : value
  return ORDERED.has(operator) && operator !== 'equals' && typeof sample === 'string'
}

/** How often segments that change with time are rechecked: every quarter of an hour in UTC. */
export const TIME_LOOK_MS = 15 * 60_000

/** Whether a subscriber can start or stop matching only because time passes. */
export function changesWithTime({ operator, within, where = [] }: Leaf): boolean {
  return RELATIVE.has(operator) || within !== undefined || where.some((each) => RELATIVE.has(each.operator))
}

/** Returns the periods of a leaf that count from now. */
export function periodsOf({ value, within, where = [] }: Leaf): Period[] {
  return [value, within, ...where.map((each) => each.value)].filter(isPeriod)
}

/** Compares a date; a whole day as the value covers that day in the time zone. Partial: null when the date is null. */
export function dateTest(
  date: DateExpression,
  operator: FilterOperator,
  value: FilterValue | undefined,
  calendar: Calendar,
): Test {
  if (isPeriod(value)) return partial(relative(date, operator, value, calendar))
  const { timezone } = calendar
  if (Array.isArray(value)) {
    const [low, high] = [momentOf(value[0], timezone), momentOf(value[1], timezone)]
    return low && high ? partial(sql`(${from(date, low)} and ${upTo(date, high)})`) : never
  }
  const moment = momentOf(value, timezone)
  return moment ? partial(absolute(date, operator, moment)) : never
}

/**
 * Returns the moment of a JSON date in the time zone; null when it is no date. A local time that occurs twice means the
 * first, as in `readMoment`.
 */
export function jsonDate(json: RawBuilder<unknown>, zone: string): DateExpression {
  const { text, isDay, cases } = dateForms(json)
  const local = sql`(case when length(${text}) = 10 then ${text}::timestamp at time zone ${zone}
    else local_moment(${text}::timestamp, ${zone}) end)`
  return { at: cases(local, sql`${text}::timestamptz`), isDay }
}

/** Returns the local time in the time zone of a JSON date; null when it is no date. */
export function jsonWallTime(json: RawBuilder<unknown>, zone: string): RawBuilder<unknown> {
  const { text, cases } = dateForms(json)
  return cases(sql`${text}::timestamp`, sql`${text}::timestamptz at time zone ${zone}`)
}

function dateForms(json: RawBuilder<unknown>) {
  const text = sql`(${json} #>> '{}')`
  const isText = sql`jsonb_typeof(${json}) = 'string'`
  const form = sql.raw(`'^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}`)
  const local = sql`${text} ~ ${form}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?$'`
  const full = sql`${text} ~ ${form}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})$'`
  return {
    text,
    isDay: sql`(${isText} and ${text} ~ ${form}$')`,
    /** Uses `shown` for local dates and `absolute` for dates with an offset; null for others. */
    cases: (shown: RawBuilder<unknown>, absolute: RawBuilder<unknown>) => sql`(case
      when not coalesce(${isText} and pg_input_is_valid(${text}, 'timestamptz'), false) then null
      when ${local} then ${shown}
      when ${full} then ${absolute} end)`,
  }
}

function momentOf(value: unknown, zone: string): Moment | null {
  return typeof value === 'string' ? readMoment(value, zone) : null
}

function absolute(date: DateExpression, operator: FilterOperator, moment: Moment): Predicate {
  const { at } = date
  switch (operator) {
    case 'equals':
      return moment.end === null
        ? sql<boolean>`${at} = ${instant(moment.start)}`
        : sql<boolean>`(${at} >= ${instant(moment.start)} and ${at} < ${instant(moment.end)})`
    case 'gt':
    case 'after':
      return moment.end === null
        ? sql<boolean>`${at} > ${instant(moment.start)}`
        : sql<boolean>`${at} >= ${instant(moment.end)}`
    case 'gte':
      return from(date, moment)
    case 'lte':
      return upTo(date, moment)
    default:
      return sql<boolean>`${at} < ${instant(moment.start)}`
  }
}

function from({ at }: DateExpression, moment: Moment): Predicate {
  return sql<boolean>`${at} >= ${instant(moment.start)}`
}

function upTo({ at }: DateExpression, moment: Moment): Predicate {
  return moment.end === null
    ? sql<boolean>`${at} <= ${instant(moment.start)}`
    : sql<boolean>`${at} < ${instant(moment.end)}`
}

function relative(
  date: DateExpression,
  operator: FilterOperator,
  period: Period,
  calendar: Calendar,
): Predicate {
  const { at } = date
  const { now } = calendar
  switch (operator) {
    case 'within_last':
      return sql<boolean>`(${at} >= ${bound(date, period, -1, calendar)} and ${at} <= ${now})`
    case 'more_than_ago':
      return sql<boolean>`${at} < ${bound(date, period, -1, calendar)}`
    case 'within_next':
      return sql<boolean>`(${at} >= ${today(date, calendar)} and ${at} <= ${bound(date, period, 1, calendar)})`
    default:
      return anniversary(at, period, calendar)
  }
}

/** Returns the moment one period before or after now; for a whole day, the beginning of that day. */
function bound(
  { isDay }: DateExpression,
  period: Period,
  direction: 1 | -1,
  calendar: Calendar,
): RawBuilder<unknown> {
  const instantly = shifted(period, direction, calendar)
  if (!isDay) return once(instantly)
  return sql`(case when ${isDay} then ${once(dayOf(instantly, calendar))} else ${once(instantly)} end)`
}

/** Returns now; for a whole day the beginning of today, because today is not over. */
function today({ isDay }: DateExpression, calendar: Calendar): RawBuilder<unknown> {
  const { now } = calendar
  return isDay ? sql`(case when ${isDay} then ${once(dayOf(now, calendar))} else ${now} end)` : now
}

function dayOf(at: RawBuilder<unknown>, { timezone }: Calendar): RawBuilder<unknown> {
  return sql`(date_trunc('day', ${at} at time zone ${timezone}) at time zone ${timezone})`
}

/** Makes an expression that is evaluated once per query instead of per row, because time zone functions are slow. */
export function once(at: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`(select ${at})`
}

/** Shifts now by a period. Minutes and hours are exact; longer units are calendar units in the time zone. */
export function shifted(period: Period, direction: 1 | -1, { timezone, now }: Calendar): RawBuilder<unknown> {
  const length = interval(period)
  const sign = sql.raw(direction === 1 ? '+' : '-')
  if (period.unit === 'MINUTES' || period.unit === 'HOURS') return sql`(${now} ${sign} ${length})`
  return sql`((${now} at time zone ${timezone} ${sign} ${length}) at time zone ${timezone})`
}

const INTERVAL_PARTS: Readonly<Record<PeriodUnit, string>> = {
  MINUTES: 'mins',
  HOURS: 'hours',
  DAYS: 'days',
  WEEKS: 'weeks',
  MONTHS: 'months',
}

function interval({ amount, unit }: Period): RawBuilder<unknown> {
  return sql`make_interval(${sql.raw(INTERVAL_PARTS[unit])} => ${amount}::int)`
}

/** Whether the anniversary lies between today and the period's end; in common years, 29 February counts as the 28th. */
function anniversary(at: RawBuilder<unknown>, period: Period, calendar: Calendar): Predicate {
  const { timezone } = calendar
  const day = sql`(${at} at time zone ${timezone})::date`
  const now = once(sql`${calendar.now} at time zone ${timezone}`)
  const years = sql`greatest((extract(year from ${now}) - extract(year from ${day}))::int, 0)`
  const thisYear = sql`(${day} + make_interval(years => ${years}))::date`
  const nextYear = sql`(${day} + make_interval(years => ${years} + 1))::date`
  return sql<boolean>`(case when ${thisYear} >= ${now}::date then ${thisYear} else ${nextYear} end
    <= (${now} + ${interval(period)})::date)`
}

/** Binds a moment (epoch ms). */
export function instant(epoch: number): RawBuilder<unknown> {
  // PostgreSQL accepts five-digit years only without the plus sign and leading zero of ISO 8601.
  return sql`${new Date(epoch).toISOString().replace(/^\+0*/, '')}::timestamptz`
}
