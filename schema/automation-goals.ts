import Type, { type Static } from 'typebox'

import { Filters, WhereList } from './audience.ts'
import { AUTOMATION_LIMITS, EventType, Id } from './automation-parts.ts'
import { closed, defaulted, oneOf } from './define.ts'

/** What a goal's window begins with: the entry of the run, or the first email that it really sent. */
const COUNT_FROM = ['ENTRY', 'FIRST_EMAIL'] as const
/** What a GOAL step does with a run that has not reached its goal. */
export const IF_UNMET = ['CONTINUE', 'WAIT', 'EXIT'] as const

/**
 * What a workflow is for: an event, or filters that come to hold, within a window. A run converts at most once for each
 * goal, also after it has ended.
 */
export const SuccessGoal = closed({
  id: Id,
  name: Type.String({ minLength: 1, maxLength: 200 }),
  event: Type.Optional(EventType),
  where: Type.Optional(WhereList),
  filters: Type.Optional(Filters),
  windowDays: defaulted(
    Type.Integer({ minimum: 1, maximum: AUTOMATION_LIMITS.goalDays, description: 'A day is 24 hours.' }),
    30,
  ),
  countFrom: defaulted(oneOf(COUNT_FROM), 'ENTRY'),
  valuePath: Type.Optional(
    Type.String({ maxLength: 200, description: 'Where the event has what the conversion is worth.' }),
  ),
  exitOnReach: defaulted(Type.Boolean(), true),
})
export type SuccessGoal = Static<typeof SuccessGoal>

/** The goals as tools publish them; they are judged with the graph, so that all faults come out together. */
export const SuccessGoalsInput = Type.Unsafe<unknown[]>({
  type: 'array',
  description:
    'Goals {id, name, event + where? | filters, windowDays?, countFrom?, valuePath?, exitOnReach?}, at most ' +
    `${AUTOMATION_LIMITS.goals}; a run that reaches one converts, and leaves unless exitOnReach is false.`,
  examples: [
    [
      {
        id: 'bought',
        name: 'Bought something',
        event: 'SUBSCRIBER_PAYMENT',
        windowDays: 14,
        countFrom: 'FIRST_EMAIL',
        valuePath: 'amount',
      },
    ],
  ],
})
