import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The effect of a reason: it speaks for sending the email, against it, delays it, or is only information. */
const REASON_OUTCOMES = ['FOR', 'AGAINST', 'WAITING', 'NOTE'] as const

/** The state of a person with regard to a campaign or workflow. */
const VERDICTS = ['GOT_IT', 'DID_NOT_GET_IT', 'UNDER_WAY', 'WOULD_GET_IT', 'WOULD_NOT_GET_IT'] as const
export type VerdictOutcome = (typeof VERDICTS)[number]

/** One reason why a person got an email, did not get it, or would or would not get it. */
export const Reason = closed({
  at: nullable(Type.String({ description: 'When it was decided or happened; null is as things are now.' })),
  outcome: oneOf(REASON_OUTCOMES),
  code: Type.String({ description: 'For programs: SUPPRESSED, NOT_IN_AUDIENCE, RETRIES_OVER, …' }),
  message: Type.String({ description: 'A sentence that can be read aloud.' }),
  path: Type.Optional(Type.String({ description: 'The filter or the part of the email that it is about.' })),
  value: Type.Optional(Type.Unknown({ description: 'What this person has there.' })),
  emailId: Type.Optional(Type.String({ description: 'eml_…' })),
  runId: Type.Optional(Type.String({ description: 'run_…' })),
  stepId: Type.Optional(Type.String()),
})
export type Reason = Static<typeof Reason>

/** All reasons in order: past events by time, then the conditions that apply now. */
export const Explanation = closed({
  reasons: Type.Array(Reason),
  verdict: closed({
    outcome: oneOf(VERDICTS),
    message: Type.String({ description: 'The answer in a sentence or two.' }),
  }),
})
export type Explanation = Static<typeof Explanation>
