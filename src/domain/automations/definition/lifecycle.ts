import { sql } from 'kysely'

import type { WorkflowStatus } from '../../../../schema/values.ts'
import type { SettableStatus } from '../../../../schema/workflow.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { execute } from '../../../database.ts'
import { syncWatchedSegments } from '../../segments/watch.ts'
import { archiveRuns } from '../runs/archive.ts'
import { cancelArchivedRuns, releaseQueued, resumeHeldRuns } from '../runs/runs.ts'
import { syncTriggerSchedules } from '../triggers/trigger-schedules.ts'
import { type Automation, titleOf } from './records.ts'

type Moves = Readonly<Record<WorkflowStatus, Partial<Record<SettableStatus, WorkflowStatus>>>>

/**
 * The statuses that update_workflow_status can set from each status (decisions, section 6). Setting the current status
 * changes nothing.
 */
const STATUS_MOVES: Moves = {
  DRAFT: {},
  ACTIVE: { ACTIVE: 'ACTIVE', PAUSED: 'PAUSED', ARCHIVED: 'ARCHIVED' },
  PAUSED: { ACTIVE: 'ACTIVE', PAUSED: 'PAUSED', ARCHIVED: 'ARCHIVED' },
  ARCHIVED: { PAUSED: 'PAUSED', ARCHIVED: 'ARCHIVED' },
}

/** The `activate` input of publish_workflow: left out, true or false. */
export type Activation = 'omitted' | 'activate' | 'pause'

/**
 * The status after publishing (contract, "Workflow" transitions). When `activate` is omitted, publishing activates a
 * draft and leaves any other status as it is.
 */
export const STATUS_AFTER_PUBLISH: Readonly<
  Record<WorkflowStatus, Readonly<Record<Activation, WorkflowStatus>>>
> = {
  DRAFT: { omitted: 'ACTIVE', activate: 'ACTIVE', pause: 'PAUSED' },
  ACTIVE: { omitted: 'ACTIVE', activate: 'ACTIVE', pause: 'PAUSED' },
  PAUSED: { omitted: 'PAUSED', activate: 'ACTIVE', pause: 'PAUSED' },
  ARCHIVED: { omitted: 'ARCHIVED', activate: 'ACTIVE', pause: 'PAUSED' },
}

/** How many runs of the workflow a change of status canceled or resumed. */
export type RunsMoved = { canceledRuns: number; resumedRuns: number }

/**
 * Returns the status that setting `wish` leads to. Throws `WRONG_STATE` with the possible statuses if it is not
 * allowed.
 */
export function nextStatus(automation: Automation, wish: SettableStatus): WorkflowStatus {
  const next = STATUS_MOVES[automation.status][wish]
  if (next !== undefined) return next
  const repair =
    automation.status === 'DRAFT'
      ? 'publish it with publish_workflow first'
      : `from ${automation.status} it can become ${Object.keys(STATUS_MOVES[automation.status]).join(' or ')}`
  throw new Failure(
    'WRONG_STATE',
    `The workflow ${titleOf(automation)} is ${automation.status} and cannot be set to ${wish}; ${repair}.`,
    { details: { status: automation.status, allowed: Object.keys(STATUS_MOVES[automation.status]) } },
  )
}

/**
 * Sets the status and applies it to the runs: ARCHIVED cancels them; ACTIVE resumes held runs and starts queued ones
 * whose turn it is. PAUSED needs no work, because runs read the status before every step. Leaving the archive first
 * cancels the runs that archiving has not reached yet. The caller must have called `lockSegments`, because the set of
 * watched segments depends on the status.
 */
export async function setStatus(
  call: Call,
  automation: Automation,
  next: WorkflowStatus,
): Promise<RunsMoved> {
  if (next === automation.status) return { canceledRuns: 0, resumedRuns: 0 }
  const { em, organization, actor } = call
  if (automation.status === 'ARCHIVED') await cancelArchivedRuns(call, automation.id)
  await execute(
    em,
    sql`update automation set status = ${next}, updated_by = ${actor.name}
      where organization_id = ${organization.id} and id = ${automation.id}`,
  )
  await syncWatchedSegments(call)
  await syncTriggerSchedules(call, [automation.id])
  if (next === 'ACTIVE') await releaseQueued(call, automation.id)
  return {
    canceledRuns: next === 'ARCHIVED' ? await archiveRuns(call, automation.id) : 0,
    resumedRuns: next === 'ACTIVE' ? await resumeHeldRuns(call, automation.id) : 0,
  }
}
