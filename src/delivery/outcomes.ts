import { emailFacts } from '../domain/emails/facts.ts'
import type { ClaimedMail } from './claims.ts'
import { Unreadable } from './mail-content.ts'
import { backOff, isHard, refusesSize, replyLine, verdictOf } from './replies.ts'
import { NoUtf8, SmtpFailure } from './smtp-wire.ts'
import type { Outcome } from './tick.ts'

/** Returns the outcome of an email that a relay accepted. */
export function acceptance(mail: ClaimedMail, subject: string, response: string): Outcome {
  return { ...base(mail, subject), kind: 'sent', response }
}

const READ_AGAIN_MS = 2_000

/** Returns the reason code of an email that could not be rendered. */
export function unmadeReason(error: unknown): string {
  return error instanceof Unreadable ? 'CONTENT_UNREADABLE' : 'RENDER_FAULT'
}

/**
 * Returns the outcome of an email that was offered to no relay. It fails with the reason code, except for content that
 * could not be read (`CONTENT_UNREADABLE`): that email goes back, which counts as no try.
 */
export function unsent(mail: ClaimedMail, reason: string): Outcome {
  const outcome = base(mail, null)
  if (reason === 'CONTENT_UNREADABLE') return { ...outcome, kind: 'back', reason, delayMs: READ_AGAIN_MS }
  return { ...outcome, kind: 'failed', reason }
}

/**
 * Returns the outcome of a failed conversation. Without a connection, the email goes back, which counts as no try.
 * After a broken connection it is retried. A refused sender makes it fail, or is retried when the refusal is temporary.
 * An email that is too large for the relay fails. Any other refusal is judged by its reply.
 */
export function failureOutcome(
  mail: ClaimedMail,
  subject: string,
  failure: SmtpFailure,
  options: { pauseMs: number; backOff?: (tries: number) => number },
): Outcome {
  const { stage, reply } = failure
  const response = reply ? replyLine(reply) : failure.message
  const known = { ...base(mail, subject), response, ambiguous: failure.ambiguous }
  if (stage === 'connect') {
    return { ...known, kind: 'back', delayMs: options.pauseMs, reason: 'RELAY_UNREACHABLE' }
  }
  const delayMs = (options.backOff ?? backOff)(mail.tries + 1)
  if (!reply) return { ...known, kind: 'soft', delayMs, reason: 'CONNECTION_LOST' }
  // The reply of `NoUtf8` is our own: no server has judged the address.
  if (failure instanceof NoUtf8) return { ...known, kind: 'failed', reason: 'ADDRESS_NOT_SENDABLE' }
  const isForGood = reply.code >= 500
  if (stage === 'mail' && isForGood && refusesSize(reply))
    return { ...known, kind: 'failed', reason: 'CONTENT' }
  const category = stage === 'mail' && isForGood ? 'SENDER_REFUSED' : verdictOf(reply, stage === 'rcpt')
  // Without a category the email counts as failed and not as bounced: the refusal says nothing about the recipient.
  if (category === 'SENDER_REFUSED') {
    return { ...known, kind: isForGood ? 'failed' : 'soft', delayMs, reason: category }
  }
  const data = { ...known.data, category }
  if (isHard(category)) return { ...known, kind: 'hard', category, reason: category, data }
  return { ...known, kind: 'soft', category, delayMs, reason: category, data }
}

function base(mail: ClaimedMail, subject: string | null): Omit<Outcome, 'kind'> {
  const { id, organizationId, attempt, batchId, recipient, subscriberId } = mail
  return {
    id,
    organizationId,
    attempt,
    batchId,
    recipient,
    subscriberId,
    subject,
    response: null,
    reason: null,
    category: null,
    delayMs: 0,
    ambiguous: false,
    data: eventData(mail, subject),
  }
}

/** Returns the data that the events of an email carry, with ids as TypeIDs. */
function eventData(mail: ClaimedMail, subject: string | null): Record<string, unknown> {
  return { ...emailFacts({ ...mail, messageId: mail.id }), ...(subject !== null && { subject }) }
}
