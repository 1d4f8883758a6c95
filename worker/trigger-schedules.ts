import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { scheduleState, type ScheduleState } from '../src/domain/automations/triggers/trigger-schedules.ts'
import { looksOf } from '../src/domain/automations/triggers/trigger-times.ts'
import type { OutboxRow } from '../src/domain/outbox.ts'
import { encodeId } from '../src/ids.ts'
import type { Services } from '../src/services.ts'
import { type FiringRequest, SEARCH, taskQueue, TRIGGER_FIRING } from '../temporal/contract.ts'

/** The note of our own pauses. A pause with another note is an operator's, and stays. */
export const PAUSED_NOTE = 'The workflow is paused.'
const RUNNING_NOTE = 'The workflow is active.'

/**
 * Brings one schedule in line with the current state of its row: creates, changes, pauses or deletes it. Safe to
 * repeat; the outbox rows of one schedule are dispatched one after the other.
 */
export async function alignSchedule(
  client: Client,
  services: Services,
  row: OutboxRow,
  searchable: boolean,
): Promise<void> {
  const { organizationId, workflowId: scheduleId } = row
  // `emitSchedule` wrote this payload; the table does not keep its type.
  const { automationId, stepId } = row.payload as { automationId: string; stepId: string }
  const state = await scheduleState(crossOrganization(services), organizationId, automationId, stepId)
  const handle = client.schedule.getHandle(scheduleId)
  if (!state) {
    await handle.delete().catch(ignoreMissing)
    return
  }
  const request: FiringRequest = {
    organizationId: encodeId('org', organizationId),
    automationId: encodeId('wf', automationId),
    stepId,
  }
  const options = optionsOf(
    scheduleId,
    state,
    request,
    taskQueue(services.config.temporal.taskQueue, 'background'),
    searchable,
  )
  try {
    await client.schedule.create({ scheduleId, ...options, state: runningState(state) })
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    await handle.update((previous) => ({ ...options, state: runningState(state, previous) }))
  }
}

function optionsOf(
  scheduleId: string,
  { name, timing }: ScheduleState,
  request: FiringRequest,
  queue: string,
  searchable: boolean,
) {
  const looks = looksOf(timing.config)
  return {
    spec:
      'cron' in looks
        ? { cronExpressions: [looks.cron], timezone: timing.timezone }
        : { intervals: [{ every: looks.everyMinutes * 60_000 }] },
    // The rows say what is due, so one look makes up for all that were missed.
    policies: { overlap: ScheduleOverlapPolicy.BUFFER_ONE, catchupWindow: '1 day' as const },
    action: {
      type: 'startWorkflow' as const,
      workflowType: TRIGGER_FIRING,
      workflowId: scheduleId,
      taskQueue: queue,
      args: [request],
      ...(searchable && {
        typedSearchAttributes: [
          { key: SEARCH.organization, value: request.organizationId },
          { key: SEARCH.automation, value: request.automationId },
        ],
      }),
      staticSummary: `${timing.config.type} of ${name.slice(0, 120)}`,
      staticDetails: `Looks who is due by the trigger ${request.stepId} of ${request.automationId} in ${request.organizationId}. Rows say what was looked at, so triggering it by hand takes nobody twice.`,
    },
  }
}

function runningState({ isPaused }: ScheduleState, previous?: ScheduleDescription) {
  const byOperator = previous?.state.paused === true && previous.state.note !== PAUSED_NOTE
  if (byOperator)
    return { paused: true, ...(previous.state.note !== undefined && { note: previous.state.note }) }
  return { paused: isPaused, note: isPaused ? PAUSED_NOTE : RUNNING_NOTE }
}

/** Handles an error of Temporal: a schedule that does not exist is no fault, anything else is thrown again. */
export function ignoreMissing(error: unknown): void {
  if (!(error instanceof ScheduleNotFoundError)) throw error
}
