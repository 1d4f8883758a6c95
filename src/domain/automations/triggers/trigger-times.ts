import { Cron } from 'croner'
import { Temporal } from 'temporal-polyfill'

import type { TimedTrigger, TriggerConfigs } from '../../../../schema/automation-triggers.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import { readMoment } from '../../audience/moment.ts'
import { daysOf } from '../runs/schedule.ts'

/** The times of timed triggers. All functions are pure. Moments are epoch milliseconds. */

/** A date or schedule that is due for longer than this lets nobody in, just as a campaign is not sent that late. */
export const CATCH_UP_MS = 24 * 3_600_000
/** How often to look at triggers that are not due at fixed local times. */
const DATES_MINUTES = 5
const SILENCES_MINUTES = 15
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** The largest change of a clock: an island that moves across the date line skips a day. */
const LARGEST_GAP = 26 * HOUR

/** When to look at a trigger: at the times of a cron expression in its zone, or every so many minutes. */
export type Looks = { cron: string } | { everyMinutes: number }

/** Returns when to look at a timed trigger. */
export function looksOf(config: TimedTrigger): Looks {
  switch (config.type) {
    case 'SCHEDULE':
      // Temporal reads SUN as 0, so a range that ends with it would end before it begins; both read 7 as Sunday.
      return { cron: config.cron.replaceAll(/-SUN\b/gi, '-7') }
    case 'INACTIVITY':
      return { everyMinutes: durationMilliseconds(config.inactiveFor) < DAY ? 1 : SILENCES_MINUTES }
    case 'DATE_FIELD': {
      const { at, offset } = config
      if (at === undefined || daysOf(offset) === null) return { everyMinutes: DATES_MINUTES }
      return { cron: `${Number(at.slice(3))} ${Number(at.slice(0, 2))} * * *` }
    }
  }
}

/** Returns the first moment after `after` at which to look at a timed trigger. */
export function nextLook(config: TimedTrigger, zone: string, after: number): number {
  const looks = looksOf(config)
  // `cronFault` refuses expressions that never come, so there is always a next time.
  if ('cron' in looks) return nextTime(looks.cron, zone, after) ?? after + DAY
  const every = looks.everyMinutes * MINUTE
  return (Math.floor(after / every) + 1) * every
}

/** Returns why an expression cannot be a schedule, as the end of a sentence about it, or null if it can. */
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
 * Returns the first moment of a schedule after `after`, or null if it never comes. A local time that daylight saving
 * skips moves forward; of one that occurs twice, the first counts.
 */
export function nextTime(cron: string, zone: string, after: number): number | null {
  const clock = clockOf(cron)
  const here = wallTime(after, zone)
  // A skipped local time moves forward, so one before `here` may still come. Look back for it if the clock has changed.
  const isSteady = offsetAt(after, zone) === offsetAt(after - LARGEST_GAP, zone)
  let wall = clock.nextRun(new Date(here - (isSteady ? MINUTE : LARGEST_GAP)))
  let first: number | null = null
  while (wall) {
    const moment = momentOf(wall.getTime(), zone)
    if (moment > after && (first === null || moment < first)) first = moment
    // After a time that was moved forward, the next ones may come earlier, so go on until one was not moved.
    const isPlain = wallTime(moment, zone) === wall.getTime()
    if (first !== null && isPlain && wall.getTime() >= here) return first
    wall = clock.nextRun(wall)
  }
  return first
}

/** Returns the last moment of a schedule after `from` and up to `to`, or null if there is none. */
export function lastTime(cron: string, zone: string, { from, to }: Stretch): number | null {
  let last: number | null = null
  for (;;) {
    const next = nextTime(cron, zone, last ?? from)
    if (next === null || next > to) return last
    last = next
  }
}

/** A stretch of time: after `from`, up to and including `to`. */
export type Stretch = { from: number; to: number }

/**
 * When a date is due for somebody. `occasion` is the date by which nobody enters twice: its day, YYYY-MM-DD, followed
 * by its local time, THH:MM:SS, if that decides the moment.
 */
export type DueDate = { occasion: string; due: number }

/**
 * Returns the first moment after `after` at which a DATE_FIELD trigger takes somebody with this value, or null if there
 * is none. `at` replaces the time of day of the date. Days and weeks of the offset are calendar days, shorter units are
 * elapsed time. An anniversary occurs every year from the date on; that of 29 February is on the 28th in other years.
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
  // Offsets are shorter than six years, so an earlier year cannot be due after `after`.
  const earliest = Temporal.Instant.fromEpochMilliseconds(after).toZonedDateTimeISO(zone).year - 6
  for (let year = Math.max(date.year, earliest); ; year++) {
    const each = date.with({ year })
    const due = dateDue(each, config, zone)
    if (due > after) return { occasion: occasionOf(each, config), due }
  }
}

/** The dates that may be due in a stretch, by which SQL selects people before it computes the exact moments. */
export type DatePlan = {
  /** The years whose occurrences may be due. */
  years: number[]
  /**
   * The first and the last day, YYYY-MM-DD. For anniversaries, `daysOfYear` has the days instead, MM-DD (null: any).
   */
  low: string
  high: string
  daysOfYear: string[] | null
}

// Time zones are up to 26 hours apart, and an offset in elapsed time may span a change of the clock.
const SLACK_DAYS = 3
const MANY_DAYS = 300

/** Returns the dates that may be due in a stretch. */
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

/** Returns a field's date as local time: as written, or converted to the zone if it has an offset of its own. */
function wallDate(text: string, zone: string): Temporal.PlainDateTime | null {
  const moment = readMoment(text, zone)
  if (!moment) return null
  if (!/T.*(Z|[+-]\d{2}:?\d{2})$/.test(text)) return Temporal.PlainDateTime.from(text)
  return Temporal.Instant.fromEpochMilliseconds(moment.start).toZonedDateTimeISO(zone).toPlainDateTime()
}

/** Makes an iterator of an expression's local times. They are written as UTC, which has no daylight saving. */
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
