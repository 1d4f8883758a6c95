import { sql } from 'kysely'

import type { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { row } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import { enterByHand } from '../entry/enter-by-hand.ts'
import { recordDecisions } from './decisions.ts'
import { removeFromWorkflow } from './run-control.ts'

/**
 * What a run asks of another workflow. It leaves by the outbox, so that no run holds its own lock while it wants those
 * of another. Ids are uuids; `workflowId` is as the step names it.
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

/** Does it; what is refused is thrown: see noteRefusal. */
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
 * What the state of the other workflow or of the person refuses stands in the ledger of that workflow already; anything
 * else, such as that it is gone, in that of the run which asked.
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
  // Erased with its person.
  if (!asking) return
  const keys = { ...asking, subscriberId, runId, stepId }
  await recordDecisions(call, [{ ...keys, action: 'STEP_SKIPPED', reason: code }])
}
