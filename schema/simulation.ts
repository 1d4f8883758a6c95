import Type, { type Static } from 'typebox'

import { TRIGGER_TYPES } from './automation-triggers.ts'
import { STEP_TYPES } from './automation.ts'
import { closed, defaulted, nullable, oneOf } from './define.ts'
import { FieldValue, SUBSCRIBER_LIMITS } from './subscriber.ts'
import { EXIT_REASONS, SUBSCRIBER_STATUSES } from './values.ts'

/** A made-up subscriber for simulations. */
export const SamplePerson = closed({
  email: defaulted(Type.String({ maxLength: SUBSCRIBER_LIMITS.email }), 'sample@example.com'),
  name: Type.Optional(Type.String({ maxLength: SUBSCRIBER_LIMITS.name })),
  phone: Type.Optional(Type.String({ maxLength: SUBSCRIBER_LIMITS.phone })),
  country: Type.Optional(Type.String({ pattern: '^[A-Z]{2}$', description: 'ISO 3166-1 alpha-2.' })),
  status: defaulted(oneOf(SUBSCRIBER_STATUSES), 'SUBSCRIBED'),
  tags: defaulted(Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: 100 }), []),
  customFields: defaulted(Type.Record(Type.String(), FieldValue), {}),
  createdAt: Type.Optional(
    Type.String({ description: 'ISO 8601; the beginning of the simulation without.' }),
  ),
  timezone: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'The IANA zone their dates are shown in; that of the workflow without.',
    }),
  ),
  entry: defaulted(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'What starts the run: filters read it as entry.<path>.',
    }),
    {},
  ),
})
export type SamplePerson = Static<typeof SamplePerson>

const moment = (description: string) => nullable(Type.String({ description }))

/** One visit to a step on a simulated way. */
export const SimulatedVisit = closed({
  stepId: Type.String(),
  type: oneOf(STEP_TYPES),
  name: nullable(Type.String()),
  at: Type.String({ description: 'When the step is reached, UTC.' }),
  localAt: Type.String({ description: 'The same in the zone of the person.' }),
  until: moment('When its wait is over, UTC; null where it does not wait.'),
  localUntil: moment('The same in the zone of the person.'),
  result: Type.String({
    description: 'What the step comes to, as in get_workflow_run: DONE, SENT, SKIPPED, ELAPSED, …',
  }),
  reason: nullable(Type.String({ description: 'Why it is skipped, fails, or ends the run.' })),
  port: nullable(Type.String({ description: 'The port it is left by; null where the way ends.' })),
  assumed: nullable(
    Type.String({ description: 'What has to happen for that, where it is not what would happen by itself.' }),
  ),
  chance: nullable(Type.Number({ description: 'Of a SPLIT: the share of people who go this way, 0 to 1.' })),
  email: nullable(
    closed({
      subject: Type.String({ description: 'As this person would see it.' }),
      preview: Type.String(),
      from: nullable(Type.String()),
    }),
  ),
})
export type SimulatedVisit = Static<typeof SimulatedVisit>

const WAY_ENDS = ['COMPLETED', 'CANCELED', 'FAILED', 'WAITS_FOREVER', 'CUT'] as const
export type WayEnd = (typeof WAY_ENDS)[number]

/** One way through the graph: the expected one, or one that branches off from another way. */
export const SimulatedWay = closed({
  number: Type.Integer({ description: 'From 1; the first is what happens if nothing is assumed.' }),
  branchOf: nullable(
    closed({
      way: Type.Integer(),
      visit: Type.Integer({ description: 'The place in its timeline, from 0, that this way replaces.' }),
    }),
  ),
  timeline: Type.Array(SimulatedVisit, { description: 'From where it leaves branchOf.' }),
  end: closed({
    status: oneOf(WAY_ENDS, {
      description: 'CUT: more visits than a simulation shows, or it goes on as an earlier way does.',
    }),
    exitReason: nullable(oneOf(EXIT_REASONS)),
    at: Type.String(),
    localAt: Type.String(),
    message: Type.String(),
  }),
})
export type SimulatedWay = Static<typeof SimulatedWay>

/** Whether a trigger would let the person enter. */
export const SimulatedEntry = closed({
  stepId: Type.String(),
  type: oneOf(TRIGGER_TYPES),
  enters: Type.Boolean({ description: 'Whether they would be let in when it fires.' }),
  reason: nullable(Type.String({ description: 'FILTERS, ALREADY_ENTERED, COOLDOWN, NOT_SUBSCRIBED, …' })),
  message: nullable(Type.String()),
  assumed: nullable(
    Type.String({
      description:
        'What is not so now and is taken to be, here and on the ways from it, because the trigger has fired.',
    }),
  ),
})
export type SimulatedEntry = Static<typeof SimulatedEntry>

/** Places where a way ends, possibly without its author's intention. */
const DEAD_ENDS = ['NOT_CONNECTED', 'WAITS_FOREVER', 'NEVER_REACHED'] as const
export const DeadEnd = closed({
  stepId: Type.String(),
  port: nullable(Type.String()),
  code: oneOf(DEAD_ENDS),
  message: Type.String(),
})
export type DeadEnd = Static<typeof DeadEnd>

/** The result of a simulation. */
export const Simulation = closed({
  from: Type.String(),
  timezone: Type.String({ description: 'Of the local dates.' }),
  entries: Type.Array(SimulatedEntry),
  ways: Type.Array(SimulatedWay),
  deadEnds: Type.Array(DeadEnd),
})
export type Simulation = Static<typeof Simulation>
