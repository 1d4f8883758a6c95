import { sql } from 'kysely'

import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { enqueueMessages } from '../messages.ts'
import type { RunState } from './run-state.ts'
import type { Version } from './versions.ts'

type Sending = { call: Call; run: RunState; version: Version }
type MessageState = { status: string; reason: string | null; createdAt: number; sentAt: number | null }

/** Accepts the email of an EMAIL step, once for each visit, and answers its message id. */
export async function sendStepEmail(
  { call, run, version }: Sending,
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
export async function messageOutcome({ call, run }: Sending): Promise<MessageState | null> {
  return await row<MessageState>(
    call.em,
    sql`select status, reason, extract(epoch from created_at)::float8 * 1000 as "createdAt",
        extract(epoch from sent_at)::float8 * 1000 as "sentAt"
      from message where organization_id = ${call.organization.id} and run_id = ${run.id}
        and step_id = ${run.stepId} and visit = ${run.visit}`,
  )
}
