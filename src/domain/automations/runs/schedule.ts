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

/** What a due time is counted from: epoch milliseconds, and the zone of steps that name none. */
export type Clock = { now: number; timezone: string }

/** Whether the calendar decides the due time, so that many runs fall due together and are worth spreading out. */
export function isCalendarWait(config: WaitConfig): boolean {
  return config.at !== undefined || config.days !== undefined
}

/**
 * When a WAIT that begins at `clock.now` is over, in epoch milliseconds. Without `at` and `days` the amount elapses.
 * With them, days and weeks are calendar days on, shorter units elapse; then comes `at` on that day (or, after a
 * shorter unit, the next such time), then the first allowed weekday. A local time that daylight saving skips moves
 * forward; one that happens twice is the first.
 */
export function waitDue(config: WaitConfig, clock: Clock): number {
  if (!isCalendarWait(config)) return clock.now + durationMilliseconds(config)
  const zone = config.timezone ?? clock.timezone
  const begun = localTime(clock.now, zone)
  const byDays = config.unit === 'DAYS' || config.unit === 'WEEKS'
  const base = byDays
    ? begun.add({ days: config.unit === 'WEEKS' ? config.amount * 7 : config.amount })
    : begun.add({ milliseconds: durationMilliseconds(config) })
  const time = config.at === undefined ? base.toPlainTime() : Temporal.PlainTime.from(config.at)
  let date = base.toPlainDate()
  if (!byDays && dueOn(date, time, zone) < base.epochMilliseconds) date = date.add({ days: 1 })
  while (config.days && !config.days.includes(weekdayOf(date))) date = date.add({ days: 1 })
  return dueOn(date, time, zone)
}

/** When a WAIT_UNTIL with a date is over, in epoch milliseconds; a whole day is over at its first moment. */
export function dateDue(config: WaitUntilConfigs['DATE'], clock: Clock): number {
  const moment = readMoment(config.date, config.timezone ?? clock.timezone)
  // A date that was saved has been read before; one that cannot be read never holds a run.
  return moment?.start ?? clock.now
}

/**
 * When a window is open: now, or at its next opening. Days are those that it begins on, in its time zone; one that ends
 * before it starts goes on over midnight.
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

/** How long a window stays open, in milliseconds, where no daylight saving begins or ends in it. */
export function windowLength({ start, end }: SendWindow): number {
  const length = Temporal.PlainTime.from(start).until(end).total('milliseconds')
  return length > 0 ? length : length + DAY_MS
}

/**
 * When the date of a field is, with its offset; null where there is none. Days and weeks are calendar days. With
 * `anniversary` it is the next day of that month and day whose time is not over (29 February is the 28th elsewhere).
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
  // An offset is shorter than six years.
  for (let candidate = year - 6; ; candidate++) {
    const due = moved(date.with({ year: candidate }))
    if (due >= clock.now) return due
  }
}

function movedBy(
  from: Temporal.ZonedDateTime,
  offset: Duration | undefined,
  direction: 'BEFORE' | 'AFTER',
): Temporal.ZonedDateTime {
  if (!offset) return from
  const { amount, unit } = offset
  const days = unit === 'DAYS' ? amount : unit === 'WEEKS' ? amount * 7 : null
  const length = days === null ? { milliseconds: durationMilliseconds(offset) } : { days }
  return direction === 'AFTER' ? from.add(length) : from.subtract(length)
}

/** The database tells moments with fractions of a millisecond. */
function localTime(moment: number, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(Math.round(moment)).toZonedDateTimeISO(zone)
}

function dueOn(date: Temporal.PlainDate, plainTime: Temporal.PlainTime, timeZone: string): number {
  return date.toZonedDateTime({ timeZone, plainTime }).epochMilliseconds
}

function weekdayOf(date: Temporal.PlainDate): Weekday {
  // dayOfWeek is 1 to 7, Monday first, as WEEKDAYS is.
  return WEEKDAYS[date.dayOfWeek - 1] ?? 'MON'
}
