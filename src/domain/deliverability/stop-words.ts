import type { SendingStop, StopReason, Stream } from '../../../schema/deliverability.ts'
import { timestamp } from '../text.ts'
import { THRESHOLDS } from './thresholds.ts'

/** A stop as stored, with the figures that caused it. */
export type StopRow = {
  stream: Stream
  reason: StopReason
  days: number
  emails: number
  counted: number
  stoppedAt: string
}

/** The reasons as words in a sentence. */
export const WORDS_OF: Readonly<Record<StopReason, string>> = { BOUNCES: 'bounces', COMPLAINTS: 'complaints' }

/** Returns a stop in its API form. */
export function presentStop(domain: string, { stream, reason, stoppedAt, ...figures }: StopRow): SendingStop {
  const { days, emails, counted } = figures
  const period = days === 1 ? 'the last day' : `the last ${days} days`
  const message = `${stream === 'MARKETING' ? 'Marketing' : 'Transactional'} email from ${domain} was stopped automatically: ${counted} ${WORDS_OF[reason]} of ${emails} emails in ${period}, where the limit is ${percent(THRESHOLDS[reason].stop)}. Queued email waits until resume_sending.`
  return { stream, reason, message, stoppedAt: timestamp(stoppedAt) }
}

/** Formats a rate as a percentage. */
export function percent(rate: number): string {
  return `${Math.round(rate * 10_000) / 100} %`
}
