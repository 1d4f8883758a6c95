import Type from 'typebox'

import { Filters } from '../../schema/audience.ts'
import { Campaign } from '../../schema/campaign.ts'
import { closed, nullable, oneOf } from '../../schema/define.ts'
import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { CONTENT_TYPES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import {
  deleteCampaign as remove,
  summarizeDeletion,
  updateCampaign as update,
} from '../domain/campaigns/update.ts'

const campaignId = Type.String({ description: 'The id of a campaign, cmp_….' })

export const updateCampaign = defineTool({
  name: 'update_campaign',
  title: 'Update a campaign',
  description:
    'Merges what is sent into a draft: its lines, sender, content and audience. What is left out stays; null clears preview and replyTo.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  listed: false,
  bodyLimit: DOCUMENT_LIMITS.bytes,
  jsonDepth: DOCUMENT_LIMITS.jsonDepth,
  input: closed({
    campaignId,
    name: Type.Optional(Type.String()),
    subject: Type.Optional(Type.String()),
    preview: Type.Optional(nullable(Type.String())),
    content: Type.Optional(Type.Unknown({ description: 'The whole document, or Markdown text.' })),
    contentType: Type.Optional(oneOf(CONTENT_TYPES, { description: 'Goes with content of the new type.' })),
    senderId: Type.Optional(Type.String({ description: 'snd_…' })),
    replyTo: Type.Optional(nullable(Type.String())),
    recipientFilters: Type.Optional(Filters),
  }),
  output: closed({ campaign: Campaign }),
  handler: async (call, input) => {
    const { campaignId: id, ...patch } = input
    return { campaign: await update(call, id, patch) }
  },
})

export const deleteCampaign = defineTool({
  name: 'delete_campaign',
  title: 'Delete a campaign',
  description: 'Deletes a campaign that is a draft or archived, with its history. It cannot be undone.',
  group: 'campaigns',
  effect: 'impact',
  permission: 'campaigns',
  listed: false,
  input: closed({ campaignId }),
  output: closed({ id: Type.String({ description: 'The id it had (cmp_…).' }) }),
  summarize: (call, input) => summarizeDeletion(call, input.campaignId),
  handler: async (call, input) => ({ id: await remove(call, input.campaignId) }),
})
