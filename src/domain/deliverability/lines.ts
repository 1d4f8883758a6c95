import type { Level, StopReason } from '../../../schema/deliverability.ts'

/** What became of a number of emails. */
export type Figures = {
  /** What servers took or refused. */
  emails: number
  bounced: number
  failed: number
  complained: number
  /** Those that tell of being opened. */
  tracked: number
  opened: number
}

/** From which rate on something is said, and from which on sending stops (decisions, section 8). */
export const LINES: Readonly<Record<StopReason, { warn: number; stop: number }>> = {
  BOUNCES: { warn: 0.05, stop: 0.1 },
  COMPLAINTS: { warn: 0.001, stop: 0.005 },
}

/** Days over which sending is judged. One bad day stops it, and so does a bad week of few emails. */
export const JUDGED_DAYS = [1, 7] as const

/** Fewer emails than these say nothing; neither do one or two complaints, which nobody can rule out. */
export const LEAST_EMAILS = 100
const LEAST_COMPLAINTS = 3

/** Taken by a server, and not returned since. */
export function deliveredOf({ emails, bounced, failed }: Figures): number {
  return Math.max(0, emails - bounced - failed)
}

/** The share of bounces or complaints; null when there is nothing to divide by. */
export function rateOf(figures: Figures, reason: StopReason): number | null {
  return reason === 'BOUNCES'
    ? share(figures.bounced, figures.emails)
    : share(figures.complained, deliveredOf(figures))
}

/** A share of a number; null of nothing. Late reports may be about emails that are counted no more. */
export function share(part: number, whole: number): number | null {
  return whole > 0 ? Math.min(1, Math.max(0, part / whole)) : null
}

/** On which side of the lines these emails are. */
export function levelOf(figures: Figures, reason: StopReason): Level {
  const rate = rateOf(figures, reason)
  if (rate === null || figures.emails < LEAST_EMAILS) return 'OK'
  if (rate >= LINES[reason].stop && (reason === 'BOUNCES' || figures.complained >= LEAST_COMPLAINTS)) {
    return 'STOP'
  }
  return rate >= LINES[reason].warn ? 'WARN' : 'OK'
}
