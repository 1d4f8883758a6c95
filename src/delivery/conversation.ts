import { crossOrganization } from '../catalogue/unit-of-work.ts'
import type { Services } from '../services.ts'
import { type ClaimedMail, type LaneName, renewLeases } from './claims.ts'
import { wireAddress } from './headers.ts'
import { logUnrendered, type Ready } from './intake.ts'
import { acceptance, failureOutcome, unsent } from './outcomes.ts'
import type { LaneRate } from './rate.ts'
import type { RenderedMail } from './render.ts'
import { replyLine } from './replies.ts'
import type { MailProvider } from './smtp-provider.ts'
import { SmtpFailure } from './smtp-wire.ts'
import type { Outcome } from './tick.ts'

/** Hands the marked emails of a lane to relays. */
export type Conversations = {
  /** Sends an email before `deadline` (performance.now()) and returns its outcome; never throws. */
  hold(entry: Ready, deadline: number): Promise<Outcome>
  /** Returns how long (ms) no relay can be used; 0 while one can. */
  restMs(): number
  /** Extends the leases of emails whose relay has not answered yet. */
  renew(leaseMs: number): Promise<void>
}

/** Creates the conversations of a lane; together they keep to the lane's rate. */
export function createConversations(
  services: Services,
  name: LaneName,
  provider: MailProvider,
  rate: LaneRate,
  backOff: ((tries: number) => number) | undefined,
): Conversations {
  /** Emails whose last byte was written and that have no answer yet. */
  const ended = new Set<ClaimedMail>()
  let waitingForRate = 0
  let pausedUntil = 0
  const restMs = () => Math.max(0, pausedUntil - performance.now())

  async function converse(mail: ClaimedMail, rendered: RenderedMail, deadline: number): Promise<Outcome> {
    try {
      const reply = await provider.send(rendered.returnPath, wireAddress(mail.recipient), rendered.data, {
        deadline,
        isUrgent: name === 'transactional',
        beforeData: rate.isLimited ? takeTurn : null,
        onEnd: () => ended.add(mail),
      })
      return acceptance(mail, rendered.subject, replyLine(reply))
    } catch (error) {
      const failure = error instanceof SmtpFailure ? error : new SmtpFailure('connect', faultOf(error))
      if (failure.stage === 'connect') pause(failure)
      return failureOutcome(mail, rendered.subject, failure, {
        pauseMs: Math.ceil(restMs()),
        ...(backOff && { backOff }),
      })
    } finally {
      ended.delete(mail)
    }
  }

  async function takeTurn(): Promise<void> {
    waitingForRate += 1
    try {
      await rate.spend(() => waitingForRate)
    } finally {
      waitingForRate -= 1
    }
  }

  /** Pauses the lane until a relay can be tried again. The emails are not at fault. */
  function pause(failure: SmtpFailure): void {
    if (restMs() > 0) return
    const pauseMs = provider.restMs()
    if (pauseMs === 0) return
    pausedUntil = performance.now() + pauseMs
    services.log.warn({ lane: name, pauseMs, reason: failure.message }, 'no relay can be used')
  }

  return {
    async hold({ mail, content }, deadline) {
      if (typeof content === 'string') return unsent(mail, content)
      try {
        const rendered = await content.compose()
        return rendered ? await converse(mail, rendered, deadline) : unsent(mail, 'CONTENT_MISSING')
      } catch (error) {
        return unsent(mail, logUnrendered(services, mail, error))
      }
    },
    restMs,
    renew: (leaseMs) => renewLeases(crossOrganization(services), [...ended], leaseMs),
  }
}

function faultOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown fault'
}
