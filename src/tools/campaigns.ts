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

const campaignId = Type.String({ description: 'The id of a campaign or of a workflow email, cmp_….' })
const LINE = `1 to ${CAMPAIGN_LIMITS.line} characters on one line.`
const preview = Type.String({ description: 'What inboxes show beside the subject; empty or null is none.' })
const content = Type.Unknown({
  description:
    'MAILY: {"type": "doc", "content": […]}. PLATE: a list of elements. Either may be JSON text. MARKDOWN: text.',
})
const senderId = Type.String({ description: 'The id of a sender, snd_…; get_email_senders lists them.' })
const replyTo = Type.String({ description: 'Where answers go; null is the sender.' })
const carriesDocument = { bodyLimit: DOCUMENT_LIMITS.bytes, jsonDepth: DOCUMENT_LIMITS.jsonDepth }
const campaignOnly = closed({ campaign: Campaign })

export const listCampaigns = defineTool({
  name: 'list_campaigns',
  title: 'List campaigns',
  description:
    'Lists campaigns without their content, newest first. Archived ones show only with status ARCHIVED; the internal emails of workflows never do.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({
    limit: limitOf(20),
    page: pageNumber(),
    status: Type.Optional(oneOf(CAMPAIGN_STATUSES)),
    query: Type.Optional(Type.String({ maxLength: 200, description: 'A part of the name or the subject.' })),
  }),
  output: numberedPageOf('campaigns', CampaignSummary),
  handler: list,
})

export const getCampaign = defineTool({
  name: 'get_campaign',
  title: 'Get a campaign',
  description:
    'Reads a campaign or the internal email of a workflow step: content, subject, sender, audience.',
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
    'Makes a draft. Without content it holds a greeting and an unsubscribe link; without senderId it takes the default sender, else the one used last, else any. Nothing is sent until it is scheduled.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  ...carriesDocument,
  input: closed({
    subject: Type.String({ description: `${LINE} It may hold {{variables}}.` }),
    name: defaulted(Type.String({ description: 'What it is called in lists.' }), 'Untitled'),
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
    'Changes a draft or the internal email of a workflow: its lines, its sender, and its content, either as a whole (content) or by operations on what is there. Operations apply in order, all or none; one that matches nothing refuses them all. An edit of an internal email takes effect when its workflow is published again.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  ...carriesDocument,
  input: closed({
    id: campaignId,
    name: Type.Optional(Type.String({ description: 'What it is called in lists.' })),
    subject: Type.Optional(Type.String({ description: LINE })),
    preview: Type.Optional(nullable(preview)),
    content: Type.Optional(content),
    operations: Type.Optional(
      Type.Array(WireOperation, {
        minItems: 1,
        maxItems: MAXIMUM_OPERATIONS,
        description: 'Instead of content. Content in MARKDOWN takes replace_text only.',
      }),
    ),
    senderId: Type.Optional(senderId),
    replyTo: Type.Optional(nullable(replyTo)),
    contentType: Type.Optional(oneOf(CONTENT_TYPES, { description: 'Goes with content of the new type.' })),
  }),
  output: closed({ campaign: Campaign, operations: Type.Array(AppliedOperation) }),
  handler: (call, { id, ...change }) => edit(call, id, change),
})

export const updateCampaignFilters = defineTool({
  name: 'update_campaign_filters',
  title: 'Set the audience of a campaign',
  description:
    'Replaces the filters of a draft, all of which must hold; an empty list is every SUBSCRIBED subscriber. get_available_filters describes the language.',
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
    'Makes a draft with the content, sender and audience of a campaign in any state, or of the internal email of a workflow.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  input: closed({
    campaignId,
    newName: Type.Optional(Type.String({ description: 'Without it, the name with "(copy)" after it.' })),
  }),
  output: campaignOnly,
  handler: async (call, input) => ({ campaign: await duplicate(call, input.campaignId, input.newName) }),
})

export const archiveCampaign = defineTool({
  name: 'archive_campaign',
  title: 'Archive a campaign',
  description:
    'Takes a draft out of the list; it can no longer be edited until unarchive_campaign. Asks for a confirmation code.',
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
  description: 'Makes an archived campaign a draft again, to be edited and scheduled.',
  group: 'campaigns',
  effect: 'write',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: campaignOnly,
  handler: async (call, input) => ({ campaign: await moveCampaign(call, input.campaignId, 'unarchive') }),
})
