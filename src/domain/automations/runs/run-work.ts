import { sql } from 'kysely'

import type { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { row } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import { enterByHand } from '../entry/enter-by-hand.ts'
import { recordDecisions } from './decisions.ts'
import { removeFromWorkflow } from './run-control.ts'

/**
 * The request of a run to start or stop another workflow for its subscriber. It goes through the outbox, so that no run
 * waits for the locks of another run while it holds its own. Ids are UUIDs, except `workflowId`, which is a TypeID.
 */
export type RunWork = {
  work: 'START' | 'STOP'
  runId: string
  stepId: string
  subscriberId: string
  workflowId: string
  depth: number
  context?: Record<string, unknown>
  reason?: string
}

/** Carries out the request. A refusal is thrown as a `Failure`, for `noteRefusal`. */
export async function performRunWork(call: Call, asked: RunWork): Promise<void> {
  const subscriberId = encodeId('sub', asked.subscriberId)
  const { workflowId, reason, context = {} } = asked
  if (asked.work === 'STOP') {
    await removeFromWorkflow(call, { workflowId, subscriberId, reason })
    return
  }
  const trigger = { type: 'START_WORKFLOW', runId: encodeId('run', asked.runId) }
  await enterByHand(call, { workflowId, subscriberId, context }, { trigger, priority: 0 })
}

/**
 * Records the refusal of a request for the run that made it, for example because the other workflow is gone.
 * `WRONG_STATE` is recorded for the other workflow already.
 */
export async function noteRefusal(
  call: Call,
  { runId, stepId, subscriberId }: RunWork,
  { code }: Failure,
): Promise<void> {
  if (code === 'WRONG_STATE') return
  const asking = await row<{ automationId: string }>(
    call.em,
    sql`select automation_id as "automationId" from automation_run
      where organization_id = ${call.organization.id} and id = ${runId}`,
  )
  // The run was erased with its subscriber.
  if (!asking) return
  const keys = { ...asking, subscriberId, runId, stepId }
  await recordDecisions(call, [{ ...keys, action: 'STEP_SKIPPED', reason: code }])
}
