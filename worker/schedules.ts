import { setTimeout as sleep } from 'node:timers/promises'

import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client'

import { TIME_LOOK_MS } from '../src/domain/audience/dates.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'
import { SEGMENT_REFRESH, segmentScheduleId, taskQueue } from '../temporal/contract.ts'

const RETRY_MS = 5_000

/** Creates the schedules that do not exist yet, as soon as Temporal answers. */
export function startSchedules(services: Services): { stop(): Promise<void> } {
  const halt = new AbortController()
  async function work(): Promise<void> {
    while (!halt.signal.aborted) {
      try {
        await ensureSchedules(await services.temporal.client(), services.config.temporal.taskQueue)
        return
      } catch (error) {
        services.log.warn({ fault: describeFault(error) }, 'the schedules cannot be made yet')
        await sleep(RETRY_MS, undefined, { signal: halt.signal }).catch(() => undefined)
      }
    }
  }
  const working = work()
  return {
    async stop() {
      halt.abort()
      await working
    },
  }
}

/**
 * Creates the schedules that do not exist. One that exists is not changed: an operator may have paused or changed it.
 */
export async function ensureSchedules(client: Client, prefix: string): Promise<void> {
  const scheduleId = segmentScheduleId(prefix)
  try {
    await client.schedule.create({
      scheduleId,
      spec: { intervals: [{ every: TIME_LOOK_MS }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
      action: {
        type: 'startWorkflow',
        workflowType: SEGMENT_REFRESH,
        workflowId: scheduleId,
        taskQueue: taskQueue(prefix, 'background'),
        args: [],
        staticSummary: 'Segments that time changes',
      },
    })
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
  }
}
