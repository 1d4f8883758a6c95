import { sql } from 'kysely'

import type { StepConfigs } from '../../../../schema/automation-steps.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import type { Graph } from '../../../../temporal/graph.ts'
import { execute, json, row } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import { findSubscriber } from '../../subscriber-records.ts'
import { personVariables } from '../../variables.ts'
import type { WebhookRequest } from '../webhooks/webhooks.ts'
import { fillJson, fillText, type Variables } from './fill-text.ts'
import { type Enter, left, type Settled, type StepResult, type Turn } from './step.ts'

/** The worker tells the run what came of it; this is for what it could not tell. */
const LOOK_MS = 5 * 60_000

/** Writes down what is to be sent, as it is now; a loop of its own sends it, with no transaction open meanwhile. */
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

/** What the worker wrote down of a request; see reportWebhook. */
type Told = { isOpen: boolean; reason: string | null; details: RequestDetails }
type RequestDetails = { status?: number; fault?: string; attempts?: number }

/** Null while it is being sent. */
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

/** What a request that failed for good comes to: the port `failed` where it leads somewhere, else the step's failure. */
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

/** The visit at which a run that was retried came to its present step first. */
async function firstVisit({ call, run }: Pick<Turn, 'call' | 'run'>): Promise<number> {
  if (run.failedIn === null) return run.visit
  const found = await row<{ visit: number }>(
    call.em,
    sql`select coalesce(max(visit), 0) + 1 as visit from run_step where organization_id = ${call.organization.id}
      and run_id = ${run.id} and visit < ${run.visit} and outcome -> 'retriedAt' is null`,
  )
  return found?.visit ?? run.visit
}

/** Headers are bytes: what is not Latin-1 travels as UTF-8. */
function latin(value: string): string {
  const bytes = Buffer.from(value, 'latin1').toString('latin1') === value ? 'latin1' : 'utf8'
  return Buffer.from(value, bytes).toString('latin1')
}

/** Text is sent as it is, anything else as JSON; without a body, who it is about; GET has none. */
function bodyOf(
  { method, body }: StepConfigs['WEBHOOK'],
  preset: object,
  variables: Variables,
): { body: string | null; isJson: boolean } {
  if (method === 'GET') return { body: null, isJson: false }
  if (typeof body === 'string') return { body: fillText(body, variables), isJson: false }
  return { body: JSON.stringify(body === undefined ? preset : fillJson(body, variables)), isJson: true }
}
