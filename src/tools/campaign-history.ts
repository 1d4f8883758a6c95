import Type from 'typebox'

import { Campaign, HistoryEntry, HistorySummary } from '../../schema/campaign.ts'
import { closed, limitOf, pageOf } from '../../schema/define.ts'
import { defineTool } from '../catalogue/tool.ts'
import { getHistoryEntry, listHistory, restoreHistory } from '../domain/campaigns/history.ts'

const campaignId = Type.String({
  description: 'The id of a campaign or of the internal email of a workflow (`cmp_…`).',
})
const historyId = Type.String({
  description: 'The id of a history entry (`hst_…`); `list_campaign_history` lists them.',
})

export const listCampaignHistory = defineTool({
  name: 'list_campaign_history',
  title: 'List the history of a campaign',
  description:
    'Returns the change history of a campaign, newest first. Each entry is the version of the campaign after one change, without its content. The id of an entry can be sent as `cursor`.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({
    campaignId,
    cursor: Type.Optional(
      Type.String({
        description: 'The id of the last entry of the previous page (`hst_…`); returns the entries after it.',
      }),
    ),
    limit: limitOf(20),
  }),
  output: pageOf('entries', HistorySummary),
  handler: listHistory,
})

export const getCampaignHistoryEntry = defineTool({
  name: 'get_campaign_history_entry',
  title: 'Get a history entry',
  description: 'Returns one entry of the history of a campaign, including the content of that version.',
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
    'Restores the subject, preview and content of a history entry, whatever the status of the campaign, and adds a new history entry. Emails that were already sent do not change. Returns the campaign.',
  group: 'campaigns',
  effect: 'write',
  permission: 'campaigns',
  input: closed({ campaignId, historyId }),
  output: closed({ campaign: Campaign }),
  handler: async (call, input) => ({
    campaign: await restoreHistory(call, input.campaignId, input.historyId),
  }),
})
