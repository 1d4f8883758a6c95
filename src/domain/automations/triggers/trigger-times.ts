import { Cron } from 'croner'
import { Temporal } from 'temporal-polyfill'

import type { Duration } from '../../../../schema/automation-parts.ts'
import type { TimedTrigger, TriggerConfigs } from '../../../../schema/automation-triggers.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import { readMoment } from '../../audience/moment.ts'

/** When triggers fire that time fires. Pure: moments are epoch milliseconds, and the zone is given. */

/** Later than this after its moment nobody enters by a date or a schedule any more, as no campaign is sent. */
export const CATCH_UP_MS = 24 * 3_600_000
/** How often a trigger is looked at whose moments are not those of a clock on the wall. */
const DATES_MINUTES = 5
const SILENCES_MINUTES = 15
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** No change of a clock moves it further: an island that changes sides of the date line skips a day. */
const LARGEST_GAP = 26 * HOUR

/** When a trigger has to be looked at: at the minutes of a cron expression in its zone, or every so many minutes. */
export type Looks = { cron: string } | { everyMinutes: number }

/** When a timed trigger has to be looked at. */
export function looksOf(config: TimedTrigger): Looks {
  switch (config.type) {
    case 'SCHEDULE':
      return { cron: config.cron }
    case 'INACTIVITY':
      return { everyMinutes: durationMilliseconds(config.inactiveFor) < DAY ? 1 : SILENCES_MINUTES }
    case 'DATE_FIELD': {
      const { at, offset } = config
      if (at === undefined || daysOf(offset) === null) return { everyMinutes: DATES_MINUTES }
      return { cron: `${Number(at.slice(3))} ${Number(at.slice(0, 2))} * * *` }
    }
  }
}

/** The first moment after `after` at which a timed trigger has to be looked at. */
export function nextLook(config: TimedTrigger, zone: string, after: number): number {
  const looks = looksOf(config)
  // A schedule that was saved has a next time.
  if ('cron' in looks) return nextTime(looks.cron, zone, after) ?? after + DAY
  const every = looks.everyMinutes * MINUTE
  return (Math.floor(after / every) + 1) * every
}

/** Why an expression cannot be a schedule, as a sentence goes on after what it is about; null if it can. */
export function cronFault(cron: string): string | null {
  const fields = cron.trim().split(/\s+/)
  if (fields.length !== 5) {
    return `has ${fields.length} fields; write five, "minute hour day-of-month month day-of-week", such as "0 9 * * MON"`
  }
  const strange = fields.find((field) => !/^([\d*,/-]|[A-Z]{3}(?![A-Z]))+$/i.test(field))
  if (strange !== undefined) {
    return `has ${JSON.stringify(strange)} in it; fields are made of numbers, names, and * , - /`
  }
  if (fields[2] !== '*' && fields[4] !== '*') {
    return 'names days of the month and days of the week; name one of them and write * for the other'
  }
  try {
    if (clockOf(cron).nextRun(new Date('2024-01-01T00:00:00Z'))) return null
    return 'never comes, because no month has that day; choose another day'
  } catch (error) {
    return `cannot be read (${String(error).replace(/^.*?CronPattern: /, '')}); write for example "0 9 * * MON"`
  }
}

/**
 * The first moment of a schedule after `after`. What daylight saving skips moves forward, what happens twice is the
 * first; null for one that never comes.
 */
export function nextTime(cron: string, zone: string, after: number): number | null {
  const clock = clockOf(cron)
  const here = wallTime(after, zone)
  // A time that is skipped may come after later ones; only a change of the clock since makes that possible.
  const isSteady = offsetAt(after, zone) === offsetAt(after - LARGEST_GAP, zone)
  let wall = clock.nextRun(new Date(here - (isSteady ? MINUTE : LARGEST_GAP)))
  let first: number | null = null
  while (wall) {
    const moment = momentOf(wall.getTime(), zone)
    if (moment > after && (first === null || moment < first)) first = moment
    // Behind one that was moved, others may come earlier.
    const isPlain = wallTime(moment, zone) === wall.getTime()
    if (first !== null && isPlain && wall.getTime() >= here) return first
    wall = clock.nextRun(wall)
  }
  return first
}

/** The last moment of a schedule after `from` and up to `to`; null if there is none. */
export function lastTime(cron: string, zone: string, { from, to }: Stretch): number | null {
  let last: number | null = null
  for (;;) {
    const next = nextTime(cron, zone, last ?? from)
    if (next === null || next > to) return last
    last = next
  }
}

/** A stretch of time: after `from`, up to `to`. */
export type Stretch = { from: number; to: number }

/**
 * When a date is due for somebody. `occasion` is the date itself, which nobody enters by twice: its day, YYYY-MM-DD, or
 * its local time of the day as well where that decides the moment.
 */
export type DueDate = { occasion: string; due: number }

