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

const campaignId = Type.String({ description: 'The id of a campaign (`cmp_…`).' })
const campaignOnly = closed({ campaign: Campaign })

export const scheduleCampaign = defineTool({
  name: 'schedule_campaign',
  title: 'Schedule a campaign',
  description:
    'Schedules a draft to be sent to its audience at a given time, or sends it now if `date` is omitted. The draft needs a subject, content with an unsubscribe link, and a sender on a verified domain. Requires a confirmation code; the first answer says how many people will get the campaign.',
  group: 'campaigns',
  effect: 'impact',
  permission: 'campaigns',
  input: closed({
    campaignId,
    date: Type.Optional(
      Type.String({
        description:
          'The time to send: a date (2030-01-31, at midnight or at `hours` and `minutes`) or an ISO 8601 date and time (2030-01-31T09:00:00Z). Defaults to now.',
      }),
    ),
    hours: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 23, description: 'The hour to send at, when `date` has no time.' }),
    ),
    minutes: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 59,
        description: 'The minute to send at, when `date` has no time.',
      }),
    ),
    timezone: defaulted(
      Type.String({ description: 'The IANA time zone of `date`, such as Europe/Paris.' }),
      'Europe/Paris',
    ),
  }),
  output: campaignOnly,
  summarize: summarizeSchedule,
  handler: async (call, input) => ({ campaign: await schedule(call, input) }),
})

export const cancelCampaignSchedule = defineTool({
  name: 'cancel_campaign_schedule',
  title: 'Cancel the schedule of a campaign',
  description:
    'Turns a SCHEDULED campaign back into a draft. A campaign that is already being sent can only be paused, with `pause_campaign`.',
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
    'Pauses a campaign that is being sent. Emails that have not been handed to a mail server wait until `resume_campaign`.',
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
    'Resumes a paused campaign: sends it to all recipients whose emails have no outcome yet. Requires a confirmation code.',
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
    'Returns the sending progress of a campaign: totals by outcome, the recipients who were skipped and why, the sending rate and the estimated time left.',
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
    'Returns the results of a campaign: opens and clicks (those of people and those of machines separately), clicks by link, unsubscribes, bounces, complaints, revenue, and events by hour.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: closed({ analytics: CampaignAnalytics }),
  handler: async (call, input) => ({ analytics: await readAnalytics(call, input.campaignId) }),
})
