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

const campaignId = Type.String({ description: 'The id of a campaign (`cmp_…`).' })

export const updateCampaign = defineTool({
  name: 'update_campaign',
  title: 'Update a campaign',
  description:
    'Changes the given fields of a draft: name, subject, preview, sender, reply address, content and audience. Omitted fields keep their values; null clears `preview` and `replyTo`. Returns the campaign.',
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
    content: Type.Optional(
      Type.Unknown({ description: 'The complete new content: a document, or Markdown text.' }),
    ),
    contentType: Type.Optional(
      oneOf(CONTENT_TYPES, {
        description: 'The content type. Changing it requires `content` of the new type.',
      }),
    ),
    senderId: Type.Optional(Type.String({ description: 'The id of the sender (`snd_…`).' })),
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
  description: 'Permanently deletes a campaign that is a draft or archived, together with its history.',
  group: 'campaigns',
  effect: 'impact',
  permission: 'campaigns',
  listed: false,
  input: closed({ campaignId }),
  output: closed({ id: Type.String({ description: 'The id of the deleted campaign (`cmp_…`).' }) }),
  summarize: (call, input) => summarizeDeletion(call, input.campaignId),
  handler: async (call, input) => ({ id: await remove(call, input.campaignId) }),
})
