import { Temporal } from 'temporal-polyfill'

/**
 * A whole day (`2025-03-01`) or an instant, in epoch milliseconds. A day is the half-open range from its start to the
 * start of the next day; an instant has `end` null.
 */
export type Moment = { start: number; end: number | null }

const FORM = /^([1-9]\d{3}-\d{2}-\d{2})(T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?(Z|[+-]\d{2}:?\d{2})?$/

/**
 * Parses an ISO 8601 date, or date and time; without an offset it is local to the time zone. A local time that daylight
 * saving skips moves forward; one that occurs twice means the first. Returns null for anything else, such as 30
 * February.
 */
export function readMoment(text: string, timeZone: string): Moment | null {
  const [, date, time, offset] = FORM.exec(text) ?? []
  if (date === undefined || (time === undefined && offset !== undefined)) return null
  try {
    if (offset !== undefined) return instant(Temporal.Instant.from(text).epochMilliseconds)
    if (time !== undefined) {
      const local = Temporal.PlainDateTime.from(text, { overflow: 'reject' })
      return instant(local.toZonedDateTime(timeZone).epochMilliseconds)
    }
    const day = Temporal.PlainDate.from(date, { overflow: 'reject' })
    const start = day.toZonedDateTime(timeZone)
    const end = day.add({ days: 1 }).toZonedDateTime(timeZone)
    return { start: start.epochMilliseconds, end: end.epochMilliseconds }
  } catch {
    return null
  }
}

/** Returns null when an offset moves the instant out of the years with four digits, which are all that is stored. */
function instant(start: number): Moment | null {
  return /^[1-9]\d{3}-/.test(new Date(start).toISOString()) ? { start, end: null } : null
}

/** Whether times can be computed in the time zone of this name. */
export function isTimeZone(name: string): boolean {
  return timeZoneNamed(name) !== null
}

/**
 * Returns the name of a time zone in the letter case of IANA, which Temporal's schedules need; null if times cannot be
 * computed in it. Offsets such as +02:00 are not accepted, nor are abbreviations such as PST, which `Intl` alone would
 * accept.
 */
export function timeZoneNamed(name: string): string | null {
  if (!/^[A-Za-z]/.test(name)) return null
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId
  } catch {
    return null
  }
}
