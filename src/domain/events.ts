import type { Call } from '../catalogue/tool.ts'
import { endEventWaits, exitUnsubscribed } from './automations/runs/runs.ts'
import { fireTriggers } from './automations/triggers/triggers.ts'
import { insertEvents, type NewEvent, type Recorded, type RecordedEvent } from './event-rows.ts'

export type { NewEvent, RecordedEvent }

/**
 * Records events and lets automations react, in the caller's transaction: unsubscribed people leave their runs, waiting
 * runs continue, and triggers start runs. Every change of state goes through here. `triggerWorkflows: false` records
 * silently, without waking or starting automations; `priority` orders the starts.
 */
export async function recordEvents(
  call: Call,
  events: readonly NewEvent[],
  options: { triggerWorkflows?: boolean; priority?: number } = {},
): Promise<RecordedEvent[]> {
  const { triggerWorkflows = true } = options
  const recorded = await insertEvents(call, events, { silent: !triggerWorkflows })
  await answerEvents(call, recorded, options)
  return recorded.events
}

/** Lets automations react to stored events, for statements that wrote the events together with the change. */
export async function answerEvents(
  call: Call,
  { events, isAwaited, mayStart }: Recorded,
  options: { triggerWorkflows?: boolean; priority?: number } = {},
): Promise<void> {
  const left = events.filter(({ type }) => type === 'UNSUBSCRIBED').map(({ subscriberId }) => subscriberId)
  await exitUnsubscribed(call, left)
  if (isAwaited) await endEventWaits(call, events)
  if (mayStart) await fireTriggers(call, events, options)
}
