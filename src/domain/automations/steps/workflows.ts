import { Failure } from '../../../catalogue/failure.ts'
import { encodeId } from '../../../ids.ts'
import { MOST_DEPTH } from '../entry/enrolment.ts'
import { workflowIdOf } from '../runs/nudge.ts'
import type { RunWork } from '../runs/run-work.ts'
import { type Enter, left, type Turn } from './step.ts'

/** Asks for the subscriber to enter another workflow. */
export const enterStartWorkflow: Enter<'START_WORKFLOW'> = (turn, { id, config }) => {
  refuseLoop(turn)
  const { workflowId, context } = config
  ask(turn, { work: 'START', stepId: id, workflowId, ...(context && { context }) })
  return left('next', { result: 'ASKED', workflowId })
}

/** Asks for the subscriber to be removed from another workflow. */
export const enterStopWorkflow: Enter<'STOP_WORKFLOW'> = (turn, { id, config }) => {
  const { workflowId } = config
  const own = `stopped by the run ${encodeId('run', turn.run.id)}`
  ask(turn, { work: 'STOP', stepId: id, workflowId, reason: config.reason ?? own })
  return left('next', { result: 'ASKED', workflowId })
}

/**
 * Throws `WRONG_STATE` if the run is the last of a chain, so that the failure is visible in the run that would start
 * more.
 */
export function refuseLoop({ run }: Turn): void {
  if (run.depth < MOST_DEPTH) return
  throw new Failure(
    'WRONG_STATE',
    `This run is the last of ${MOST_DEPTH + 1} that have started each other, so it starts no more; break the cycle of workflows, or end it by a condition.`,
  )
}

function ask({ call, run }: Turn, work: Omit<RunWork, 'runId' | 'subscriberId' | 'depth'>): void {
  const { id: runId, subscriberId, depth } = run
  const payload: RunWork = { ...work, runId, subscriberId, depth }
  // The outbox keeps the order per workflow id. A separate id keeps these requests apart from the run's own signals.
  call.emit({ kind: 'work', workflowId: `work/${workflowIdOf(run)}`, payload })
}
