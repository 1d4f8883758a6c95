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
  created: Type.Integer({ description: 'People who were added, whatever their status.' }),
  subscribed: Type.Integer({ description: 'How often somebody subscribed, also again.' }),
  unsubscribed: Type.Integer({ description: 'How often somebody unsubscribed.' }),
  bounced: Type.Integer({ description: 'People whose email came back.' }),
  complained: Type.Integer({ description: 'People who complained about an email.' }),
  net: Type.Integer({ description: 'subscribed less unsubscribed.' }),
}

/** The growth of an audience in consecutive buckets. */
export const SubscriberGrowth = closed({
  from: Type.String(),
  to: Type.String({ description: 'The end, which is not part of it.' }),
  interval: oneOf(GROWTH_INTERVALS),
  timezone: Type.String(),
  buckets: Type.Array(
    closed({
      date: Type.String({ description: 'The first day of the bucket in the time zone, such as 2025-03-30.' }),
      start: Type.String({ description: 'When that day begins.' }),
      ...changes,
      total: Type.Integer({
        description: 'People of today who had been added by the end of the bucket.',
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
    to: Type.String({ description: 'The end, which is not part of it.' }),
    ...changes,
    growthRate: nullable(
      Type.Number({ description: 'net in percent of who was there before; null where nobody was.' }),
    ),
  }),
})
export type SubscriberStats = Static<typeof SubscriberStats>
