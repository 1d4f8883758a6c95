import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** What a reason does: it lets the email go, stops it, holds it for now, or only tells what happened. */
const REASON_OUTCOMES = ['FOR', 'AGAINST', 'WAITING', 'NOTE'] as const

/** How it stands with a person and a campaign or workflow. */
const VERDICTS = ['GOT_IT', 'DID_NOT_GET_IT', 'UNDER_WAY', 'WOULD_GET_IT', 'WOULD_NOT_GET_IT'] as const
export type VerdictOutcome = (typeof VERDICTS)[number]

/** One reason why somebody got an email, did not, or would not. */
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

/** Every reason in order: what happened by its time, then what holds now. */
export const Explanation = closed({
  reasons: Type.Array(Reason),
  verdict: closed({
    outcome: oneOf(VERDICTS),
    message: Type.String({ description: 'The answer in a sentence or two.' }),
  }),
})
export type Explanation = Static<typeof Explanation>
