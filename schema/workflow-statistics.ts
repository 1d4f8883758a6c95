import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The results of comparing a variant with the holdout. */
const LIFT_VERDICTS = ['HIGHER', 'LOWER', 'NO_DIFFERENCE_SEEN', 'TOO_FEW'] as const

/**
 * The conversion rate of a variant relative to the holdout's; 0.2 means a fifth higher. `interval` is a 95 % confidence
 * interval.
 */
export const Lift = closed({
  verdict: oneOf(LIFT_VERDICTS),
  lift: nullable(
    Type.Number({
      description:
        'The relative lift over the holdout: rate / holdout rate − 1. Null if `verdict` is TOO_FEW, that is, if the variant or the holdout has fewer than 100 people or 10 conversions.',
    }),
  ),
  interval: nullable(closed({ low: Type.Number(), high: Type.Number() })),
  note: Type.String(),
})
export type Lift = Static<typeof Lift>

const visits = closed({ unique: Type.Integer(), total: Type.Integer() })

/** The statistics of a workflow over all its versions. The goals are those of the published version. */
export const WorkflowStatistics = closed({
  entries: Type.Integer({ description: 'The number of runs, without those that a workflow group skipped.' }),
  active: Type.Integer(),
  completions: Type.Integer({ description: 'The number of runs with the status COMPLETED.' }),
  exits: Type.Record(Type.String(), Type.Integer(), {
    description: 'The number of ended runs by `exitReason`.',
  }),
  activeByStep: Type.Array(
    closed({
      stepId: Type.String(),
      type: nullable(Type.String()),
      name: nullable(Type.String()),
      runs: Type.Integer(),
    }),
  ),
  goals: Type.Array(
    closed({
      id: Type.String(),
      name: Type.String(),
      conversions: Type.Integer(),
      people: Type.Integer(),
      rate: nullable(Type.Number({ description: 'The conversion rate: conversions / entries.' })),
      values: Type.Array(closed({ currency: nullable(Type.String()), total: Type.Number() })),
    }),
  ),
  emails: Type.Array(
    closed({
      stepId: Type.String(),
      campaignId: Type.String(),
      subject: Type.String(),
      isCurrent: Type.Boolean({
        description:
          'Whether the published version sends this email. Emails that only earlier versions sent come last.',
      }),
      sent: Type.Integer(),
      delivered: Type.Integer(),
      bounced: Type.Integer(),
      complained: Type.Integer(),
      failed: Type.Integer(),
      skipped: Type.Integer(),
      opens: visits,
      clicks: visits,
      unsubscribes: Type.Integer(),
    }),
  ),
  holdouts: Type.Array(
    closed({
      stepId: Type.String(),
      goalId: Type.String(),
      holdoutVariantId: Type.String(),
      variants: Type.Array(
        closed({
          id: Type.String(),
          people: Type.Integer(),
          converted: Type.Integer(),
          rate: nullable(Type.Number()),
          lift: nullable(Lift),
        }),
      ),
    }),
    { description: 'The comparison of variants for each SPLIT with a `holdoutVariantId` and each goal.' },
  ),
})
export type WorkflowStatistics = Static<typeof WorkflowStatistics>
