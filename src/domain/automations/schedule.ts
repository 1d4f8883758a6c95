import { Temporal } from 'temporal-polyfill'

import { type Weekday, WEEKDAYS } from '../../../schema/automation-parts.ts'
import type { StepConfigs, WaitUntilConfigs } from '../../../schema/automation-steps.ts'
import { durationMilliseconds } from '../../../temporal/graph.ts'
import { readMoment } from '../audience/moment.ts'

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
  const begun = Temporal.Instant.fromEpochMilliseconds(clock.now).toZonedDateTimeISO(zone)
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

function dueOn(date: Temporal.PlainDate, plainTime: Temporal.PlainTime, timeZone: string): number {
  return date.toZonedDateTime({ timeZone, plainTime }).epochMilliseconds
}

function weekdayOf(date: Temporal.PlainDate): Weekday {
  // dayOfWeek is 1 to 7, Monday first, as WEEKDAYS is.
  return WEEKDAYS[date.dayOfWeek - 1] ?? 'MON'
}
