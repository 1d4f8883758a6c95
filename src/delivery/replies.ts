import { HARD_BOUNCES } from '../../schema/values.ts'

/** Why an address did not take an email (decisions, section 8, "Bounces"). */
export type BounceCategory = 'NO_SUCH_USER' | 'INTERNAL' | 'MAILBOX_FULL' | 'POLICY' | 'CONTENT' | 'TRANSIENT'

/** What a refusal says: something of the recipient's address, or that the sender's was refused, which is not its fault. */
export type Verdict = BounceCategory | 'SENDER_REFUSED'

/** A complete reply of an SMTP server. */
export type SmtpReply = { code: number; text: string }

/** The address of the sender is malformed, or its domain is none (RFC 3463, 3.2). */
const OF_SENDER = /^[45]\.1\.[78]$/
/** What Postfix, Exim and others say of the sender only when the recipient is named, with a code that names neither. */
const SENDER_WORDS =
  /sender address rejected|sender verif(?:y|ication) failed|(?:unknown|invalid) sender\b|domain of sender address|sender (?:address|domain)(?: is)? (?:not found|does not exist|unknown|invalid)/i
/**
 * Time, a connection or a loop, however final: the address may well be good (RFC 3463, 3.5; of Exchange, 300 and 316 are
 * time). Not 5.4.1, which Microsoft says of addresses that it does not know.
 */
const PASSING = new Set(['5.4.2', '5.4.3', '5.4.5', '5.4.6', '5.4.7', '5.4.300', '5.4.316'])
/** Fewer than in reports: a refusal at delivery may as well be about our host or its address. */
const UNKNOWN_MAILBOX =
  /no such (?:user|mailbox|recipient|person)|(?:unknown|invalid) (?:user|mailbox|recipient)|(?:user|mailbox|recipient) (?:is )?(?:unknown|not found|does not exist|doesn't exist)|no mailbox (?:here )?by that name/i
const NO_SUCH_USER = new Set(['5.1.1', '5.1.2', '5.1.10'])

/** The enhanced status code of a reply (RFC 3463), where it has one. */
function enhancedCode({ text }: SmtpReply): string | null {
  return /^([245]\.\d{1,3}\.\d{1,3})\b/.exec(text)?.[1] ?? null
}

/** What a refusal says; a reply without an enhanced code is read by its number, and for the recipient by its words. */
export function verdictOf(reply: SmtpReply, isForRecipient: boolean): Verdict {
  const enhanced = enhancedCode(reply)
  if (refusesSender(enhanced ?? '5.0.0', reply.text)) return 'SENDER_REFUSED'
  // Whether it is for good is said by the reply, whatever its enhanced code.
  if (reply.code < 500) return enhanced === '4.2.2' ? 'MAILBOX_FULL' : 'TRANSIENT'
  if (enhanced === null && reply.code === 552) return 'MAILBOX_FULL'
  if (enhanced === null) return isForRecipient && UNKNOWN_MAILBOX.test(reply.text) ? 'NO_SUCH_USER' : 'POLICY'
  return bounceCategory(enhanced)
}

/** What an enhanced code, and the words beside it, say of an email that was given up. */
export function bounceVerdict(enhanced: string, words: string): Verdict {
  return refusesSender(enhanced, words) ? 'SENDER_REFUSED' : bounceCategory(enhanced)
}

/** Words only count beside a code that says no more than that some address is at fault. */
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
