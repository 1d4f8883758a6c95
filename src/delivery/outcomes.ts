import type { ClaimedMail } from './claims.ts'
import { eventData } from './render.ts'
import { backOff, categoryOf, isHard, replyLine } from './replies.ts'
import { SmtpFailure } from './smtp-wire.ts'
import type { Outcome } from './tick.ts'

/** The outcome of an email that a relay took. */
export function acceptance(mail: ClaimedMail, subject: string, response: string): Outcome {
  return { ...base(mail, subject), kind: 'sent', response }
}

/** The outcome of an email that can never be sent; `reason` is one of our own words. */
export function impossible(mail: ClaimedMail, reason: string): Outcome {
  return { ...base(mail, null), kind: 'failed', reason }
}

/**
 * The outcome of a conversation that failed. Without a connection it is nobody's fault and no try; a sender that the
 * relay refuses fails; an address is judged by its reply; a connection that broke is tried again.
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
  if (stage === 'mail' && reply.code >= 500) return { ...known, kind: 'failed', reason: 'SENDER_REFUSED' }
  const category = categoryOf(reply)
  const data = { ...known.data, category }
  if (isHard(category)) return { ...known, kind: 'hard', category, reason: category, data }
  return { ...known, kind: 'soft', category, delayMs, reason: category, data }
}

function base(mail: ClaimedMail, subject: string | null): Omit<Outcome, 'kind'> {
  const { id, organizationId, attempt, subscriberId } = mail
  return {
    id,
    organizationId,
    attempt,
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
