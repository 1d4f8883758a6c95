import type { Client, ScheduleSummary } from '@temporalio/client'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import {
  allSchedules,
  emitLateFiring,
  emitSchedule,
  findLateSchedules,
  type KnownSchedule,
} from '../src/domain/automations/triggers/trigger-schedules.ts'
import { encodeId } from '../src/ids.ts'
import type { Services } from '../src/services.ts'
import { triggerScheduleId, triggerSchedulePrefix } from '../temporal/contract.ts'
import { askTemporal, tryRepair } from './repair.ts'
import { ignoreMissing, PAUSED_NOTE } from './trigger-schedules.ts'

const BATCH = 200

/**
 * Fires timed triggers whose time passed without a check: because daylight saving skipped it, which a Temporal schedule
 * passes over, or because the schedule is gone. A schedule that an operator paused is left alone. Returns how many
 * triggers were repaired.
 */
export async function fireLate(services: Services, lateSeconds: number): Promise<number> {
  let count = 0
  for (const late of await findLateSchedules(crossOrganization(services), lateSeconds, BATCH)) {
    const schedule = idOf(services, late)
    const state = await askTemporal(services, { schedule }, (client) => stateOf(client, schedule))
    if (state === null || state === 'PAUSED') continue
    services.log.warn({ schedule, state }, 'nobody looked at a trigger in time')
    const { organizationId, automationId, stepId } = late
    const isRight = await tryRepair(services, organizationId, (call) => {
      if (state === 'MISSING') emitSchedule(call, automationId, stepId)
      emitLateFiring(call, late)
    })
    if (isRight) count += 1
  }
  return count
}

/**
 * Compares the schedules in Temporal with the rows: creates or corrects those that are missing or wrong, and deletes
 * those without a row. A failure is logged, holds up no other and is tried again in the next round. Returns how many
 * were repaired.
 */
export async function repairSchedules(services: Services): Promise<number> {
  const client = await services.temporal.client()
  const prefix = triggerSchedulePrefix(services.config.temporal.taskQueue)
  const found = new Map<string, ScheduleSummary>()
  for await (const summary of client.schedule.list()) {
    if (summary.scheduleId.startsWith(prefix)) found.set(summary.scheduleId, summary)
  }
  // Read after the list: a schedule is created after its row, so one without a row is a leftover.
  const known = await allSchedules(crossOrganization(services))
  const wanted = new Set(known.map((schedule) => idOf(services, schedule)))
  const wrong = known.filter((schedule) => isWrong(schedule, found.get(idOf(services, schedule))))
  const left = [...found.keys()].filter((id) => !wanted.has(id))
  let count = 0
  for (const schedule of wrong) {
    services.log.warn({ schedule: idOf(services, schedule) }, 'a schedule was not as it should be')
    const { organizationId, automationId, stepId } = schedule
    if (await tryRepair(services, organizationId, (call) => emitSchedule(call, automationId, stepId)))
      count += 1
  }
  for (const id of left) {
    services.log.warn({ schedule: id }, 'a schedule was left over')
    if (await isDeleted(services, client, id)) count += 1
  }
  return count
}

async function isDeleted(services: Services, client: Client, scheduleId: string): Promise<boolean> {
  try {
    await client.schedule.getHandle(scheduleId).delete().catch(ignoreMissing)
    return true
  } catch (error) {
    services.log.warn(
      { err: error, schedule: scheduleId },
      'a schedule that is left over could not be deleted',
    )
    return false
  }
}

function isWrong({ isPaused }: KnownSchedule, summary: ScheduleSummary | undefined): boolean {
  if (!summary) return true
  const { paused, note } = summary.state
  return isPaused ? !paused : paused && note === PAUSED_NOTE
}

async function stateOf(client: Client, scheduleId: string): Promise<'MISSING' | 'PAUSED' | 'RUNNING'> {
  try {
    const { state } = await client.schedule.getHandle(scheduleId).describe()
    return state.paused && state.note !== PAUSED_NOTE ? 'PAUSED' : 'RUNNING'
  } catch (error) {
    ignoreMissing(error)
    return 'MISSING'
  }
}

function idOf({ config }: Services, { automationId, stepId }: KnownSchedule): string {
  return triggerScheduleId(config.temporal.taskQueue, encodeId('wf', automationId), stepId)
}
