import type { SubscriberStatus } from '../../../../schema/values.ts'
import type { FieldScalar } from '../../fields.ts'

/** The uuid of everything a simulation invents; a run with this id has no jitter. */
export const NOBODY = '00000000-0000-0000-0000-000000000000'

/** An event that happened in a simulation; `at` in epoch milliseconds. */
export type SimulatedEvent = { type: string; at: number; data: Record<string, unknown> }
/** An email that a step sent in a simulation; `at` in epoch milliseconds. */
export type SimulatedEmail = { stepId: string; campaignId: string | null; at: number }

/** Everything that changes along a way. It is never changed in place, because ways that branch off share it. */
export type State = {
  /** The data that the run was started with; filters read it as entry.<path>. */
  entry: Readonly<Record<string, unknown>>
  /** The event of the trigger, which came before the run. */
  begunBy: readonly SimulatedEvent[]
  status: SubscriberStatus
  /** Columns of the person that the simulation has changed. */
  profile: Readonly<Record<string, unknown>>
  fields: Readonly<Record<string, FieldScalar>>
  /** The ids of their tags. */
  tags: ReadonlySet<string>
  revenue: number
  emails: readonly SimulatedEmail[]
  /** When a SPLIT put them into its holdout first. */
  heldOutAt: number | null
  /** Since the run was entered. */
  events: readonly SimulatedEvent[]
  /** How often each JUMP has led back, and the variants of each SPLIT. */
  jumps: ReadonlyMap<string, number>
  variants: ReadonlyMap<string, string>
  /** The success goals that are assumed to be reached. */
  goals: ReadonlySet<string>
}

/** The state after one more event. */
export function withEvent(state: State, event: SimulatedEvent): State {
  return { ...state, events: [...state.events, event] }
}

/** A copy of a map with one more entry. */
export function withEntry<Value>(map: ReadonlyMap<string, Value>, key: string, value: Value) {
  return new Map([...map, [key, value]])
}
