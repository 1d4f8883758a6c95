import type { Level, StopReason } from '../../../schema/deliverability.ts'

/** Counts of emails by outcome. */
export type Figures = {
  /** Emails that servers accepted or refused. */
  emails: number
  bounced: number
  failed: number
  complained: number
  /** Emails with open tracking. */
  tracked: number
  opened: number
}

/** The rates that lead to a warning, and those that stop sending (decisions, section 8). */
export const THRESHOLDS: Readonly<Record<StopReason, { warn: number; stop: number }>> = {
  BOUNCES: { warn: 0.05, stop: 0.1 },
  COMPLAINTS: { warn: 0.001, stop: 0.005 },
}

/** The periods in days that sending is judged by: one bad day stops it, and so does a bad week with few emails. */
export const JUDGED_DAYS = [1, 7] as const

/** Rates of fewer emails mean little; so do one or two complaints, which can always happen. */
export const LEAST_EMAILS = 100
const LEAST_COMPLAINTS = 3

/** Returns the number of emails that a server accepted and did not return later. */
export function deliveredOf({ emails, bounced, failed }: Figures): number {
  return Math.max(0, emails - bounced - failed)
}

/** Returns the rate of bounces or complaints; null without emails. */
export function rateOf(figures: Figures, reason: StopReason): number | null {
  return reason === 'BOUNCES'
    ? share(figures.bounced, figures.emails)
    : share(figures.complained, deliveredOf(figures))
}

/** Returns a ratio between 0 and 1; null without emails. Clamped, because reports may be about older emails. */
export function share(part: number, whole: number): number | null {
  return whole > 0 ? Math.min(1, Math.max(0, part / whole)) : null
}

/** Returns the level of these figures. */
export function levelOf(figures: Figures, reason: StopReason): Level {
  const rate = rateOf(figures, reason)
  if (rate === null || figures.emails < LEAST_EMAILS) return 'OK'
  if (rate >= THRESHOLDS[reason].stop && (reason === 'BOUNCES' || figures.complained >= LEAST_COMPLAINTS)) {
    return 'STOP'
  }
  return rate >= THRESHOLDS[reason].warn ? 'WARN' : 'OK'
}
