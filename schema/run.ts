import Type, { type Static } from 'typebox'

import { STEP_TYPES } from './automation.ts'
import { closed, nullable, oneOf } from './define.ts'
import { EXIT_REASONS, RUN_STATUSES } from './values.ts'

/** A step as runs refer to it. */
export const StepReference = closed({
  id: Type.String(),
  type: oneOf(STEP_TYPES),
  name: nullable(Type.String()),
})
export type StepReference = Static<typeof StepReference>

/** One passage of a subscriber through a workflow, on the version that they entered. */
export const Run = closed({
  id: Type.String({ description: 'run_…' }),
  workflow: closed({ id: Type.String({ description: 'wf_…' }), name: Type.String() }),
  version: closed({ id: Type.String({ description: 'wfv_…' }), number: Type.Integer() }),
  subscriberId: Type.String({ description: 'sub_…' }),
  status: oneOf(RUN_STATUSES),
  held: Type.Boolean({ description: 'Due, but kept where it is while the workflow is paused.' }),
  exitReason: nullable(oneOf(EXIT_REASONS)),
  error: nullable(Type.String()),
  currentStep: nullable(StepReference),
  nextStep: nullable(StepReference),
  nextStepAt: nullable(Type.String({ description: 'When a wait ends by itself.' })),
  visit: Type.Integer({ description: 'How many steps the run has come to.' }),
  enteredAt: Type.String(),
  endedAt: nullable(Type.String()),
  temporalUrl: nullable(Type.String({ description: 'Its page in the Temporal Web UI.' })),
})
export type Run = Static<typeof Run>

/** One visit to a step in a run's timeline. */
export const RunVisit = closed({
  visit: Type.Integer(),
  step: StepReference,
  result: Type.String({ description: 'What the step came to: DONE, SENT, SKIPPED, ELAPSED, …' }),
  port: nullable(Type.String({ description: 'The port it was left by.' })),
  details: Type.Record(Type.String(), Type.Unknown()),
  startedAt: Type.String(),
  endedAt: nullable(Type.String()),
})
export type RunVisit = Static<typeof RunVisit>

/**
 * What an active run can wait for: a place in its workflow group, the workflow to be resumed, or the end of its step.
 */
export const RUN_WAITS = [
  'GROUP',
  'PAUSED',
  'TIME',
  'LIMIT',
  'EVENT',
  'CONDITION',
  'GOAL',
  'MESSAGE',
  'WEBHOOK',
  'WORKER',
] as const

/** Everything known about a run: the run itself, its timeline and what it waits for. */
export const RunStory = closed({
  run: Run,
  timeline: Type.Array(RunVisit),
  waiting: nullable(
    closed({
      for: oneOf(RUN_WAITS),
      until: nullable(Type.String({ description: 'When that ends by itself.' })),
      message: Type.String(),
    }),
  ),
  emails: Type.Array(
    closed({
      id: Type.String({ description: 'eml_…' }),
      stepId: nullable(Type.String()),
      visit: nullable(Type.Integer()),
      subject: nullable(Type.String()),
      status: Type.String(),
      reason: nullable(Type.String()),
      createdAt: Type.String(),
      sentAt: nullable(Type.String()),
    }),
  ),
  decisions: Type.Array(
    closed({
      stepId: nullable(Type.String()),
      action: Type.String(),
      reason: Type.String(),
      data: Type.Record(Type.String(), Type.Unknown()),
      at: Type.String(),
    }),
    { description: 'Decisions not to act, as the ledger has them.' },
  ),
  conversions: Type.Array(
    closed({
      goalId: Type.String(),
      value: nullable(Type.Number()),
      currency: nullable(Type.String()),
      at: Type.String(),
    }),
  ),
})
export type RunStory = Static<typeof RunStory>
