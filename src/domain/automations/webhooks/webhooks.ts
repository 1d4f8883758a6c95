import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { type EntityManager, execute, json, row, rows } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import type { WebRequest } from '../../../ports/web.ts'
import { recordEvents } from '../../events.ts'
import { nudgeRuns } from '../runs/nudge.ts'

/** The request of a WEBHOOK step, with its variables filled in. */
export type WebhookRequest = {
  url: string
  method: NonNullable<WebRequest['method']>
  headers: Record<string, string>
  body: string | null
  timeoutSeconds: number
  retries: number
  saveResponseAs: string | null
  stepId: string
  /**
   * The visit in which the request was first made. `webhook-id` is derived from it, so it stays the same after a retry.
   */
  firstVisit: number
}

/**
 * A request that a worker has claimed. `attempt` counts from 1; a report with an older `attempt` than the stored one is
 * ignored. Ids are UUIDs.
 */
export type ClaimedWebhook = {
  organizationId: string
  runId: string
  visit: number
  attempt: number
  request: WebhookRequest
}

/** A response as the run stores it. `note` says which part of it was not kept. */
export type KeptResponse = { value: unknown; note: string | null }

/**
 * The result of an attempt. `reason` is why it failed (null: it succeeded), and `fault` is a code for that if there was
 * no response. `retryMs` is the delay before the next attempt (null: there is none). `response` is null if none is to
 * be stored.
 */
export type WebhookResult = {
  status: number | null
  fault: string | null
  reason: string | null
  retryMs: number | null
  response: KeptResponse | null
}

/** A claim lasts for the timeout of the request and this much longer, in which the worker reports the result. */
const GRACE_SECONDS = 30

/**
 * Claims up to `most` due requests of ACTIVE workflows, taking turns between organizations. Reads at most `most` due
 * requests of each workflow, so its cost does not grow with a backlog.
 */
export async function claimWebhooks(em: EntityManager, most: number): Promise<ClaimedWebhook[]> {
  return await rows<ClaimedWebhook>(
    em,
    sql`with recursive place as (
        (select organization_id, automation_id from run_webhook order by organization_id, automation_id limit 1)
        union all
        select following.* from place cross join lateral (
          select webhook.organization_id, webhook.automation_id from run_webhook webhook
          where (webhook.organization_id, webhook.automation_id) > (place.organization_id, place.automation_id)
          order by webhook.organization_id, webhook.automation_id limit 1) following
      ), due as materialized (
        select soon.*, row_number() over (partition by soon.organization_id order by soon.next_attempt_at) as turn
        from place join automation
          on automation.organization_id = place.organization_id and automation.id = place.automation_id
        cross join lateral (
          select organization_id, run_id, visit, next_attempt_at from run_webhook webhook
          where webhook.organization_id = place.organization_id and webhook.automation_id = place.automation_id
            and webhook.next_attempt_at <= now()
          order by webhook.next_attempt_at limit ${most}) soon
        where automation.status = 'ACTIVE'
      ), taken as (
        select webhook.organization_id, webhook.run_id, webhook.visit from due
        join run_webhook webhook using (organization_id, run_id, visit)
        where webhook.next_attempt_at <= now()
        order by due.turn, webhook.next_attempt_at limit ${most} for update of webhook skip locked
      )
      update run_webhook webhook set attempt = attempt + 1,
        next_attempt_at = now() + make_interval(secs => (request ->> 'timeoutSeconds')::float8 + ${GRACE_SECONDS})
      from taken where webhook.organization_id = taken.organization_id and webhook.run_id = taken.run_id
        and webhook.visit = taken.visit
      returning webhook.organization_id as "organizationId", webhook.run_id as "runId", webhook.visit,
        webhook.attempt, webhook.request`,
  )
}

/**
 * Records the result of an attempt: schedules the next one, or deletes the request, continues the run and records
 * WEBHOOK_EXECUTED. Ignores a worker that has lost its claim. Locks the subscriber and the run first, in the same order
 * as code that ends a run and deletes its request.
 */
