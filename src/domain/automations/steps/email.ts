import { sql } from 'kysely'

import { Failure } from '../../../catalogue/failure.ts'
import { row } from '../../../database.ts'
import { enqueueMessages } from '../../messages.ts'
import { type Enter, left, type StepResult, type Turn } from './step.ts'

type MessageState = { status: string; reason: string | null; createdAt: number; sentAt: number | null }

const FIRST_LOOK_MS = 30_000
const LAST_LOOK_MS = 15 * 60_000

/** Puts the email of the step on its way; the run waits for its outcome. */
export const enterEmail: Enter<'EMAIL'> = async (turn, { id, config }) => {
  const messageId = await sendStepEmail(turn, id, config.transactional)
  const outcome = { result: 'QUEUED', messageId }
  return { kind: 'waits', waitKind: 'MESSAGE', wakeAt: turn.run.now + FIRST_LOOK_MS, outcome }
}

/** Null while the email has no outcome; the next look is later the longer it takes, because delivery nudges. */
export async function leaveEmail(turn: Turn): Promise<StepResult | null> {
  const { run } = turn
  const message = await messageOutcome(turn)
  if (!message)
    return { kind: 'failed', reason: 'the email of this step is gone', outcome: { result: 'FAILED' } }
  const { status, reason } = message
  if (status === 'QUEUED' || status === 'SUBMITTING' || status === 'DELAYED') {
    const age = run.now - message.createdAt
    run.wakeAt = run.now + Math.min(LAST_LOOK_MS, Math.max(FIRST_LOOK_MS, age / 2))
    return null
  }
  const outcome = { result: status, ...(reason !== null && { reason }) }
  if (status === 'FAILED') return { kind: 'failed', reason: reason ?? 'the email failed', outcome }
  return left('next', outcome, message.sentAt ?? undefined)
}

/** Accepts the email of an EMAIL step, once for each visit, and answers its message id. */
async function sendStepEmail(
  { call, run, version }: Turn,
  stepId: string,
  transactional: boolean,
): Promise<string> {
  const email = version.definition.emails[stepId]
  if (!email?.sender) {
    throw new Failure(
      'WRONG_STATE',
      `The published version has no email with a sender for step ${JSON.stringify(stepId)}; publish the workflow again.`,
    )
  }
  const subscriber = await row<{ email: string }>(
    call.em,
    sql`select email from subscriber where organization_id = ${call.organization.id} and id = ${run.subscriberId}`,
  )
  const [message] = await enqueueMessages(call, [
    {
      class: transactional ? 'TRANSACTIONAL' : 'AUTOMATION',
      marketing: !transactional,
      key: `run/${run.id}/${stepId}/${run.visit}`,
      subscriberId: run.subscriberId,
      recipient: subscriber?.email ?? '',
      fromName: email.sender.name,
      fromEmail: email.sender.email,
      replyTo: email.replyTo,
      campaignId: email.campaignId,
      automationId: run.automationId,
      versionId: run.versionId,
      runId: run.id,
      stepId,
      visit: run.visit,
    },
  ])
  if (!message) throw new Error('an email was asked for and none was accepted')
  return message.id
}

/** What became of the email of the present visit; times in epoch milliseconds. */
async function messageOutcome({ call, run }: Turn): Promise<MessageState | null> {
  return await row<MessageState>(
    call.em,
    sql`select status, reason, extract(epoch from created_at)::float8 * 1000 as "createdAt",
        extract(epoch from sent_at)::float8 * 1000 as "sentAt"
      from message where organization_id = ${call.organization.id} and run_id = ${run.id}
        and step_id = ${run.stepId} and visit = ${run.visit}`,
  )
}
