import Type from 'typebox'

import { Campaign, HistoryEntry, HistorySummary } from '../../schema/campaign.ts'
import { closed, limitOf, pageOf } from '../../schema/define.ts'
import { defineTool } from '../catalogue/tool.ts'
import { getHistoryEntry, listHistory, restoreHistory } from '../domain/campaigns/history.ts'

const campaignId = Type.String({ description: 'The id of a campaign or of a workflow email, cmp_….' })
const historyId = Type.String({ description: 'The id of a history entry, hst_….' })

export const listCampaignHistory = defineTool({
  name: 'list_campaign_history',
  title: 'List the history of a campaign',
  description:
    'Lists what a campaign said after each change, newest first, without the content; the id of an entry is a cursor.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({
    campaignId,
    cursor: Type.Optional(Type.String({ description: 'The entry after which to go on, hst_….' })),
    limit: limitOf(20),
  }),
  output: pageOf('entries', HistorySummary),
  handler: listHistory,
})

export const getCampaignHistoryEntry = defineTool({
  name: 'get_campaign_history_entry',
  title: 'Get a history entry',
  description: 'Reads one entry of the history of a campaign, with the content it had then.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({ campaignId, historyId }),
  output: closed({ entry: HistoryEntry }),
  handler: async (call, input) => ({
    entry: await getHistoryEntry(call, input.campaignId, input.historyId),
  }),
})

export const restoreCampaignHistory = defineTool({
  name: 'restore_campaign_history',
  title: 'Restore a history entry',
  description:
    'Puts the subject, preview and content of an entry back, in any state of the campaign; a new entry records it. What was sent does not change.',
  group: 'campaigns',
  effect: 'write',
  permission: 'campaigns',
  input: closed({ campaignId, historyId }),
  output: closed({ campaign: Campaign }),
  handler: async (call, input) => ({
    campaign: await restoreHistory(call, input.campaignId, input.historyId),
  }),
})
