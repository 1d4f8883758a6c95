import Type, { type Static } from 'typebox'

import { EVENT_TYPE } from './audience.ts'
import { closed, oneOf } from './define.ts'

/** The limits of the graph language (decisions, section 6). This file also has the schemas that its parts share. */
export const AUTOMATION_LIMITS = {
  steps: 200,
  edges: 1000,
  paths: 20,
  tagNames: 20,
  /** Custom fields that one step can change. */
  fields: 50,
  /** The largest `maxTimes` of a JUMP. */
  jumps: 1000,
  /** The longest wait: five years, in seconds. */
  waitSeconds: 1830 * 86_400,
  goals: 20,
  /** The longest window of a goal, in days. */
  goalDays: 90,
} as const

export const DURATION_UNITS = ['SECONDS', 'MINUTES', 'HOURS', 'DAYS', 'WEEKS'] as const
export type DurationUnit = (typeof DURATION_UNITS)[number]
/** ISO weekdays, Monday first. */
export const WEEKDAYS = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN'] as const
export type Weekday = (typeof WEEKDAYS)[number]

// Printable, without leading or trailing white space, because ids appear in logs, search attributes and error paths.
const ID_PATTERN =
  '^[^\\s\\u0000-\\u001f\\u007f]([^\\u0000-\\u001f\\u007f]{0,62}[^\\s\\u0000-\\u001f\\u007f])?$'
/** The id of a step, a goal or an exit rule, or of a part of a step such as a path or a variant. */
export const Id = Type.String({
  pattern: ID_PATTERN,
  description: 'At most 64 printable characters, without spaces at the beginning or end.',
})
/** A display name. */
export const Name = Type.String({ maxLength: 200 })
/** The time zone of local times. */
export const Timezone = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'An IANA time zone, such as Europe/Paris.',
})
/** A local time of day. */
export const TimeOfDay = Type.String({
  pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$',
  description: 'A local time in the form HH:mm, such as 09:00.',
})
/** The name of a custom field of the type date. */
export const DateField = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'The name of a custom field of the type date.',
})
/** A set of weekdays. */
export const Days = Type.Array(oneOf(WEEKDAYS), { minItems: 1, maxItems: 7 })
/**
 * The local hours in which email may be sent. When `end` is before `start`, it belongs to the next day. `days` are the
 * days on which a window begins; without them, every day.
 */
export const SendWindow = closed({
  days: Type.Optional(Days),
  start: TimeOfDay,
  end: TimeOfDay,
  timezone: Type.Optional(Timezone),
})
export type SendWindow = Static<typeof SendWindow>
/** Tags by name; publishing creates the missing ones. */
export const TagNames = Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
  minItems: 1,
  maxItems: AUTOMATION_LIMITS.tagNames,
})
/** The type of an event. */
export const EventType = Type.String({
  pattern: EVENT_TYPE.source,
  description:
    '2 to 64 capital letters, digits and underscores, beginning with a letter, such as SUBSCRIBER_PAYMENT.',
})
/** The number of units in a length of time. */
export const Amount = Type.Integer({ minimum: 1, maximum: AUTOMATION_LIMITS.waitSeconds })

/** A length of time in elapsed seconds; a day is 24 hours. */
export const Duration = closed({ amount: Amount, unit: oneOf(DURATION_UNITS) })
export type Duration = Static<typeof Duration>
/** Whether an offset lies before or after a date. */
export const DIRECTIONS = ['BEFORE', 'AFTER'] as const
