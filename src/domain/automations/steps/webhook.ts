import { sql } from 'kysely'

import type { StepConfigs } from '../../../../schema/automation-steps.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import type { Graph } from '../../../../temporal/graph.ts'
import { execute, json, row } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import { personVariables } from '../../library/variables.ts'
import { findSubscriber } from '../../subscribers/records.ts'
import type { WebhookRequest } from '../webhooks/webhooks.ts'
import { fillJson, fillText, type Variables } from './fill-text.ts'
import { type Enter, left, type Settled, type StepResult, type Turn } from './step.ts'

/** How often a run looks for the outcome of its request, in ms, in case it missed the worker's nudge. */
const LOOK_MS = 5 * 60_000

/** Stores the request with its variables filled in. The workers' webhook loop sends it outside of any transaction. */
export const enterWebhook: Enter<'WEBHOOK'> = async (turn, step) => {
  const { call, run } = turn
  const request = await requestOf(turn, step)
  await execute(
    call.em,
    sql`insert into run_webhook (organization_id, automation_id, run_id, visit, request)
      values (${call.organization.id}, ${run.automationId}, ${run.id}, ${run.visit}, ${json(request)})
      on conflict (organization_id, run_id, visit) do nothing`,
  )
  const outcome = { result: 'SENDING', method: request.method }
  return { kind: 'waits', waitKind: 'WEBHOOK', wakeAt: run.now + LOOK_MS, outcome }
}

/** The state of a request as `reportWebhook` stores it; `isOpen` while it still has to be sent. */
type Told = { isOpen: boolean; reason: string | null; details: RequestDetails }
type RequestDetails = { status?: number; fault?: string; attempts?: number }

/** Continues a run that waits for its request. Returns null while the request is not over. */
export async function leaveWebhook(
  { call, run, version }: Turn,
  step: StepOf<'WEBHOOK'>,
): Promise<StepResult | null> {
  const found = await row<Told>(
    call.em,
    sql`select exists (select from run_webhook open where open.organization_id = step.organization_id
          and open.run_id = step.run_id and open.visit = step.visit) as "isOpen",
        outcome ->> 'reason' as reason, jsonb_strip_nulls(jsonb_build_object('status', outcome -> 'status',
          'fault', outcome -> 'fault', 'attempts', outcome -> 'attempts')) as details
      from run_step step where organization_id = ${call.organization.id} and run_id = ${run.id}
        and visit = ${run.visit}`,
  )
  if (found?.isOpen) {
    run.wakeAt = run.now + LOOK_MS
    return null
  }
  if (found && found.reason === null) return left('next', { result: 'DONE' })
  const reason = found?.reason ?? 'the request of this step is gone'
  return decideFailedRequest(version.graph, step.id, reason, found?.details)
}

/** Decides the result of a request that failed for good: the port `failed` if it is connected, else a failed step. */
export function decideFailedRequest(
  graph: Graph,
  stepId: string,
  reason: string,
  details: RequestDetails = {},
): Settled {
  const outcome = { result: 'FAILED', reason, ...details }
  if (graph.targets.get(stepId)?.has('failed')) return left('failed', outcome)
  return { kind: 'failed', code: 'REQUEST_FAILED', reason, outcome }
}

async function requestOf({ call, run }: Turn, { id, config }: StepOf<'WEBHOOK'>): Promise<WebhookRequest> {
  const person = await findSubscriber(call, { subscriberId: encodeId('sub', run.subscriberId) })
  const variables = { named: personVariables(person, call.organization.name), entry: run.context }
  const ids = {
    subscriberId: encodeId('sub', run.subscriberId),
    workflowId: encodeId('wf', run.automationId),
    runId: encodeId('run', run.id),
    stepId: id,
  }
  const { id: _id, ...known } = person
  const preset = { ...ids, subscriber: { ...known, id: ids.subscriberId }, entry: run.context }
  const { body, isJson } = bodyOf(config, preset, variables)
  const headers = Object.fromEntries(
    Object.entries(config.headers ?? {}).map(([name, value]) => [
      name.toLowerCase(),
      latin(fillText(value, variables)),
    ]),
  )
  return {
    url: fillText(config.url, variables, encodeURIComponent),
    method: config.method,
    headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers },
    body,
    timeoutSeconds: config.timeoutSeconds,
    retries: config.retries,
    saveResponseAs: config.saveResponseAs ?? null,
    stepId: id,
    firstVisit: await firstVisit({ call, run }),
  }
}

/**
 * Returns the first visit of the current step: for a retried run, the visit that failed first, else the current one.
 */
async function firstVisit({ call, run }: Pick<Turn, 'call' | 'run'>): Promise<number> {
  if (run.failedIn === null) return run.visit
  const found = await row<{ visit: number }>(
    call.em,
    sql`select coalesce(max(visit), 0) + 1 as visit from run_step where organization_id = ${call.organization.id}
      and run_id = ${run.id} and visit < ${run.visit} and outcome -> 'retriedAt' is null`,
  )
  return found?.visit ?? run.visit
}

/**
 * Encodes a header value, which is sent as Latin-1 bytes: other text becomes one character per byte of its UTF-8.
 */
function latin(value: string): string {
  const bytes = Buffer.from(value, 'latin1').toString('latin1') === value ? 'latin1' : 'utf8'
  return Buffer.from(value, bytes).toString('latin1')
}

/** Returns the request body: text as it is, anything else as JSON, `preset` if none is configured, and none for GET. */
function bodyOf(
  { method, body }: StepConfigs['WEBHOOK'],
  preset: object,
  variables: Variables,
): { body: string | null; isJson: boolean } {
  if (method === 'GET') return { body: null, isJson: false }
  if (typeof body === 'string') return { body: fillText(body, variables), isJson: false }
  return { body: JSON.stringify(body === undefined ? preset : fillJson(body, variables)), isJson: true }
}
