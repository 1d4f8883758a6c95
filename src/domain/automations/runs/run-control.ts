import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import type { Run, StepReference } from '../../../../schema/run.ts'
import type { WorkflowStatus } from '../../../../schema/values.ts'
import { FAST_FORWARD, type FastForward, type FastForwarded } from '../../../../temporal/contract.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call, Outside } from '../../../catalogue/tool.ts'
import { crossOrganization } from '../../../catalogue/unit-of-work.ts'
import { execute, row, rows } from '../../../database.ts'
import { decodeId, encodeId, missing } from '../../../ids.ts'
import { findSubscriber, type SubscriberChoice } from '../../subscribers/records.ts'
import { loadVersion } from '../definition/versions.ts'
import { IS_ACTIVE } from './active.ts'
import { nudgeRuns, type RunKey, workflowIdOf } from './nudge.ts'
import { findAutomationId, readRun, readRuns } from './run-records.ts'
import { cancelRuns } from './runs.ts'

/** The members of a workflow that entering it and moving its runs need. Ids are UUIDs. */
export type AutomationRow = { id: string; name: string; status: WorkflowStatus; versionId: string | null }

/** One subscriber in one workflow, as callers of tools name them. */
export type Enrolled = SubscriberChoice & { workflowId: string }

/** Cancels the active runs of one subscriber in one workflow and returns them. It is no error if there are none. */
export async function removeFromWorkflow(
  call: Call,
  input: Enrolled & { reason?: string | undefined },
): Promise<Run[]> {
  const automationId = await findAutomationId(call, input.workflowId)
  const subscriber = await findSubscriber(call, input)
  const active = await rows<{ id: string }>(
    call.em,
    sql`select id from automation_run where organization_id = ${call.organization.id}
      and automation_id = ${automationId} and subscriber_id = ${subscriber.id}
      and ${IS_ACTIVE}`,
  )
  const ids = active.map(({ id }) => id)
  const reason = input.reason === undefined ? {} : { reason: input.reason }
  return await readRuns(call, await cancelRuns(call, ids, 'MANUAL', reason))
}

/**
 * The result of a fast-forward: the run, the step in which it waited, and the step where it is now (null: it ended).
 */
export type Moved = { run: Run; fromStep: StepReference; toStep: StepReference | null }

type WaitingRun = { id: string; stepId: string; visit: number }

/**
 * Stores the request to end the current wait of a run; `settleFastForward` then waits until the run has moved.
 * Repeating the request for the same wait has no further effect. Throws `WRONG_STATE` if the workflow is PAUSED, no run
 * waits (in `expectedStepId`), or several do.
 */
export async function requestFastForward(
  call: Call,
  input: Enrolled & { runId?: string | undefined; expectedStepId?: string | undefined },
): Promise<Moved> {
  const automation = await findEnterable(call, input.workflowId)
  const subscriber = await findSubscriber(call, input)
  const runId = input.runId === undefined ? null : await findRunId(call, input.runId)
  if (automation.status === 'PAUSED') {
    throw new Failure('WRONG_STATE', 'The workflow is PAUSED, so no run moves; set it ACTIVE first.')
  }
  const waiting = await rows<WaitingRun>(
    call.em,
    sql`select id, current_step_id as "stepId", visit from automation_run
      where organization_id = ${call.organization.id} and automation_id = ${automation.id}
        and subscriber_id = ${subscriber.id} and (${runId}::uuid is null or id = ${runId}::uuid)
        and status = 'WAITING' order by id for update`,
  )
  const expected = input.expectedStepId
  const chosen = waiting.filter(({ stepId }) => expected === undefined || stepId === expected)
  if (chosen.length > 1) {
    const runs = chosen.map(({ id }) => encodeId('run', id))
    throw new Failure(
      'WRONG_STATE',
      `Several runs of this subscriber wait: ${runs.join(', ')}; name one as runId.`,
      {
        details: { runs },
      },
    )
  }
  const [run] = chosen
  if (!run)
    return await alreadyMoved(
      call,
      { automationId: automation.id, subscriberId: subscriber.id, runId },
      expected,
      waiting,
    )
  await execute(
    call.em,
    sql`with noted as (
        update run_step set outcome = outcome || jsonb_build_object('fastForwardedAt',
          to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
        where organization_id = ${call.organization.id} and run_id = ${run.id} and visit = ${run.visit})
      update automation_run set wake_reason = 'FAST_FORWARD', wake_at = now()
      where organization_id = ${call.organization.id} and id = ${run.id} and wake_reason is null`,
  )
  await nudgeRuns(call.em, call.organization.id, [run.id])
  const record = await readRun(call, run.id)
  if (!record.currentStep) throw new Error('a waiting run has no step')
  return { run: record, fromStep: record.currentStep, toStep: null }
}

const SETTLE_MS = 5_000
const LOOK_MS = 50

/**
 * Waits until the run has moved. Throws `UNAVAILABLE` if it has not within `SETTLE_MS`; the call may then be repeated.
 */
