import { Temporal } from 'temporal-polyfill'

import {
  type Duration,
  type SendWindow,
  type Weekday,
  WEEKDAYS,
} from '../../../../schema/automation-parts.ts'
import type { StepConfigs, WaitUntilConfigs } from '../../../../schema/automation-steps.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import { readMoment } from '../../audience/moment.ts'

const DAY_MS = 86_400_000

type WaitConfig = StepConfigs['WAIT']

/** The moment from which a due time is counted (epoch ms), and the time zone of steps that do not set one. */
export type Clock = { now: number; timezone: string }

/** Returns whether the calendar decides the due time. Many runs are then due at once and should be spread out. */
export function isCalendarWait(config: WaitConfig): boolean {
  return config.at !== undefined || config.days !== undefined
}

/**
 * Returns when a WAIT that begins at `clock.now` is over, in epoch ms. Without `at` and `days`, that is after the
 * duration. With them, days and weeks are added as calendar days and shorter units as elapsed time. Then `at` on that
 * day applies (after a shorter unit, the next such time), then the first allowed weekday. A local time that daylight
 * saving skips moves forward; of one that occurs twice, the first counts.
 */
export function waitDue(config: WaitConfig, clock: Clock): number {
  if (!isCalendarWait(config)) return clock.now + durationMilliseconds(config)
  const zone = config.timezone ?? clock.timezone
  const begun = localTime(clock.now, zone)
  const byDays = config.unit === 'DAYS' || config.unit === 'WEEKS'
  const base = byDays
    ? begun.add({ days: config.unit === 'WEEKS' ? config.amount * 7 : config.amount })
    : begun.add({ milliseconds: durationMilliseconds(config) })
  const isAllowed = (date: Temporal.PlainDate) => !config.days || config.days.includes(weekdayOf(date))
  let date = base.toPlainDate()
  // Not `dueOn`: the local time of `base` may occur twice that day, and `base` be the second.
  if (config.at === undefined && isAllowed(date)) return base.epochMilliseconds
  const time = config.at === undefined ? base.toPlainTime() : Temporal.PlainTime.from(config.at)
  if (!byDays && dueOn(date, time, zone) < base.epochMilliseconds) date = date.add({ days: 1 })
  while (!isAllowed(date)) date = date.add({ days: 1 })
  return dueOn(date, time, zone)
}

/**
 * Returns when a WAIT_UNTIL with a date is over, in epoch ms. A date without a time means the beginning of that day.
 */
export function dateDue(config: WaitUntilConfigs['DATE'], clock: Clock): number {
  const moment = readMoment(config.date, config.timezone ?? clock.timezone)
  // Dates are validated when they are saved. One that cannot be read all the same must not hold the run.
  return moment?.start ?? clock.now
}

/**
 * Returns when a window is open (epoch ms): `clock.now` if it is open, else its next opening. `days` are the days on
 * which it begins, in its time zone. A window that ends before it starts goes past midnight.
 */
export function windowOpens(window: SendWindow, clock: Clock): number {
  const zone = window.timezone ?? clock.timezone
  const [start, end] = [Temporal.PlainTime.from(window.start), Temporal.PlainTime.from(window.end)]
  const lastDay = Temporal.PlainTime.compare(end, start) <= 0 ? 1 : 0
  const today = localTime(clock.now, zone).toPlainDate()
  for (let day = -1; day <= 8; day++) {
    const date = today.add({ days: day })
    if (window.days && !window.days.includes(weekdayOf(date))) continue
    if (clock.now < dueOn(date.add({ days: lastDay }), end, zone)) {
      return Math.max(clock.now, dueOn(date, start, zone))
    }
  }
  return clock.now
}

/** Returns the length of a window in ms, without regard to daylight saving. */
export function windowLength({ start, end }: SendWindow): number {
  const length = Temporal.PlainTime.from(start).until(end).total('milliseconds')
  return length > 0 ? length : length + DAY_MS
}

/**
 * Returns the moment of a field's date, moved by the offset, in epoch ms; null if the value is no date. Days and weeks
 * of the offset are calendar days. With `anniversary`, returns the next such moment of any year from the date on that
 * is not over (29 February is the 28th in other years).
 */
export function fieldDateDue(
  value: unknown,
  { offset, direction, anniversary, timezone }: WaitUntilConfigs['FIELD_DATE'],
  clock: Clock,
): number | null {
  const zone = timezone ?? clock.timezone
  const moment = typeof value === 'string' ? readMoment(value, zone) : null
  if (!moment) return null
  const date = localTime(moment.start, zone)
  const moved = (from: Temporal.ZonedDateTime) => movedBy(from, offset, direction).epochMilliseconds
  if (!anniversary) return moved(date)
  const { year } = localTime(clock.now, zone)
  // Offsets are shorter than six years, so an earlier year cannot be due in the future.
  for (let candidate = Math.max(date.year, year - 6); ; candidate++) {
    const due = moved(date.with({ year: candidate }))
    if (due >= clock.now) return due
  }
}

/** Returns the calendar days of an offset, or null if its unit is elapsed time. */
export function daysOf(offset: Duration | undefined): number | null {
  if (!offset) return 0
  const { amount, unit } = offset
  if (unit === 'DAYS') return amount
  return unit === 'WEEKS' ? amount * 7 : null
}

function movedBy(
  from: Temporal.ZonedDateTime,
  offset: Duration | undefined,
  direction: 'BEFORE' | 'AFTER',
): Temporal.ZonedDateTime {
  if (!offset) return from
  const days = daysOf(offset)
  const length = days === null ? { milliseconds: durationMilliseconds(offset) } : { days }
  return direction === 'AFTER' ? from.add(length) : from.subtract(length)
}

/** Returns the local time of a moment (epoch ms). Moments from the database have fractions of a millisecond. */
function localTime(moment: number, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(Math.round(moment)).toZonedDateTimeISO(zone)
}

function dueOn(date: Temporal.PlainDate, plainTime: Temporal.PlainTime, timeZone: string): number {
  return date.toZonedDateTime({ timeZone, plainTime }).epochMilliseconds
}

function weekdayOf(date: Temporal.PlainDate): Weekday {
  // `dayOfWeek` is 1 (Monday) to 7.
  return WEEKDAYS[date.dayOfWeek - 1] ?? 'MON'
}
