import type { FieldType, SubscriberStatus } from '../../../../schema/values.ts'
import { type FieldScalar, typeOf } from '../../subscribers/fields.ts'

/** The UUID of everything that a simulation invents. The jitter of a run with this id is 0. */
export const NOBODY = '00000000-0000-0000-0000-000000000000'

/** An event that happened in a simulation; `at` in epoch milliseconds. */
export type SimulatedEvent = { type: string; at: number; data: Record<string, unknown> }
/** An email that a step sent in a simulation; `at` in epoch milliseconds. */
export type SimulatedEmail = { stepId: string; campaignId: string | null; at: number }

/** Everything that changes along a way. It is never modified in place, because ways that branch off share it. */
export type State = {
  /** The entry data of the run, which filters read as `entry.<path>`. */
  entry: Readonly<Record<string, unknown>>
  /** The event that fired the trigger, before the run was entered; empty if there is none. */
  begunBy: readonly SimulatedEvent[]
  status: SubscriberStatus
  /** Columns of `subscriber` that the simulation has changed. */
  profile: Readonly<Record<string, unknown>>
  fields: Readonly<Record<string, FieldScalar>>
  /** The types of the custom fields that filters name, and of those that this way has created. */
  fieldTypes: ReadonlyMap<string, FieldType>
  /** The ids of the person's tags. */
  tags: ReadonlySet<string>
  revenue: number
  emails: readonly SimulatedEmail[]
  /** When a SPLIT first put the person into its holdout (epoch ms), or null. */
  heldOutAt: number | null
  /** The events since the run was entered. */
  events: readonly SimulatedEvent[]
  /** How often each JUMP has jumped, and the variant of each SPLIT, by step id. */
  jumps: ReadonlyMap<string, number>
  variants: ReadonlyMap<string, string>
  /** The ids of the success goals that are reached. */
  goals: ReadonlySet<string>
}

/** Returns the state with one more event. */
export function withEvent(state: State, event: SimulatedEvent): State {
  return { ...state, events: [...state.events, event] }
}

/**
 * Returns the state with a custom field set, or removed by null. As in the engine, a new field gets the type of its
 * first value.
 */
export function withField(state: State, field: string, value: FieldScalar | null, timezone: string): State {
  const { [field]: _old, ...fields } = state.fields
  if (value === null) return { ...state, fields }
  const { fieldTypes } = state
  return {
    ...state,
    fields: { ...state.fields, [field]: value },
    fieldTypes: fieldTypes.has(field) ? fieldTypes : withEntry(fieldTypes, field, typeOf(value, timezone)),
  }
}

/** Returns a copy of a map with one more entry. */
export function withEntry<Value>(map: ReadonlyMap<string, Value>, key: string, value: Value) {
  return new Map([...map, [key, value]])
}
