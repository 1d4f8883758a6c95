import { sql } from 'kysely'

import type { Plan } from '../../../../schema/values.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { type EntityManager, execute, json, row } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import { judge } from '../../audience/judge.ts'
import { zonedScope } from '../../audience/references.ts'
import { findSubscriber } from '../../subscribers/records.ts'
import { loadVersion } from '../definition/versions.ts'
import { enrol } from '../entry/enrolment.ts'
import { refuseStatus } from '../entry/enter-by-hand.ts'
import { recordDecisions } from '../runs/decisions.ts'
import { findEnterable } from '../runs/run-control.ts'

/**
 * An inbound webhook, and the limits of its organization. Ids are UUIDs; `now` is the database's time in epoch seconds.
 */
export type Webhook = {
  organizationId: string
  automationId: string
  stepId: string
  plan: Plan
  customLimits: { requestsPerMinute?: number } | null
  now: number
}

/** Finds a webhook of any organization by its UUID, or returns null. */
export async function findWebhook(em: EntityManager, webhookId: string): Promise<Webhook | null> {
  return await row<Webhook>(
    em,
    sql`select webhook.organization_id as "organizationId", webhook.automation_id as "automationId",
        webhook.step_id as "stepId", organization.plan, organization.custom_limits as "customLimits",
        extract(epoch from now())::float8 as now
      from automation_webhook webhook join organization on organization.id = webhook.organization_id
      where webhook.id = ${webhookId}`,
  )
}

/** A message whose signature was valid. `messageId` is its `webhook-id`; the other ids are UUIDs. */
export type Delivered = {
  webhookId: string
  automationId: string
  stepId: string
  messageId: string
  body: Record<string, unknown>
}

/** The answer to a message: the run that it started, or why it started none. */
export type Received = { entered: boolean; runId: string | null; reason: string | null }

/**
 * Lets the subscriber named in a message enter, with the body as entry data. The same message again gets the same
 * answer and has no effect. A message that throws a `Failure` leaves no receipt, so it can be sent again.
 */
export async function receiveWebhook(call: Call, delivered: Delivered): Promise<Received> {
  const { em, organization } = call
  const { webhookId, messageId } = delivered
  const isNew = await execute(
    em,
    sql`insert into automation_webhook_receipt (organization_id, webhook_id, message_id)
      values (${organization.id}, ${webhookId}, ${messageId}) on conflict do nothing`,
  )
  const where = sql`organization_id = ${organization.id} and webhook_id = ${webhookId} and message_id = ${messageId}`
  if (isNew === 0) {
    const told = await row<{ answer: Received }>(
      em,
      sql`select answer from automation_webhook_receipt where ${where}`,
    )
    if (told) return told.answer
  }
  const answer = await enter(call, delivered)
  await execute(em, sql`update automation_webhook_receipt set answer = ${json(answer)} where ${where}`)
  return answer
}

async function enter(call: Call, { automationId, stepId, messageId, body }: Delivered): Promise<Received> {
  const automation = await findEnterable(call, encodeId('wf', automationId))
  const subscriber = await findSubscriber(call, {
    ...(typeof body['subscriberId'] === 'string' && { subscriberId: body['subscriberId'] }),
    ...(typeof body['email'] === 'string' && { email: body['email'] }),
  })
  const keys = { automationId, stepId, subscriberId: subscriber.id }
  if (automation.status !== 'ACTIVE' || automation.versionId === null) {
    const reason = automation.status
    call.ifRefused((own) => recordDecisions(own, [{ ...keys, action: 'ENTRY_REFUSED', reason }]))
    refuseStatus(automation)
  }
  const version = await loadVersion(call.em, call.organization.id, automation.versionId)
  const trigger = version.graph.steps.get(stepId)
  if (trigger?.type !== 'TRIGGER') throw new Failure('NOT_FOUND', 'There is no webhook at this address.')
  const question = { automationId, where: [], filters: trigger.config.filters ?? [], places: [0] }
  const happening = { subscriberId: subscriber.id, data: body }
  const [verdict] = await judge(call.em, zonedScope(call.organization), [happening], [question])
  if (!verdict?.passing.has(0)) {
    const reason = verdict?.reason ?? 'FILTERS'
    await recordDecisions(call, [{ ...keys, action: 'ENTRY_REFUSED', reason }])
    return { entered: false, runId: null, reason }
  }
  const [enrolment] = await enrol(call, [
    {
      ...keys,
      automationName: automation.name,
      version,
      trigger: { type: 'INBOUND_WEBHOOK', messageId },
      context: body,
    },
  ])
  if (!enrolment || 'refusal' in enrolment) {
    return { entered: false, runId: null, reason: enrolment?.refusal ?? 'NOT_FOUND' }
  }
  return { entered: true, runId: encodeId('run', enrolment.runId), reason: null }
}
