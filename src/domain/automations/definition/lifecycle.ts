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

/** update_workflow_status (decisions, section 6): what each status can be set to; the same one is no change. */
const STATUS_MOVES: Moves = {
  DRAFT: {},
  ACTIVE: { ACTIVE: 'ACTIVE', PAUSED: 'PAUSED', ARCHIVED: 'ARCHIVED' },
  PAUSED: { ACTIVE: 'ACTIVE', PAUSED: 'PAUSED', ARCHIVED: 'ARCHIVED' },
  ARCHIVED: { PAUSED: 'PAUSED', ARCHIVED: 'ARCHIVED' },
}

/** What publish_workflow was told about `activate`. */
export type Activation = 'omitted' | 'activate' | 'pause'

/** The status after publishing (contract, "Workflow" transitions): without a word it never revives and never stops one. */
export const STATUS_AFTER_PUBLISH: Readonly<
  Record<WorkflowStatus, Readonly<Record<Activation, WorkflowStatus>>>
> = {
  DRAFT: { omitted: 'ACTIVE', activate: 'ACTIVE', pause: 'PAUSED' },
  ACTIVE: { omitted: 'ACTIVE', activate: 'ACTIVE', pause: 'PAUSED' },
  PAUSED: { omitted: 'PAUSED', activate: 'ACTIVE', pause: 'PAUSED' },
  ARCHIVED: { omitted: 'ARCHIVED', activate: 'ACTIVE', pause: 'PAUSED' },
}

/** What a change of status does to the workflow's runs. */
export type RunsMoved = { canceledRuns: number; resumedRuns: number }

/** The status that a wish leads to, or WRONG_STATE saying what is possible. */
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
 * Sets a status and does what it means for the runs: ARCHIVED cancels them, ACTIVE lets held ones continue and queued
 * ones have their turn. PAUSED needs no more than the row: runs look at it before every step. The caller holds
 * lockSegments, because the segments that are watched follow the status.
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
