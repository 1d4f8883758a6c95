import Type from 'typebox'

import { Campaign, CampaignAnalytics, CampaignProgress } from '../../schema/campaign.ts'
import { closed, defaulted } from '../../schema/define.ts'
import { defineTool } from '../catalogue/tool.ts'
import { readAnalytics } from '../domain/campaigns/analytics.ts'
import { readProgress } from '../domain/campaigns/progress.ts'
import {
  cancelSchedule,
  pauseCampaign as pause,
  resumeCampaign as resume,
  scheduleCampaign as schedule,
  summarizeResume,
  summarizeSchedule,
} from '../domain/campaigns/schedule.ts'

const campaignId = Type.String({ description: 'The id of a campaign, cmp_….' })
const campaignOnly = closed({ campaign: Campaign })

export const scheduleCampaign = defineTool({
  name: 'schedule_campaign',
  title: 'Schedule a campaign',
  description:
    'Sends a draft to its audience at a time, or now without date. It needs a subject, content with an unsubscribe link, and a sender on a verified domain. Asks for a confirmation code and says how many people get it.',
  group: 'campaigns',
  effect: 'impact',
  permission: 'campaigns',
  input: closed({
    campaignId,
    date: Type.Optional(
      Type.String({
        description: '2030-01-31 (midnight, or hours and minutes) or 2030-01-31T09:00:00Z. Without it: now.',
      }),
    ),
    hours: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 23, description: 'With a date that has no time.' }),
    ),
    minutes: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 59, description: 'With a date that has no time.' }),
    ),
    timezone: defaulted(Type.String({ description: 'An IANA name, such as Europe/Paris.' }), 'Europe/Paris'),
  }),
  output: campaignOnly,
  summarize: summarizeSchedule,
  handler: async (call, input) => ({ campaign: await schedule(call, input) }),
})

export const cancelCampaignSchedule = defineTool({
  name: 'cancel_campaign_schedule',
  title: 'Cancel the schedule of a campaign',
  description: 'Makes a SCHEDULED campaign a draft again. One that has begun to be sent can only be paused.',
  group: 'campaigns',
  effect: 'write',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: campaignOnly,
  handler: async (call, input) => ({ campaign: await cancelSchedule(call, input.campaignId) }),
})

export const pauseCampaign = defineTool({
  name: 'pause_campaign',
  title: 'Pause a campaign',
  description:
    'Holds a campaign that is being sent: what has not been handed to a mail server waits until resume_campaign.',
  group: 'campaigns',
  effect: 'write',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: campaignOnly,
  handler: async (call, input) => ({ campaign: await pause(call, input.campaignId) }),
})

export const resumeCampaign = defineTool({
  name: 'resume_campaign',
  title: 'Resume a campaign',
  description:
    'Goes on sending a paused campaign to everybody who has no outcome yet. Asks for a confirmation code.',
  group: 'campaigns',
  effect: 'impact',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: campaignOnly,
  summarize: (call, input) => summarizeResume(call, input.campaignId),
  handler: async (call, input) => ({ campaign: await resume(call, input.campaignId) }),
})

export const getCampaignProgress = defineTool({
  name: 'get_campaign_progress',
  title: 'Get the progress of a campaign',
  description:
    'How far a campaign is: totals by outcome, who was skipped and why, the rate and the time left.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: closed({ progress: CampaignProgress }),
  handler: async (call, input) => ({ progress: await readProgress(call, input.campaignId) }),
})

export const getCampaignAnalytics = defineTool({
  name: 'get_campaign_analytics',
  title: 'Get the analytics of a campaign',
  description:
    'Opens and clicks of people and of machines apart, clicks by link, unsubscribes, bounces, complaints, revenue, and what happened by the hour.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: closed({ analytics: CampaignAnalytics }),
  handler: async (call, input) => ({ analytics: await readAnalytics(call, input.campaignId) }),
})
