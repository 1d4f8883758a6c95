import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { StatusCounts } from './subscriber.ts'

/** The lengths of a growth bucket. Each begins at midnight in the organization's time zone; a week begins on Monday. */
export const GROWTH_INTERVALS = ['day', 'week', 'month'] as const
export type GrowthInterval = (typeof GROWTH_INTERVALS)[number]

/** The most growth buckets in one answer. */
export const GROWTH_BUCKETS = 1_000

/** Changes of an audience within a period. */
const changes = {
  created: Type.Integer({ description: 'The number of subscribers that were added, whatever their status.' }),
  subscribed: Type.Integer({ description: 'The number of times that somebody subscribed, including again.' }),
  unsubscribed: Type.Integer({ description: 'The number of times that somebody unsubscribed.' }),
  bounced: Type.Integer({ description: 'The number of subscribers whose email bounced.' }),
  complained: Type.Integer({ description: 'The number of subscribers who complained about an email.' }),
  net: Type.Integer({ description: '`subscribed` minus `unsubscribed`.' }),
}

/** The growth of an audience in consecutive buckets. */
export const SubscriberGrowth = closed({
  from: Type.String(),
  to: Type.String({ description: 'The end of the period, exclusive.' }),
  interval: oneOf(GROWTH_INTERVALS),
  timezone: Type.String(),
  buckets: Type.Array(
    closed({
      date: Type.String({ description: 'The first day of the bucket in `timezone`, such as 2025-03-30.' }),
      start: Type.String({ description: 'The time at which that day begins.' }),
      ...changes,
      total: Type.Integer({
        description: 'The number of current subscribers who had been added by the end of the bucket.',
      }),
    }),
  ),
})
export type SubscriberGrowth = Static<typeof SubscriberGrowth>

/** The size of an audience now and its changes within a period. */
export const SubscriberStats = closed({
  total: Type.Integer(),
  byStatus: StatusCounts,
  period: closed({
    from: Type.String(),
    to: Type.String({ description: 'The end of the period, exclusive.' }),
    ...changes,
    growthRate: nullable(
      Type.Number({
        description:
          '`net` as a percentage of the current subscribers who had been added before the period. Null if there were none.',
      }),
    ),
  }),
})
export type SubscriberStats = Static<typeof SubscriberStats>