export async function reportWebhook(call: Call, claim: ClaimedWebhook, result: WebhookResult): Promise<void> {
  const { em, organization } = call
  const { runId, visit, attempt, request } = claim
  const run = await row<{ automationId: string; subscriberId: string }>(
    em,
    sql`select run.automation_id as "automationId", run.subscriber_id as "subscriberId" from automation_run run
      join subscriber on subscriber.organization_id = run.organization_id and subscriber.id = run.subscriber_id
      where run.organization_id = ${organization.id} and run.id = ${runId}
      for share of subscriber for no key update of run`,
  )
  if (!run) return
  const mine = sql`organization_id = ${organization.id} and run_id = ${runId} and visit = ${visit}`
  const { status, fault, reason, retryMs, response } = result
  const details = {
    attempts: attempt,
    ...(status !== null && { status }),
    ...(fault !== null && { fault }),
  }
  const held = await row(
    em,
    sql`select from run_webhook where ${mine} and attempt = ${attempt} for no key update`,
  )
  if (held && retryMs !== null) {
    await execute(
      em,
      sql`update run_webhook set next_attempt_at = now() + make_interval(secs => ${retryMs / 1_000}::float8) where ${mine}`,
    )
    const note = { ...details, lastFailure: reason }
    await execute(em, sql`update run_step set outcome = outcome || ${json(note)} where ${mine}`)
    return
  }
  if (held) {
    await execute(em, sql`delete from run_webhook where ${mine}`)
    const outcome = {
      ...details,
      ...(reason === null ? { result: 'DONE' } : { result: 'FAILED', reason }),
      ...(response?.note && { note: response.note }),
    }
    await execute(
      em,
      sql`update run_step set outcome = (outcome - 'lastFailure' - 'fault' - 'status') || ${json(outcome)} where ${mine}`,
    )
    await tellRun(call, claim, result)
  } else if (!(await noteLate(call, claim, details))) {
    return
  }
  const data = requestFacts({ ...run, runId, ...request }, { ...details, succeeded: reason === null })
  await recordEvents(call, [{ subscriberId: run.subscriberId, type: 'WEBHOOK_EXECUTED', data }])
}

/**
 * Notes the attempt in the timeline of a run that ended while the request was being sent, which deleted the request
 * row. Returns false if the step was not canceled in this way, or a later attempt is noted already.
 */
async function noteLate(
  { em, organization }: Call,
  { runId, visit, attempt }: ClaimedWebhook,
  details: object,
): Promise<boolean> {
  const count = await execute(
    em,
    sql`update run_step set outcome = (outcome - 'lastFailure' - 'fault' - 'status') || ${json(details)}
      where organization_id = ${organization.id} and run_id = ${runId} and visit = ${visit}
        and outcome ->> 'result' = 'CANCELED' and coalesce((outcome ->> 'attempts')::int, 0) < ${attempt}
        and not exists (select from run_webhook open where open.organization_id = run_step.organization_id
          and open.run_id = run_step.run_id and open.visit = run_step.visit)`,
  )
  return count > 0
}

/** Returns the data of a WEBHOOK_EXECUTED event. The given ids are UUIDs. */
export function requestFacts(
  {
    automationId,
    runId,
    stepId,
    method,
  }: { automationId: string; runId: string; stepId: string; method: string },
  result: { succeeded: boolean; attempts?: number; status?: number; fault?: string },
): Record<string, unknown> {
  const ids = { workflowId: encodeId('wf', automationId), runId: encodeId('run', runId) }
  return { ...ids, stepId, method, ...result }
}

/** Saves the response into the run's entry data, if the step asks for that, and wakes the run. */
async function tellRun(
  call: Call,
  { runId, visit, request }: ClaimedWebhook,
  { response }: WebhookResult,
): Promise<void> {
  const { em, organization } = call
  const saved =
    request.saveResponseAs !== null && response !== null ? { [request.saveResponseAs]: response.value } : {}
  await execute(
    em,
    sql`update automation_run set context = context || ${json(saved)}, wake_at = now()
      where organization_id = ${organization.id} and id = ${runId} and visit = ${visit} and wait_kind = 'WEBHOOK'`,
  )
  await nudgeRuns(em, organization.id, [runId])
}
