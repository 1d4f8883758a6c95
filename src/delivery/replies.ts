import { HARD_BOUNCES } from '../../schema/values.ts'

/** Why an address did not take an email (decisions, section 8, "Bounces"). */
export type BounceCategory = 'NO_SUCH_USER' | 'INTERNAL' | 'MAILBOX_FULL' | 'POLICY' | 'CONTENT' | 'TRANSIENT'

/** A complete reply of an SMTP server. */
export type SmtpReply = { code: number; text: string }

const NO_SUCH_USER = new Set(['5.1.1', '5.1.2', '5.1.10'])

/** The enhanced status code of a reply (RFC 3463), where it has one. */
function enhancedCode({ text }: SmtpReply): string | null {
  return /^([245]\.\d{1,3}\.\d{1,3})\b/.exec(text)?.[1] ?? null
}

/** The category of a refusal; a reply without an enhanced code is read by its number, and never as a hard bounce. */
export function categoryOf(reply: SmtpReply): BounceCategory {
  if (reply.code < 500) return 'TRANSIENT'
  const enhanced = enhancedCode(reply)
  if (enhanced === null) return reply.code === 552 ? 'MAILBOX_FULL' : 'POLICY'
  return bounceCategory(enhanced)
}

/** The category of what an enhanced code says of an email that was given up. */
export function bounceCategory(enhanced: string): BounceCategory {
  if (enhanced === '5.2.2' || enhanced === '4.2.2') return 'MAILBOX_FULL'
  if (enhanced.startsWith('4.')) return 'TRANSIENT'
  if (NO_SUCH_USER.has(enhanced)) return 'NO_SUCH_USER'
  if (enhanced.startsWith('5.1.') || enhanced.startsWith('5.4.')) return 'INTERNAL'
  if (enhanced.startsWith('5.6.') || enhanced === '5.3.4' || enhanced === '5.2.3') return 'CONTENT'
  return 'POLICY'
}

/** Hard bounces end a message and its address at once; soft ones are tried for a day. */
export function isHard(category: BounceCategory): boolean {
  return HARD_BOUNCES.some((hard) => hard === category)
}

/** A reply as it is stored: one printable line, bounded. */
export function replyLine({ code, text }: SmtpReply): string {
  return `${code} ${text.slice(0, 500)}`.toWellFormed().replaceAll(/[\s\p{Cc}]+/gu, ' ')
}

const BACK_OFF_SECONDS = [30, 120, 600, 1_800, 3_600, 7_200, 14_400] as const

/** Milliseconds until the next try after so many of them; the last step repeats until the day is over. */
export function backOff(tries: number): number {
  const seconds = BACK_OFF_SECONDS[Math.min(Math.max(tries, 1), BACK_OFF_SECONDS.length) - 1] ?? 14_400
  return seconds * 1_000
}
