import { AUTOMATION_RUN, type AutomationRunInput } from '../../../../temporal/contract.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { encodeId } from '../../../ids.ts'
import { insertEvents, type RecordedEvent } from '../../event-rows.ts'
import { workflowIdOf } from '../runs/nudge.ts'

/** A run whose workflow is to be started. Ids are UUIDs. */
export type StartingRun = {
  id: string
  automationId: string
  automationName: string
  versionNumber: number
  subscriberId: string
  number: number
}

/**
 * Starts runs that are in the database already: records their WORKFLOW_STARTED events, and starts their workflows when
 * the transaction has committed. Returns the events if any run waits for one of them, for `endEventWaits`.
 */
export async function startRuns(
  call: Call,
  runs: readonly StartingRun[],
  priority = 0,
): Promise<RecordedEvent[]> {
  const recorded = await insertEvents(
    call,
    runs.map(({ id, automationId, subscriberId }) => ({
      subscriberId,
      type: 'WORKFLOW_STARTED',
      data: { workflowId: encodeId('wf', automationId), runId: encodeId('run', id) },
    })),
  )
  for (const run of runs) {
    call.emit({
      kind: 'start',
      workflowId: workflowIdOf(run),
      payload: startPayload(call.organization.id, run),
      priority,
    })
  }
  return recorded.isAwaited ? recorded.events : []
}

/**
 * Returns the outbox payload that starts a run's workflow. Also used to start it again when it is gone or is retried.
 */
export function startPayload(
  organizationId: string,
  { id, automationId, automationName, versionNumber, subscriberId }: StartingRun,
): { workflow: string; input: Omit<AutomationRunInput, 'searchable'>; summary: string } {
  const subscriber = encodeId('sub', subscriberId)
  return {
    workflow: AUTOMATION_RUN,
    input: {
      organizationId: encodeId('org', organizationId),
      automationId: encodeId('wf', automationId),
      subscriberId: subscriber,
      runId: encodeId('run', id),
    },
    summary: `${automationName.slice(0, 120)} v${versionNumber} · ${subscriber}`,
  }
}
