import Type from 'typebox'

import { closed, defaulted, oneOf } from '../../schema/define.ts'
import { GROWTH_INTERVALS, SubscriberGrowth, SubscriberStats } from '../../schema/statistics.ts'
import { defineTool } from '../catalogue/tool.ts'
import { readGrowth, readSubscriberStats } from '../domain/subscribers/statistics.ts'

const range = {
  from: Type.Optional(
    Type.String({
      description:
        'The start of the period, ISO 8601. A date, or a time without an offset, is in the time zone of the organization.',
    }),
  ),
  to: Type.Optional(
    Type.String({
      description: 'The end of the period, ISO 8601. A date includes that day. Defaults to now.',
    }),
  ),
}

export const getSubscriberGrowth = defineTool({
  name: 'get_subscriber_growth',
  title: 'Get subscriber growth',
  description:
    'Returns the growth of the audience by day, week or month in the time zone of the organization, without gaps: how many people were added, subscribed, unsubscribed, bounced and complained. Without `from`, covers the last 30 days, 12 weeks or 12 months.',
  group: 'organization',
  effect: 'read',
  permission: 'organization',
  input: closed({ ...range, interval: defaulted(oneOf(GROWTH_INTERVALS), 'day') }),
  output: closed({ growth: SubscriberGrowth }),
  handler: async (call, input) => ({ growth: await readGrowth(call, input) }),
})

export const getSubscriberStats = defineTool({
  name: 'get_subscriber_stats',
  title: 'Get subscriber statistics',
  description:
    'Returns the current number of subscribers by status, and the changes within a period. Without `from`, covers the last 30 days.',
  group: 'organization',
  effect: 'read',
  permission: 'organization',
  input: closed(range),
  output: closed({ stats: SubscriberStats }),
  handler: async (call, input) => ({ stats: await readSubscriberStats(call, input) }),
})
