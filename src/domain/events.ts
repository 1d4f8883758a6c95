import type { Call } from '../catalogue/tool.ts'
import { fireTriggers } from './automations/triggers.ts'
import { exitUnsubscribed } from './automations/runs.ts'
import { endEventWaits } from './automations/waits.ts'
import { insertEvents, type NewEvent, type RecordedEvent, shareSubscribers } from './event-rows.ts'

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
  if (events.length === 0) return []
  const silent = options.triggerWorkflows === false
  if (!silent) {
    await shareSubscribers(
      call,
      events.map(({ subscriberId }) => subscriberId),
    )
  }
  const recorded = await insertEvents(call, events, { silent })
  const left = recorded.filter(({ type }) => type === 'UNSUBSCRIBED').map(({ subscriberId }) => subscriberId)
  await exitUnsubscribed(call, left)
  if (silent) return recorded
  await endEventWaits(call, recorded)
  await fireTriggers(call, recorded)
  return recorded
}
