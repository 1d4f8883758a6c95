import Type, { type Static } from 'typebox'

import { EVENT_TYPE } from './audience.ts'
import { closed, oneOf } from './define.ts'

/** What the graph language is made of (decisions, section 6): its limits, and the words that several places share. */
export const AUTOMATION_LIMITS = {
  steps: 200,
  edges: 1000,
  paths: 20,
  tagNames: 20,
  /** Custom fields that one step changes. */
  fields: 50,
  /** How often a JUMP may lead back. */
  jumps: 1000,
  /** The longest wait: five years, in seconds. */
  waitSeconds: 1830 * 86_400,
  goals: 20,
  /** The longest window of a goal. */
  goalDays: 90,
} as const

export const DURATION_UNITS = ['SECONDS', 'MINUTES', 'HOURS', 'DAYS', 'WEEKS'] as const
export type DurationUnit = (typeof DURATION_UNITS)[number]
/** ISO weekdays, Monday first. */
export const WEEKDAYS = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN'] as const
export type Weekday = (typeof WEEKDAYS)[number]

// Printable, without outer white space: ids stand in logs, search attributes and error paths.
const ID_PATTERN =
  '^[^\\s\\u0000-\\u001f\\u007f]([^\\u0000-\\u001f\\u007f]{0,62}[^\\s\\u0000-\\u001f\\u007f])?$'
/** The id of a step, and of what a step tells apart inside itself. */
export const Id = Type.String({ pattern: ID_PATTERN, description: 'At most 64 printable characters.' })
/** A name for people. */
export const Name = Type.String({ maxLength: 200 })
/** The zone that local times are of. */
export const Timezone = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'An IANA time zone, Europe/Paris.',
})
/** A local time of day. */
export const TimeOfDay = Type.String({
  pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$',
  description: 'HH:mm, as 09:00.',
})
/** The weekdays that count. */
export const Days = Type.Array(oneOf(WEEKDAYS), { minItems: 1, maxItems: 7 })
/**
 * The local hours in which email may go out. `end` before `start` is the next day's; `days` are those that a window
 * begins on, all when they are missing.
 */
export const SendWindow = closed({
  days: Type.Optional(Days),
  start: TimeOfDay,
  end: TimeOfDay,
  timezone: Type.Optional(Timezone),
})
export type SendWindow = Static<typeof SendWindow>
/** Tags by name; publishing makes the missing ones. */
export const TagNames = Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
  minItems: 1,
  maxItems: AUTOMATION_LIMITS.tagNames,
})
/** The type of an event. */
export const EventType = Type.String({
  pattern: EVENT_TYPE.source,
  description: 'Upper case, as SUBSCRIBER_PAYMENT.',
})
/** How many units a length of time has. */
export const Amount = Type.Integer({ minimum: 1, maximum: AUTOMATION_LIMITS.waitSeconds })

/** A length of time in elapsed seconds; a day is 24 hours. */
export const Duration = closed({ amount: Amount, unit: oneOf(DURATION_UNITS) })
export type Duration = Static<typeof Duration>
/** Before or after a date. */
export const DIRECTIONS = ['BEFORE', 'AFTER'] as const
