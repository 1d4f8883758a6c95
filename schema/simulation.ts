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
  country: Type.Optional(
    Type.String({
      pattern: '^[A-Z]{2}$',
      description: 'The ISO 3166-1 alpha-2 country code, two capital letters.',
    }),
  ),
  status: defaulted(oneOf(SUBSCRIBER_STATUSES), 'SUBSCRIBED'),
  tags: defaulted(Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: 100 }), []),
  customFields: defaulted(Type.Record(Type.String(), FieldValue), {}),
  createdAt: Type.Optional(
    Type.String({
      description:
        'The time at which the subscriber was created, ISO 8601. Defaults to the beginning of the simulation.',
    }),
  ),
  timezone: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'The IANA time zone in which dates are shown. Defaults to that of the workflow.',
    }),
  ),
  entry: defaulted(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'The data that the run is started with; filters read it as `entry.<path>`.',
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
  at: Type.String({ description: 'The time at which the step is reached, UTC.' }),
  localAt: Type.String({ description: 'The same time in the time zone of the person.' }),
  until: moment('The time at which the wait ends, UTC. Null if the step does not wait.'),
  localUntil: moment('The same time in the time zone of the person.'),
  result: Type.String({
    description: 'The result of the step, as in `get_workflow_run`: DONE, SENT, SKIPPED, ELAPSED, …',
  }),
  reason: nullable(
    Type.String({ description: 'The reason why the step is skipped, fails, or ends the run.' }),
  ),
  port: nullable(
    Type.String({ description: 'The port by which the step is left. Null if the path ends here.' }),
  ),
  assumed: nullable(
    Type.String({
      description: 'The event or condition that this result assumes. Null if it happens by itself.',
    }),
  ),
  chance: nullable(
    Type.Number({ description: 'For a SPLIT: the fraction of people who take this path, 0 to 1.' }),
  ),
  email: nullable(
    closed({
      subject: Type.String({ description: 'The subject as this person would see it.' }),
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
  number: Type.Integer({
    description: 'The number of the path, starting at 1. Path 1 is what happens if nothing is assumed.',
  }),
  branchOf: nullable(
    closed({
      way: Type.Integer(),
      visit: Type.Integer({
        description: 'The position in the timeline of that path, starting at 0, which this path replaces.',
      }),
    }),
  ),
  timeline: Type.Array(SimulatedVisit, {
    description: 'The visits of this path, beginning where it leaves `branchOf`.',
  }),
  end: closed({
    status: oneOf(WAY_ENDS, {
      description:
        'CUT means that the path has more visits than a simulation shows, or that it continues like an earlier path.',
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
  enters: Type.Boolean({ description: 'Whether the person would enter when the trigger fires.' }),
  reason: nullable(
    Type.String({
      description: 'The reason for a refusal: FILTERS, ALREADY_ENTERED, COOLDOWN, NOT_SUBSCRIBED, …',
    }),
  ),
  message: nullable(Type.String()),
  assumed: nullable(
    Type.String({
      description:
        'A condition that does not hold now, but is assumed here and on the paths that follow, because the trigger has fired.',
    }),
  ),
})
export type SimulatedEntry = Static<typeof SimulatedEntry>

/** Places where a way ends, possibly without its author's intention. */
const DEAD_ENDS = ['NOT_CONNECTED', 'WAITS_FOREVER', 'NEVER_REACHED'] as const
/** A place of the graph at which a way ends, or that none reaches. */
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
  timezone: Type.String({ description: 'The IANA time zone of the local dates.' }),
  entries: Type.Array(SimulatedEntry),
  ways: Type.Array(SimulatedWay),
  deadEnds: Type.Array(DeadEnd),
})
export type Simulation = Static<typeof Simulation>
