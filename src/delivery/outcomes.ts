import type { ClaimedMail } from './claims.ts'
import { eventData, Unreadable } from './render.ts'
import { backOff, isHard, replyLine, verdictOf } from './replies.ts'
import { NoUtf8, SmtpFailure } from './smtp-wire.ts'
import type { Outcome } from './tick.ts'

/** The outcome of an email that a relay took. */
export function acceptance(mail: ClaimedMail, subject: string, response: string): Outcome {
  return { ...base(mail, subject), kind: 'sent', response }
}

const READ_AGAIN_MS = 2_000

/** Why an email could not be made, in one of our own words. */
export function unmadeReason(error: unknown): string {
  return error instanceof Unreadable ? 'CONTENT_UNREADABLE' : 'RENDER_FAULT'
}

/**
 * The outcome of an email that no relay was asked about; `reason` is one of our own words. It can never be sent, unless
 * what it is made of could not be read: then it goes back, and that is no try.
 */
export function unsent(mail: ClaimedMail, reason: string): Outcome {
  const outcome = base(mail, null)
  if (reason === 'CONTENT_UNREADABLE') return { ...outcome, kind: 'back', reason, delayMs: READ_AGAIN_MS }
  return { ...outcome, kind: 'failed', reason }
}

/**
 * The outcome of a conversation that failed. Without a connection it is nobody's fault and no try; a sender who is
 * refused fails; an address is judged by its reply; a connection that broke is tried again.
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
  // No server has said anything of the address yet.
  if (failure instanceof NoUtf8) return { ...known, kind: 'failed', reason: 'ADDRESS_NOT_SENDABLE' }
  const isForGood = reply.code >= 500
  const category = stage === 'mail' && isForGood ? 'SENDER_REFUSED' : verdictOf(reply, stage === 'rcpt')
  // Without a category it ends as a failure, which says nothing of the recipient.
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
