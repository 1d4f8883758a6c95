import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The effect of a reason: it speaks for sending the email, against it, delays it, or is only information. */
const REASON_OUTCOMES = ['FOR', 'AGAINST', 'WAITING', 'NOTE'] as const

/** The state of a person with regard to a campaign or workflow. */
const VERDICTS = ['GOT_IT', 'DID_NOT_GET_IT', 'UNDER_WAY', 'WOULD_GET_IT', 'WOULD_NOT_GET_IT'] as const
export type VerdictOutcome = (typeof VERDICTS)[number]

/** One reason why a person got an email, did not get it, or would or would not get it. */
export const Reason = closed({
  at: nullable(
    Type.String({ description: 'The time of the decision or event. Null for a condition that holds now.' }),
  ),
  outcome: oneOf(REASON_OUTCOMES),
  code: Type.String({ description: 'A code for programs: SUPPRESSED, NOT_IN_AUDIENCE, RETRIES_OVER, …' }),
  message: Type.String({ description: 'The reason as a readable sentence.' }),
  path: Type.Optional(
    Type.String({
      description: 'The path of the filter or of the part of the email that the reason is about.',
    }),
  ),
  value: Type.Optional(Type.Unknown({ description: 'The value that this subscriber has there.' })),
  emailId: Type.Optional(Type.String({ description: 'The id of the email (`eml_…`).' })),
  runId: Type.Optional(Type.String({ description: 'The id of the workflow run (`run_…`).' })),
  stepId: Type.Optional(Type.String()),
})
export type Reason = Static<typeof Reason>

/** All reasons in order: past events by time, then the conditions that apply now. */
export const Explanation = closed({
  reasons: Type.Array(Reason),
  verdict: closed({
    outcome: oneOf(VERDICTS),
    message: Type.String({ description: 'The answer in one or two sentences.' }),
  }),
})
export type Explanation = Static<typeof Explanation>
