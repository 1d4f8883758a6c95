import type { Call } from '../catalogue/tool.ts'
import { endEventWaits, exitUnsubscribed } from './automations/runs/runs.ts'
import { fireTriggers } from './automations/triggers/triggers.ts'
import { insertEvents, type NewEvent, type Recorded, type RecordedEvent } from './event-rows.ts'

export type { NewEvent, RecordedEvent }

/**
 * Records what happened to subscribers and lets automations answer, set-based and in the caller's transaction: who
 * unsubscribed leaves, runs that waited for the event go on, triggers let subscribers enter. Every change of state goes
 * through here. `triggerWorkflows: false` records without waking or starting automations, of which the ledger says so;
 * `priority` orders the starts.
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

/** What recordEvents does once the rows are written; statements that wrote them with the change itself go on here. */
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
