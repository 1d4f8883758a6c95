import Type from 'typebox'

import { Filters } from '../../schema/audience.ts'
import { AppliedOperation, MAXIMUM_OPERATIONS, WireOperation } from '../../schema/campaign-edit.ts'
import { Campaign, CAMPAIGN_LIMITS, CampaignSummary } from '../../schema/campaign.ts'
import {
  closed,
  defaulted,
  limitOf,
  nullable,
  numberedPageOf,
  oneOf,
  pageNumber,
} from '../../schema/define.ts'
import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { CAMPAIGN_STATUSES, CONTENT_TYPES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { createCampaign as create, duplicateCampaign as duplicate } from '../domain/campaigns/create.ts'
import { editCampaign as edit, updateFilters } from '../domain/campaigns/edit.ts'
import { getCampaign as readCampaign, listCampaigns as list } from '../domain/campaigns/records.ts'
import { moveCampaign, summarizeArchival } from '../domain/campaigns/status.ts'

const campaignId = Type.String({
  description: 'The id of a campaign or of the internal email of a workflow (`cmp_…`).',
})
const LINE = `1 to ${CAMPAIGN_LIMITS.line} characters on one line.`
const preview = Type.String({
  description: 'The preview text that inboxes show next to the subject. An empty string or null means none.',
})
const content = Type.Unknown({
  description:
    'The content, in the form of `contentType`. MAILY: {"type": "doc", "content": […]}. PLATE: a list of elements. Either may also be sent as JSON text. MARKDOWN: text.',
})
const senderId = Type.String({
  description: 'The id of the sender (`snd_…`); `get_email_senders` lists them.',
})
const replyTo = Type.String({
  description: 'The address that replies go to. Null means the reply address of the sender.',
})
const carriesDocument = { bodyLimit: DOCUMENT_LIMITS.bytes, jsonDepth: DOCUMENT_LIMITS.jsonDepth }
const campaignOnly = closed({ campaign: Campaign })

export const listCampaigns = defineTool({
  name: 'list_campaigns',
  title: 'List campaigns',
  description:
    'Returns campaigns without their content, newest first. Archived campaigns are only included with `status` ARCHIVED. Internal emails of workflows are never included.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({
    limit: limitOf(20),
    page: pageNumber(),
    status: Type.Optional(oneOf(CAMPAIGN_STATUSES)),
    query: Type.Optional(
      Type.String({ maxLength: 200, description: 'Text to find in the name or the subject.' }),
    ),
  }),
  output: numberedPageOf('campaigns', CampaignSummary),
  handler: list,
})

export const getCampaign = defineTool({
  name: 'get_campaign',
  title: 'Get a campaign',
  description:
    'Returns one campaign, or the internal email of a workflow step, with its content, subject, sender and audience.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: campaignOnly,
  handler: async (call, input) => ({ campaign: await readCampaign(call, input.campaignId) }),
})

export const createCampaign = defineTool({
  name: 'create_campaign',
  title: 'Create a campaign',
  description:
    'Creates a draft campaign and returns it. Nothing is sent before `schedule_campaign`. Without `content`, the draft contains a greeting and an unsubscribe link. Without `senderId`, it uses the default sender, else the last used one, else any.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  ...carriesDocument,
  input: closed({
    subject: Type.String({ description: `The subject: ${LINE} It may contain {{variables}}.` }),
    name: defaulted(
      Type.String({ description: 'The name of the campaign in lists. Recipients do not see it.' }),
      'Untitled',
    ),
    preview: Type.Optional(nullable(preview)),
    content: Type.Optional(content),
    contentType: defaulted(oneOf(CONTENT_TYPES), 'MAILY'),
    senderId: Type.Optional(senderId),
    replyTo: Type.Optional(nullable(replyTo)),
  }),
  output: campaignOnly,
  handler: async (call, input) => ({ campaign: await create(call, input) }),
})

export const editCampaign = defineTool({
  name: 'edit_campaign',
  title: 'Edit a campaign',
  description:
    'Changes a draft, or the internal email of a workflow: its name, subject, preview, sender and reply address, and its content, either as a whole (`content`) or by `operations` on the current content. Operations are applied in order, all or none: if one matches nothing, all are refused. A change to an internal email takes effect when its workflow is published again. Returns the campaign and what each operation matched.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  ...carriesDocument,
  input: closed({
    id: campaignId,
    name: Type.Optional(
      Type.String({ description: 'The name of the campaign in lists. Recipients do not see it.' }),
    ),
    subject: Type.Optional(Type.String({ description: `The subject: ${LINE}` })),
    preview: Type.Optional(nullable(preview)),
    content: Type.Optional(content),
    operations: Type.Optional(
      Type.Array(WireOperation, {
        minItems: 1,
        maxItems: MAXIMUM_OPERATIONS,
        description:
          'Changes to the current content, instead of `content`. MARKDOWN content accepts `replace_text` only.',
      }),
    ),
    senderId: Type.Optional(senderId),
    replyTo: Type.Optional(nullable(replyTo)),
    contentType: Type.Optional(
      oneOf(CONTENT_TYPES, {
        description: 'The content type. Changing it requires `content` of the new type.',
      }),
    ),
  }),
  output: closed({ campaign: Campaign, operations: Type.Array(AppliedOperation) }),
  handler: (call, { id, ...change }) => edit(call, id, change),
})

export const updateCampaignFilters = defineTool({
  name: 'update_campaign_filters',
  title: 'Set the audience of a campaign',
  description:
    'Replaces the audience filters of a draft. A subscriber must match all of them; an empty list means every SUBSCRIBED subscriber. `get_available_filters` describes the filter language. Returns the campaign.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  input: closed({ campaignId, filters: Filters }),
  output: campaignOnly,
  handler: async (call, input) => ({
    campaign: await updateFilters(call, input.campaignId, input.filters),
  }),
})

export const duplicateCampaign = defineTool({
  name: 'duplicate_campaign',
  title: 'Duplicate a campaign',
  description:
    'Creates a draft with the content, sender and audience of a campaign in any status, or of the internal email of a workflow. Returns the new campaign.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  input: closed({
    campaignId,
    newName: Type.Optional(
      Type.String({
        description: 'The name of the copy. Defaults to the original name followed by "(copy)".',
      }),
    ),
  }),
  output: campaignOnly,
  handler: async (call, input) => ({ campaign: await duplicate(call, input.campaignId, input.newName) }),
})

export const archiveCampaign = defineTool({
  name: 'archive_campaign',
  title: 'Archive a campaign',
  description:
    'Archives a draft: it is no longer listed by default and cannot be edited until `unarchive_campaign`. Requires a confirmation code.',
  group: 'campaigns',
  effect: 'impact',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: campaignOnly,
  summarize: (call, input) => summarizeArchival(call, input.campaignId),
  handler: async (call, input) => ({ campaign: await moveCampaign(call, input.campaignId, 'archive') }),
})

export const unarchiveCampaign = defineTool({
  name: 'unarchive_campaign',
  title: 'Unarchive a campaign',
  description: 'Turns an archived campaign back into a draft, which can be edited and scheduled.',
  group: 'campaigns',
  effect: 'write',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: campaignOnly,
  handler: async (call, input) => ({ campaign: await moveCampaign(call, input.campaignId, 'unarchive') }),
})
