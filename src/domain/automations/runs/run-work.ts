import type { Call } from '../../../catalogue/tool.ts'
import { encodeId } from '../../../ids.ts'
import { enterByHand } from '../entry/enter-by-hand.ts'
import { removeFromWorkflow } from './run-control.ts'

/**
 * What a run asks of another workflow. It leaves by the outbox, so that no run holds its own lock while it wants those
 * of another. Ids are uuids; `workflowId` is as the step names it.
 */
export type RunWork = {
  work: 'START' | 'STOP'
  runId: string
  subscriberId: string
  workflowId: string
  depth: number
  context?: Record<string, unknown>
  reason?: string
}

/** Does it; what the other workflow refuses is thrown, and stands in its ledger. */
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
