import type { Call } from '../catalogue/tool.ts'
import { fireTriggers } from './automations/triggers.ts'
import { exitUnsubscribed } from './automations/runs.ts'
import { endEventWaits } from './automations/waits.ts'
import { insertEvents, type NewEvent, type RecordedEvent } from './event-rows.ts'

export type { NewEvent, RecordedEvent }

/**
 * Records what happened to subscribers and lets automations answer, set-based and in the caller's transaction: who
 * unsubscribed leaves, runs that waited for the event go on, triggers let subscribers enter. Every change of state goes
 * through here. `triggerWorkflows: false` records without waking or starting automations.
 */
export async function recordEvents(
  call: Call,
  events: readonly NewEvent[],
  options: { triggerWorkflows?: boolean } = {},
): Promise<RecordedEvent[]> {
  const recorded = await insertEvents(call, events)
  if (recorded.length === 0) return recorded
  const left = recorded.filter(({ type }) => type === 'UNSUBSCRIBED').map(({ subscriberId }) => subscriberId)
  await exitUnsubscribed(call, left)
  if (options.triggerWorkflows === false) return recorded
  await endEventWaits(call, recorded)
  await fireTriggers(call, recorded)
  return recorded
}
