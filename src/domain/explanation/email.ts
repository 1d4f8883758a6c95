import { type RawBuilder, sql } from 'kysely'

import type { Reason } from '../../../schema/explanation.ts'
import type { Call } from '../../catalogue/tool.ts'
import { rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { presentStop, type StopRow } from '../deliverability/stop-words.ts'
import { standInWords } from '../domains/stand-in.ts'
import { isPending } from '../emails/messages.ts'
import { timestampOrNull } from '../text.ts'
import { type Decision, decisionWords, isDeferral } from './ledger.ts'
import { spoken } from './words.ts'

/** An email with its place in the queue. Ids are uuids, times are in the API form. */
export type Email = {
  id: string
  status: string
  runId: string | null
  stepId: string | null
  reason: string | null
  response: string | null
  attempts: number
  resent: boolean
  from: string
  stoodInFor: string | null
  createdAt: string | null
  sentAt: string | null
  deliveredAt: string | null
  openedAt: string | null
  clickedAt: string | null
  failedAt: string | null
  state: string | null
  /** The stop of its domain, when that holds the email. */
  stop: (StopRow & { domain: string }) | null
  lane: string | null
  nextAttemptAt: string | null
  /** Queued emails of the same lane, organization and weight before it, counted up to `AHEAD` + 1. */
  ahead: number
}

const AHEAD = 1_000
const TIMES = [
  'createdAt',
  'sentAt',
  'deliveredAt',
  'openedAt',
  'clickedAt',
  'failedAt',
  'nextAttemptAt',
] as const
const MOST = 100

/** Returns the latest emails that meet a condition on `message m`, at most `MOST`, oldest first. */
export async function readEmails(
  { em, organization }: Call,
  condition: RawBuilder<boolean>,
): Promise<Email[]> {
  const found = await rows<Email>(
    em,
    sql`select m.id, m.status, m.run_id as "runId", m.step_id as "stepId", m.reason, m.response, m.attempts, m.resent,
        m.from_email as "from", m.stood_in_for as "stoodInFor",
        m.created_at as "createdAt", m.sent_at as "sentAt", m.delivered_at as "deliveredAt",
        m.opened_at as "openedAt", m.clicked_at as "clickedAt", m.failed_at as "failedAt", q.state, q.lane,
        (select to_jsonb(held) from (select d.domain, stop.stream, stop.reason, stop.days, stop.emails, stop.counted,
            stop.stopped_at as "stoppedAt" from sending_stop stop
          join domain d on d.organization_id = stop.organization_id and d.id = stop.domain_id
          where stop.organization_id = q.organization_id and stop.domain_id = q.held_by
            and (stop.stream = 'MARKETING') = m.marketing) held) as stop,
        q.next_attempt_at as "nextAttemptAt", (select count(*)::int from (select from delivery_queue before
          where before.lane = q.lane and before.organization_id = q.organization_id and before.weight = q.weight
            and before.state = 'queued' and before.id < q.id limit ${AHEAD + 1}) counted) as ahead
      from message m left join delivery_queue q on q.organization_id = m.organization_id and q.id = m.id
      where m.organization_id = ${organization.id} and ${condition}
      order by m.id desc limit ${MOST}`,
  )
  return found.toReversed().map((email) => ({
    ...email,
    ...Object.fromEntries(TIMES.map((time) => [time, timestampOrNull(email[time])])),
  }))
}

/** Whether a mail server accepted the email and it did not bounce. */
export function hasArrived({ status }: Email): boolean {
  return status === 'SENT' || status === 'DELIVERED' || status === 'COMPLAINED'
}

/** Returns the history of an email in order. A ledger decision replaces the outcome that it led to. */
export function emailReasons(call: Call, email: Email, ledger: readonly Decision[]): Reason[] {
  const about = ledger.filter(({ messageId }) => messageId === email.id)
  const decided = about.findLast((decision) => !isDeferral(decision))
  const own = {
    emailId: encodeId('eml', email.id),
    ...(email.runId !== null && { runId: encodeId('run', email.runId) }),
    ...(email.stepId !== null && { stepId: email.stepId }),
  }
  const reasons: Reason[] = []
  const tell = (at: string | null, outcome: Reason['outcome'], code: string, message: string) =>
    reasons.push({ at, outcome, code, message, ...own })
  tell(email.createdAt, 'FOR', 'QUEUED', 'The email was written and queued for sending.')
  if (email.stoodInFor !== null) {
    const words = standInWords({ email: email.from, stoodInFor: email.stoodInFor })
    tell(email.createdAt, 'NOTE', 'DOMAIN_STOOD_IN', words)
  }
  for (const { at, reason, data } of about.filter(isDeferral)) {
    tell(at, 'NOTE', reason, `The email was held back. ${decisionWords(reason, data)}`)
  }
  if (email.sentAt !== null) {
    tell(email.sentAt, 'FOR', 'SENT', `The mail server took the email${replied(email)}.`)
  }
  if (email.resent) {
    const message =
      'It may have come twice: it was sent again because a sender was lost before it could say how it went.'
    tell(email.sentAt, 'NOTE', 'SENT_AGAIN', message)
  }
  if (email.deliveredAt !== null) tell(email.deliveredAt, 'FOR', 'DELIVERED', 'The email was delivered.')
  if (email.openedAt !== null) tell(email.openedAt, 'NOTE', 'OPENED', 'They opened the email.')
  if (email.clickedAt !== null) tell(email.clickedAt, 'NOTE', 'CLICKED', 'They followed a link in the email.')
  if (email.status === 'COMPLAINED') tell(null, 'NOTE', 'COMPLAINED', 'They reported the email as spam.')
  if (isPending(email)) reasons.push({ ...waitingReason(call, email), ...own })
  else if (!hasArrived(email)) {
    const reason = decided?.reason ?? email.reason ?? email.status
    const words = decisionWords(reason, decided?.data)
    const message = email.response === null ? words : `${words} It said: “${email.response}”.`
    tell(decided?.at ?? email.failedAt, 'AGAINST', reason, message)
  }
  return reasons
}

/** Returns the server's reply to a sent email; a later failure has replaced it. */
function replied({ response, failedAt }: Email): string {
  return response === null || failedAt !== null ? '' : `, saying “${response}”`
}

/** Returns what a pending email waits for. */
function waitingReason({ organization }: Call, email: Email): Reason {
  const waiting = (code: string, message: string): Reason => ({ at: null, outcome: 'WAITING', code, message })
  if (email.state === 'held' && email.stop !== null) {
    return waiting('SENDING_STOPPED', presentStop(email.stop.domain, email.stop).message)
  }
  if (email.state === 'held') return waiting('HELD', 'The email is held back by a pause.')
  if (email.state === 'apart') {
    const message =
      'The outcome of the email could not be stored, so it was set aside; the log of the worker says why.'
    return waiting('SET_APART', message)
  }
  if (email.state === 'deferred') {
    const next =
      email.nextAttemptAt === null ? 'soon' : `on ${spoken(email.nextAttemptAt, organization.timezone)}`
    const why = email.reason === null ? '' : ` ${decisionWords(email.reason)}`
    const said = email.response === null ? '' : ` It said: “${email.response}”.`
    return waiting(
      'RETRYING',
      `The email was deferred after ${email.attempts} tries and is tried again ${next}, for up to a day.${why}${said}`,
    )
  }
  if (email.state !== 'queued') return waiting('BEING_SENT', 'The email is being handed to the mail server.')
  const many = email.ahead > AHEAD ? `more than ${AHEAD}` : String(email.ahead)
  return waiting(
    'IN_QUEUE',
    `The email waits for its turn in the ${email.lane} lane; ${many} of the same kind are before it.`,
  )
}
