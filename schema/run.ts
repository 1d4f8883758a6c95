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
  id: Type.String({ description: 'The id of the run (`run_…`).' }),
  workflow: closed({
    id: Type.String({ description: 'The id of the workflow (`wf_…`).' }),
    name: Type.String(),
  }),
  version: closed({
    id: Type.String({ description: 'The id of the version (`wfv_…`).' }),
    number: Type.Integer(),
  }),
  subscriberId: Type.String({ description: 'The id of the subscriber (`sub_…`).' }),
  status: oneOf(RUN_STATUSES),
  held: Type.Boolean({
    description: 'Whether the run is due to continue but is held back because the workflow is paused.',
  }),
  exitReason: nullable(
    oneOf(EXIT_REASONS, { description: 'The reason why the run ended. Null until then.' }),
  ),
  error: nullable(Type.String({ description: 'The reason for the status FAILED.' })),
  currentStep: nullable(StepReference, {
    description: 'The step at which the run is, or at which it ended.',
  }),
  nextStep: nullable(StepReference, {
    description: 'The step that follows by the port `next`. Null if the run has ended.',
  }),
  nextStepAt: nullable(Type.String({ description: 'The time at which the current wait ends by itself.' })),
  visit: Type.Integer({ description: 'The number of steps that the run has reached.' }),
  enteredAt: Type.String(),
  endedAt: nullable(Type.String()),
  temporalUrl: nullable(
    Type.String({
      description:
        'The address of the run in the Temporal Web UI. Null if the installation has no Web UI address.',
    }),
  ),
})
export type Run = Static<typeof Run>

/** One visit to a step in a run's timeline. */
export const RunVisit = closed({
  visit: Type.Integer(),
  step: StepReference,
  result: Type.String({ description: 'The result of the step: DONE, SENT, SKIPPED, ELAPSED, …' }),
  port: nullable(Type.String({ description: 'The port by which the step was left.' })),
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
      until: nullable(Type.String({ description: 'The time at which the wait ends by itself.' })),
      message: Type.String(),
    }),
  ),
  emails: Type.Array(
    closed({
      id: Type.String({ description: 'The id of the email (`eml_…`).' }),
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
    { description: 'The recorded decisions not to act.' },
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
