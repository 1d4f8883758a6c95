import { HARD_BOUNCES } from '../../schema/values.ts'

/** Why an address did not accept an email (decisions, section 8, "Bounces"). */
export type BounceCategory = 'NO_SUCH_USER' | 'INTERNAL' | 'MAILBOX_FULL' | 'POLICY' | 'CONTENT' | 'TRANSIENT'

/**
 * The meaning of a refusal: either a category that concerns the recipient's address, or that the sender was refused,
 * for which the recipient is not at fault.
 */
export type Verdict = BounceCategory | 'SENDER_REFUSED'

/** A complete reply of an SMTP server. */
export type SmtpReply = { code: number; text: string }

/** The sender's address is malformed or its domain is invalid (RFC 3463 3.2). */
const OF_SENDER = /^[45]\.1\.[78]$/
/**
 * Texts by which Postfix, Exim and others refuse the sender only once the recipient is named, with a code that names
 * neither.
 */
const SENDER_WORDS =
  /sender address rejected|sender verif(?:y|ication) failed|(?:unknown|invalid) sender\b|domain of sender address|sender (?:address|domain)(?: is)? (?:not found|does not exist|unknown|invalid)/i
/**
 * Codes for timeouts, connections and loops. They count as temporary, however final, because the address may be good
 * (RFC 3463 3.5; Exchange uses 300 and 316 for timeouts). Not 5.4.1, which Microsoft uses for unknown addresses.
 */
const PASSING = new Set(['5.4.2', '5.4.3', '5.4.5', '5.4.6', '5.4.7', '5.4.300', '5.4.316'])
/**
 * Texts that mean an unknown mailbox. Fewer than for reports: a refusal at delivery may just as well concern our host
 * or its IP address.
 */
const UNKNOWN_MAILBOX =
  /no such (?:user|mailbox|recipient|person)|(?:unknown|invalid) (?:user|mailbox|recipient)|(?:user|mailbox|recipient) (?:is )?(?:unknown|not found|does not exist|doesn't exist)|no mailbox (?:here )?by that name/i
const NO_SUCH_USER = new Set(['5.1.1', '5.1.2', '5.1.10'])

/** Returns the enhanced status code of a reply (RFC 3463), or null. */
function enhancedCode({ text }: SmtpReply): string | null {
  return /^([245]\.\d{1,3}\.\d{1,3})\b/.exec(text)?.[1] ?? null
}

/**
 * Returns the meaning of a refusal. A reply without an enhanced code is judged by its code, and after RCPT TO also by
 * its text.
 */
export function verdictOf(reply: SmtpReply, isForRecipient: boolean): Verdict {
  const enhanced = enhancedCode(reply)
  if (refusesSender(enhanced ?? '5.0.0', reply.text)) return 'SENDER_REFUSED'
  // The reply code decides whether the refusal is permanent, whatever the enhanced code.
  if (reply.code < 500) return enhanced === '4.2.2' ? 'MAILBOX_FULL' : 'TRANSIENT'
  if (enhanced === null && reply.code === 552) return 'MAILBOX_FULL'
  if (enhanced === null) return isForRecipient && UNKNOWN_MAILBOX.test(reply.text) ? 'NO_SUCH_USER' : 'POLICY'
  return bounceCategory(enhanced)
}

/**
 * Returns whether a refusal of MAIL FROM concerns the size of the email (RFC 1870 6), and not its sender. Without an
 * enhanced code, 552 means it there.
 */
export function refusesSize(reply: SmtpReply): boolean {
  const enhanced = enhancedCode(reply)
  return enhanced === null ? reply.code === 552 : enhanced === '5.3.4' || enhanced === '5.2.3'
}

/** Returns the meaning of the enhanced code and the text with which a server gave an email up. */
export function bounceVerdict(enhanced: string, words: string): Verdict {
  return refusesSender(enhanced, words) ? 'SENDER_REFUSED' : bounceCategory(enhanced)
}

/**
 * Returns whether the sender was refused. The text only counts beside a code that says no more than that some address
 * is at fault.
 */
function refusesSender(enhanced: string, words: string): boolean {
  return OF_SENDER.test(enhanced) || (/^[45]\.[01]\./.test(enhanced) && SENDER_WORDS.test(words))
}

function bounceCategory(enhanced: string): BounceCategory {
  if (enhanced === '5.2.2' || enhanced === '4.2.2') return 'MAILBOX_FULL'
  if (enhanced.startsWith('4.') || PASSING.has(enhanced)) return 'TRANSIENT'
  if (NO_SUCH_USER.has(enhanced)) return 'NO_SUCH_USER'
  if (enhanced.startsWith('5.1.') || enhanced.startsWith('5.4.')) return 'INTERNAL'
  if (enhanced.startsWith('5.6.') || enhanced === '5.3.4' || enhanced === '5.2.3') return 'CONTENT'
  return 'POLICY'
}

/**
 * Returns whether a bounce is hard. Hard bounces end the message and block the address at once; soft ones are retried
 * for a day.
 */
export function isHard(category: BounceCategory): boolean {
  return HARD_BOUNCES.some((hard) => hard === category)
}

/** Returns a reply as it is stored: one printable line with at most 500 characters of text. */
export function replyLine({ code, text }: SmtpReply): string {
  return `${code} ${text.slice(0, 500)}`.toWellFormed().replaceAll(/[\s\p{Cc}]+/gu, ' ')
}

const BACK_OFF_SECONDS = [30, 120, 600, 1_800, 3_600, 7_200, 14_400] as const

/** Returns the milliseconds until the next try after `tries` of them; the last step repeats until the day is over. */
export function backOff(tries: number): number {
  const seconds = BACK_OFF_SECONDS[Math.min(Math.max(tries, 1), BACK_OFF_SECONDS.length) - 1] ?? 14_400
  return seconds * 1_000
}
