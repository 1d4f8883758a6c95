import Type, { type Static } from 'typebox'

import { Filters, WhereList } from './audience.ts'
import { AUTOMATION_LIMITS, EventType, Id } from './automation-parts.ts'
import { closed, defaulted, oneOf } from './define.ts'

/** The start of a goal's window: the run's entry, or the first email that was actually sent. */
const COUNT_FROM = ['ENTRY', 'FIRST_EMAIL'] as const
/** The action of a GOAL step for a run that has not reached the goal. */
export const IF_UNMET = ['CONTINUE', 'WAIT', 'EXIT'] as const

/**
 * The purpose of a workflow: an event, or filters that come to match, within a window. A run converts at most once for
 * each goal, even after it has ended.
 */
export const SuccessGoal = closed({
  id: Id,
  name: Type.String({ minLength: 1, maxLength: 200 }),
  event: Type.Optional(EventType),
  where: Type.Optional(WhereList),
  filters: Type.Optional(Filters),
  windowDays: defaulted(
    Type.Integer({
      minimum: 1,
      maximum: AUTOMATION_LIMITS.goalDays,
      description: 'The number of days in which the goal can be reached. A day is 24 hours.',
    }),
    30,
  ),
  countFrom: defaulted(oneOf(COUNT_FROM), 'ENTRY'),
  valuePath: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'The path in the event data to the value of the conversion.',
    }),
  ),
  exitOnReach: defaulted(Type.Boolean(), true),
})
export type SuccessGoal = Static<typeof SuccessGoal>

/** The goals as tools publish them. They are validated together with the graph, so that one answer lists all faults. */
export const SuccessGoalsInput = Type.Unsafe<unknown[]>({
  type: 'array',
  description:
    'Goals {id, name, event + where? | filters, windowDays?, countFrom?, valuePath?, exitOnReach?}, at most ' +
    `${AUTOMATION_LIMITS.goals}. A run that reaches a goal is counted as a conversion, and ends unless exitOnReach is false.`,
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
