import { refuse } from '../../catalogue/failure.ts'
import { isTimeZone, readMoment } from '../audience/moment.ts'

/** The send time as schedule_campaign takes it. */
export type WishedTime = {
  date?: string | undefined
  hours?: number | undefined
  minutes?: number | undefined
  timezone: string
}

const DAY = /^\d{4}-\d{2}-\d{2}$/

/**
 * Returns the requested moment in epoch milliseconds; null means now. A day without hours and minutes means midnight in
 * the time zone. A local time that daylight saving skips moves forward; one that occurs twice means the first.
 */
export function readDueTime({ date, hours, minutes, timezone }: WishedTime, now: number): number | null {
  if (!isTimeZone(timezone)) {
    refuse('timezone', 'is not a time zone; send a name such as "Europe/Paris" or "UTC".')
  }
  const timed = hours !== undefined ? 'hours' : minutes !== undefined ? 'minutes' : null
  if (date === undefined) {
    if (timed !== null) refuse(timed, 'needs a date; send date as well, or leave both out to send now.')
    return null
  }
  const isDay = DAY.test(date)
  if (timed !== null && !isDay) {
    refuse(timed, 'cannot stand beside a date that has a time; send date as YYYY-MM-DD.')
  }
  const moment = readMoment(isDay ? `${date}T${padded(hours)}:${padded(minutes)}` : date, timezone)
  if (moment === null) {
    refuse('date', 'must be a date such as "2030-01-31", or a date and time such as "2030-01-31T09:00:00Z".')
  }
  if (moment.start < now) {
    const said = new Date(moment.start).toISOString()
    refuse('date', `is in the past (${said}); send a later one, or leave it out to send now.`)
  }
  return moment.start
}

function padded(part: number | undefined): string {
  return String(part ?? 0).padStart(2, '0')
}