/**
 * The first moment after `after` at which a DATE_FIELD trigger takes somebody with this value; null if none comes. `at`
 * is a time of the day of the date; days and weeks of the offset are calendar days, shorter units elapse. An anniversary
 * comes every year from the date on, and that of a 29 February on the 28th where there is none.
 */
export function nextDate(
  value: unknown,
  config: TriggerConfigs['DATE_FIELD'],
  zone: string,
  after: number,
): DueDate | null {
  const date = typeof value === 'string' ? wallDate(value, zone) : null
  if (!date) return null
  if (!config.anniversary) {
    const due = dateDue(date, config, zone)
    return due > after ? { occasion: occasionOf(date, config), due } : null
  }
  // An offset is shorter than six years.
  const earliest = Temporal.Instant.fromEpochMilliseconds(after).toZonedDateTimeISO(zone).year - 6
  for (let year = Math.max(date.year, earliest); ; year++) {
    const each = date.with({ year })
    const due = dateDue(each, config, zone)
    if (due > after) return { occasion: occasionOf(each, config), due }
  }
}

/** What SQL asks of the dates that may be due in a stretch, before it computes the moment of any. */
export type DatePlan = {
  /** The years whose occurrences may be due. */
  years: number[]
  /** As text begins: the first and the last day, or the days of the year of an anniversary (null: any). */
  low: string
  high: string
  daysOfYear: string[] | null
}

// Zones lie up to 26 hours apart, and an offset of elapsed hours may pass a change of the clock.
const SLACK_DAYS = 3
const MANY_DAYS = 300

/** The dates that may be due in a stretch. */
export function planDates(
  { offset, direction }: TriggerConfigs['DATE_FIELD'],
  zone: string,
  { from, to }: Stretch,
): DatePlan {
  const length = offset ? durationMilliseconds(offset) * (direction === 'AFTER' ? -1 : 1) : 0
  const day = (moment: number, days: number) =>
    Temporal.Instant.fromEpochMilliseconds(moment + length)
      .toZonedDateTimeISO(zone)
      .toPlainDate()
      .add({ days })
  const [low, high] = [day(from, -SLACK_DAYS), day(to, SLACK_DAYS)]
  const count = low.until(high).days
  const days = Array.from({ length: Math.min(count, MANY_DAYS) + 1 }, (_, index) =>
    low.add({ days: index }).toString().slice(-5),
  )
  if (days.includes('02-28')) days.push('02-29')
  return {
    years: Array.from({ length: high.year - low.year + 1 }, (_, index) => low.year + index),
    low: low.toString(),
    high: high.toString(),
    daysOfYear: count > MANY_DAYS ? null : days,
  }
}

/** How many calendar days an offset is; null where it is elapsed time. */
export function daysOf(offset: Duration | undefined): number | null {
  if (!offset) return 0
  const { amount, unit } = offset
  return unit === 'DAYS' ? amount : unit === 'WEEKS' ? amount * 7 : null
}

function occasionOf(date: Temporal.PlainDateTime, { at }: TriggerConfigs['DATE_FIELD']): string {
  const day = date.toPlainDate().toString()
  const time = date.toPlainTime().toString({ smallestUnit: 'second' })
  return at !== undefined || time === '00:00:00' ? day : `${day}T${time}`
}

function dateDue(
  date: Temporal.PlainDateTime,
  { at, offset, direction }: TriggerConfigs['DATE_FIELD'],
  zone: string,
): number {
  const wall = at === undefined ? date : date.toPlainDate().toPlainDateTime(Temporal.PlainTime.from(at))
  const sign = direction === 'AFTER' ? 1 : -1
  const days = daysOf(offset)
  if (days !== null) return wall.add({ days: sign * days }).toZonedDateTime(zone).epochMilliseconds
  const elapsed = offset ? durationMilliseconds(offset) : 0
  return wall.toZonedDateTime(zone).epochMilliseconds + sign * elapsed
}

/** The date of a field on the clocks of the zone: as it is written, unless it says its own offset. */
function wallDate(text: string, zone: string): Temporal.PlainDateTime | null {
  const moment = readMoment(text, zone)
  if (!moment) return null
  if (!/T.*(Z|[+-]\d{2}:?\d{2})$/.test(text)) return Temporal.PlainDateTime.from(text)
  return Temporal.Instant.fromEpochMilliseconds(moment.start).toZonedDateTimeISO(zone).toPlainDateTime()
}

/** Walks the times of an expression on a clock that never changes: the wall's, written as UTC. */
function clockOf(cron: string): Cron {
  return new Cron(cron, { mode: '5-part', timezone: 'UTC' })
}

function wallTime(moment: number, zone: string): number {
  return moment + offsetAt(moment, zone)
}

function momentOf(wall: number, zone: string): number {
  return Temporal.Instant.fromEpochMilliseconds(wall)
    .toZonedDateTimeISO('UTC')
    .toPlainDateTime()
    .toZonedDateTime(zone).epochMilliseconds
}

function offsetAt(moment: number, zone: string): number {
  const { offsetNanoseconds } = Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(zone)
  return offsetNanoseconds / 1_000_000
}
