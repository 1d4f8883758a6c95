import Type from 'typebox'

import { closed, defaulted, oneOf } from '../../schema/define.ts'
import { GROWTH_INTERVALS, SubscriberGrowth, SubscriberStats } from '../../schema/statistics.ts'
import { defineTool } from '../catalogue/tool.ts'
import { readGrowth, readSubscriberStats } from '../domain/subscriber-statistics.ts'

const range = {
  from: Type.Optional(
    Type.String({ description: "ISO 8601; a date or a local time is in the organization's time zone." }),
  ),
  to: Type.Optional(Type.String({ description: 'ISO 8601; a date is included. Now when left out.' })),
}

export const getSubscriberGrowth = defineTool({
  name: 'get_subscriber_growth',
  title: 'Get subscriber growth',
  description:
    "Counts who came and went by day, week or month of the organization's time zone, without gaps; the last 30 days, 12 weeks or 12 months when from is left out.",
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
    'Counts subscribers by status now, and who came and went in a period; the last 30 days when from is left out.',
  group: 'organization',
  effect: 'read',
  permission: 'organization',
  input: closed(range),
  output: closed({ stats: SubscriberStats }),
  handler: async (call, input) => ({ stats: await readSubscriberStats(call, input) }),
})