export async function settleFastForward(call: Outside, data: Moved): Promise<Moved> {
  const runId = decodeId('run', data.run.id)
  const deadline = Date.now() + SETTLE_MS
  const { visit } = data.run
  let moved = data.run.endedAt === null ? null : data.run
  if (data.toStep !== null) return data
  if (moved === null) await tellRunner(call, data, deadline)
  while (moved === null) {
    const now = await readRun({ ...call, em: crossOrganization(call.services) }, runId)
    // An email that waited for its sending hours is sent in the same visit, so compare the status as well.
    if (now.visit > visit || now.endedAt !== null || now.status !== 'WAITING') moved = now
    else if (Date.now() > deadline) outcomeUnknown()
    else await sleep(LOOK_MS)
  }
  return { run: moved, fromStep: data.fromStep, toStep: moved.endedAt === null ? moved.currentStep : null }
}

async function tellRunner(
  { organization, services }: Outside,
  { run, fromStep }: Moved,
  deadline: number,
): Promise<void> {
  const key = await row<RunKey>(
    crossOrganization(services),
    sql`select automation_id as "automationId", subscriber_id as "subscriberId", number from automation_run
      where organization_id = ${organization.id} and id = ${decodeId('run', run.id)}`,
  )
  if (!key) missing('run', run.id)
  const argument: FastForward = { stepId: fromStep.id, visit: run.visit }
  try {
    const client = await services.temporal.client()
    const handle = client.workflow.getHandle(workflowIdOf(key))
    // One update id per wait, so that simultaneous callers share one update.
    const options = {
      args: [argument] as [FastForward],
      updateId: `${fromStep.id.slice(0, 64)}/${run.visit}`,
    }
    await client.withDeadline(deadline, () =>
      handle.executeUpdate<FastForwarded, [FastForward]>(FAST_FORWARD, options),
    )
  } catch (error) {
    // The workflow has just ended or cannot be reached. The caller finds out from the database.
    services.log.info({ err: error, runId: run.id }, 'the fast-forward update was not answered')
  }
}

function outcomeUnknown(): never {
  throw new Failure(
    'UNAVAILABLE',
    'The request is stored, but the runner has not moved yet, so the outcome is unknown; repeat the request with the same expectedStepId.',
    { retryAfter: 5 },
  )
}

/**
 * Answers a request for a wait that is over: if a fast-forward of this step was requested, and the step was left in the
 * last ten minutes or still sends its email, returns what the first call returned. Otherwise throws `WRONG_STATE`.
 */
async function alreadyMoved(
  call: Call,
  where: { automationId: string; subscriberId: string; runId: string | null },
  expected: string | undefined,
  waiting: readonly WaitingRun[],
): Promise<Moved> {
  const done = expected === undefined ? null : await lastFastForward(call, where, expected)
  if (done) {
    const run = await readRun(call, done.runId)
    const { graph } = await loadVersion(call.em, call.organization.id, decodeId('wfv', run.version.id))
    const name = graph.steps.get(done.stepId)?.name ?? null
    const fromStep = { id: done.stepId, type: done.type, name }
    return { run, fromStep, toStep: run.endedAt === null ? run.currentStep : null }
  }
  const at = waiting.map(({ stepId }) => stepId)
  if (expected !== undefined && at.length > 0) {
    const message = `No run of this subscriber waits in step ${JSON.stringify(expected)}; it waits in ${at.join(', ')}.`
    throw new Failure('WRONG_STATE', message, { details: { waitingIn: at } })
  }
  throw new Failure(
    'WRONG_STATE',
    'No run of this subscriber waits in this workflow; get_subscriber_workflow_runs shows where their runs stand.',
  )
}

type Expired = { runId: string; stepId: string; type: StepReference['type'] }

async function lastFastForward(
  { em, organization }: Call,
  { automationId, subscriberId, runId }: { automationId: string; subscriberId: string; runId: string | null },
  stepId: string,
): Promise<Expired | null> {
  return await row<Expired>(
    em,
    sql`select step.run_id as "runId", step.step_id as "stepId", step.type
      from automation_run run join run_step step on step.organization_id = run.organization_id and step.run_id = run.id
      where run.organization_id = ${organization.id} and run.automation_id = ${automationId}
        and run.subscriber_id = ${subscriberId} and (${runId}::uuid is null or run.id = ${runId}::uuid)
        and step.step_id = ${stepId} and step.outcome -> 'fastForwardedAt' is not null
        and coalesce(step.ended_at, now()) > now() - interval '10 minutes'
      order by coalesce(step.ended_at, now()) desc limit 1`,
  )
}

/** Returns the UUID of a run. Throws `NOT_FOUND`. */
async function findRunId({ em, organization }: Call, runId: string): Promise<string> {
  const found = await row<{ id: string }>(
    em,
    sql`select id from automation_run where organization_id = ${organization.id} and id = ${decodeId('run', runId)}`,
  )
  return found?.id ?? missing('run', runId)
}

/** Reads a workflow and locks it, so that its status cannot change in this transaction. Throws `NOT_FOUND`. */
export async function findEnterable({ em, organization }: Call, workflowId: string): Promise<AutomationRow> {
  const found = await row<AutomationRow>(
    em,
    sql`select id, name, status, published_version_id as "versionId" from automation
      where organization_id = ${organization.id} and id = ${decodeId('wf', workflowId)} for share`,
  )
  return found ?? missing('wf', workflowId)
}
