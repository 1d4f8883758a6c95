import { sql } from 'kysely'

import type { Run } from '../../../../schema/run.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { execute, json, row } from '../../../database.ts'
import { decodeId, encodeId, missing } from '../../../ids.ts'
import { noteSegmentChanges } from '../../segments/notes.ts'
import { startPayload } from '../entry/run-starts.ts'
import { lockGroups, lockPlaces } from '../groups/group-places.ts'
import { IS_ACTIVE } from './active.ts'
import { workflowIdOf } from './nudge.ts'
import { readRun } from './run-records.ts'
import { lockRun, type RunState } from './run-state.ts'

/** The outbox priority of a retry: the same as of an entry by hand, before bulk entries. */
const PRIORITY = 10

/**
 * Retries a FAILED run: it enters the failed step again, and no earlier step is repeated. Its workflow is started
 * again, or signalled if the failed one has not ended yet. Throws `WRONG_STATE` if the run or its workflow cannot
 * continue.
 */
export async function retryRun(call: Call, runId: string): Promise<Run> {
  const run = await lockRun(call, decodeId('run', runId))
  if (!run) missing('run', runId)
  if (run.status !== 'FAILED') {
    throw new Failure('WRONG_STATE', `The run is ${run.status}; only a run that FAILED can be retried.`, {
      details: { status: run.status },
    })
  }
  if (run.automationStatus !== 'ACTIVE') {
    const message = `The workflow is ${run.automationStatus}, so no run moves; set it ACTIVE first (update_workflow_status).`
    throw new Failure('WRONG_STATE', message, { details: { workflowStatus: run.automationStatus } })
  }
  const obstacle = await reopenRun(call, run)
  if (obstacle !== null) throw new Failure('WRONG_STATE', obstacle)
  const record = await readRun(call, run.id)
  const started = { ...run, automationName: record.workflow.name, versionNumber: record.version.number }
  call.emit({
    kind: 'start',
    workflowId: workflowIdOf(run),
    payload: { ...startPayload(call.organization.id, started), restart: true },
    priority: PRIORITY,
  })
  return record
}

/**
 * Returns whether an operator has reset a workflow of this FAILED run. After a reset, `attempt` (the current Temporal
 * run) differs from `execution` (the first one). In a workflow that was merely started twice, they are equal. The
 * attempt in which the run failed last may ask again, but that is no reset.
 */
export function isReset(run: RunState, asking: { execution: string; attempt: string }): boolean {
  return (
    run.status === 'FAILED' &&
    run.automationStatus !== 'ARCHIVED' &&
    asking.attempt !== asking.execution &&
    run.failedIn !== asking.attempt
  )
}

/**
 * Reopens a FAILED run at the step that failed. The caller has locked the run. Returns null, or the reason why the run
 * cannot be reopened.
 */
export async function reopenRun(call: Call, run: RunState): Promise<string | null> {
  const { em, organization, actor } = call
  const groupId = await placeOf(call, run)
  const obstacle = await findObstacle(call, run, groupId)
  if (obstacle !== null) return obstacle
  const noted = {
    retriedBy: actor.kind === 'run' ? 'operator' : actor.id,
    retriedAt: new Date(run.now).toISOString(),
  }
  await execute(
    em,
    sql`with noted as (
        update run_step set outcome = outcome || ${json(noted)}
        where organization_id = ${organization.id} and run_id = ${run.id} and visit = ${run.visit})
      update automation_run set status = 'QUEUED', exit_reason = null, error = null, ended_at = null, held = false,
        temporal_run_id = null, group_id = ${groupId}, wake_at = now()
      where organization_id = ${organization.id} and id = ${run.id}`,
  )
  await noteSegmentChanges(call, [run.subscriberId])
  const reopened = { status: 'QUEUED', exitReason: null, error: null, execution: null, groupId } as const
  Object.assign(run, reopened, { wakeAt: run.now, wakeReason: null, waitKind: null })
  return null
}

/**
 * Locks the group that the workflow is in now, so that no other workflow joins it meanwhile, and the subscriber's place
 * in it. Returns the group's id or null.
 */
async function placeOf(call: Call, { automationId, subscriberId }: RunState): Promise<string | null> {
  const found = await row<{ groupId: string | null }>(
    call.em,
    sql`select group_id as "groupId" from automation
      where organization_id = ${call.organization.id} and id = ${automationId}`,
  )
  const groupId = found?.groupId ?? null
  if (groupId === null) return null
  await lockGroups(call, [groupId])
  await lockPlaces(call, [{ groupId, subscriberId }])
  return groupId
}

type Obstacles = { result: string | null; isIn: boolean; isTaken: boolean; hasLeft: boolean }

/** Events are compared by id: the transaction of an unsubscribe may have begun before the run ended. */
async function findObstacle(call: Call, run: RunState, groupId: string | null): Promise<string | null> {
  const found = await row<Obstacles>(
    call.em,
    sql`select (select outcome ->> 'result' from run_step step where step.organization_id = run.organization_id
          and step.run_id = run.id and step.visit = run.visit) as result,
        exists (select from automation_run other where other.organization_id = run.organization_id
          and other.automation_id = run.automation_id and other.subscriber_id = run.subscriber_id
          and other.entry_key = run.entry_key and other.${IS_ACTIVE}) as "isIn",
        exists (select from automation_run other where other.organization_id = run.organization_id
          and other.group_id = ${groupId} and other.subscriber_id = run.subscriber_id and other.${IS_ACTIVE}) as "isTaken",
        coalesce((version.definition #>> '{settings,exitOnUnsubscribe}')::boolean, true)
          and exists (select from subscriber_event event where event.organization_id = run.organization_id
            and event.subscriber_id = run.subscriber_id and event.type = 'UNSUBSCRIBED'
            and event.id >= id_floor(run.ended_at)) as "hasLeft"
      from automation_run run
      join automation_version version on version.organization_id = run.organization_id and version.id = run.version_id
      where run.organization_id = ${call.organization.id} and run.id = ${run.id}`,
  )
  const who = encodeId('sub', run.subscriberId)
  if (found?.result !== 'FAILED') {
    return 'The run did not fail in a step: its workflow was lost. Enter the subscriber again (add_subscriber_to_workflow).'
  }
  if (found.isIn) {
    return `The subscriber ${who} has entered this workflow again since and is still in it; remove them first, or leave the failed run as it is.`
  }
  if (found.isTaken) {
    return `The subscriber ${who} is in another workflow of the same group; retry when that run is over, or remove them there.`
  }
  if (!found.hasLeft) return null
  return `The subscriber ${who} has unsubscribed since, which ends runs of this workflow (settings.exitOnUnsubscribe).`
}
