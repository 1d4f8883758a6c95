import { sql } from 'kysely'

import type { Filter } from '../../schema/audience.ts'
import type { Campaign, CampaignKind, RenderFormat, RenderWarning } from '../../schema/campaign.ts'
import type { CampaignStatus, ContentType } from '../../schema/values.ts'
import { compileContent, type CompiledEmail } from '../content/compile.ts'
import { fillContent } from '../content/fill.ts'
import { Failure } from '../catalogue/failure.ts'
import type { Call } from '../catalogue/tool.ts'
import { row } from '../database.ts'
import { decodeId, encodeId, missing } from '../ids.ts'
import { customFieldTypes } from './audience/references.ts'
import { findSubscriber } from './subscriber-records.ts'
import { timestamp } from './text.ts'
import { organizationVariables, personVariables } from './variables.ts'

/** An email as its recipient gets it, without counting; the parts that were not asked for are absent. */
export type Rendered = {
  subject: string
  preview: string
  html?: string
  text?: string
  warnings: RenderWarning[]
}

type CampaignRow = {
  id: string
  kind: CampaignKind
  name: string
  subject: string
  preview: string | null
  content: unknown
  contentType: ContentType
  senderId: string | null
  senderName: string
  senderEmail: string
  replyTo: string | null
  recipientFilters: Filter[]
  status: CampaignStatus
  automationId: string | null
  stepId: string | null
  /** The flag of the step whose internal email it is. */
  transactional: boolean
  createdAt: string
  updatedAt: string
}

/** A campaign or a workflow's internal email, in full. */
export async function getCampaign(call: Call, campaignId: string): Promise<Campaign> {
  const found = await findCampaign(call, campaignId)
  const { senderId, senderName, senderEmail, automationId, transactional: _, ...campaign } = found
  return {
    ...campaign,
    id: encodeId('cmp', found.id),
    senderId: senderId === null ? null : encodeId('snd', senderId),
    sender:
      senderId === null ? null : { id: encodeId('snd', senderId), name: senderName, email: senderEmail },
    workflowId: automationId === null ? null : encodeId('wf', automationId),
    createdAt: timestamp(campaign.createdAt),
    updatedAt: timestamp(campaign.updatedAt),
  }
}

/**
 * Renders a campaign for one subscriber, or for somebody of whom nothing is known, by the way every email takes to its
 * recipient. Links lead where they say, because nothing is counted; the personal addresses are samples.
 */
export async function renderCampaign(
  call: Call,
  {
    campaignId,
    subscriberId,
    format,
  }: { campaignId: string; subscriberId?: string | undefined; format: RenderFormat },
): Promise<Rendered> {
  const campaign = await findCampaign(call, campaignId)
  const variables = await variablesFor(call, subscriberId)
  const compiled = await compileCampaign(call, campaign)
  const { baseUrl } = call.services.config
  const filled = fillContent(compiled, {
    variables,
    urls: { unsubscribe: `${baseUrl}/u/preview`, online: `${baseUrl}/v/preview` },
  })
  return {
    subject: filled.subject,
    preview: filled.preheader,
    ...(format !== 'text' && { html: filled.html }),
    ...(format !== 'html' && { text: filled.text }),
    warnings: [
      ...compiled.warnings.map(({ code, message }) => ({ code, message })),
      ...missingParts(campaign, compiled),
    ],
  }
}

async function findCampaign({ em, organization }: Call, campaignId: string): Promise<CampaignRow> {
  const found = await row<CampaignRow>(
    em,
    sql`select campaign.id, campaign.kind, campaign.name, campaign.subject, campaign.preview, campaign.content,
        campaign.content_type as "contentType", sender.id as "senderId", sender.name as "senderName",
        sender.email as "senderEmail", campaign.reply_to as "replyTo",
        campaign.recipient_filters as "recipientFilters", campaign.status, campaign.automation_id as "automationId",
        campaign.step_id as "stepId", campaign.created_at as "createdAt", campaign.updated_at as "updatedAt",
        coalesce((select (step -> 'config' ->> 'transactional')::boolean
          from automation, jsonb_array_elements(automation.draft -> 'steps') step
          where automation.organization_id = campaign.organization_id and automation.id = campaign.automation_id
            and step ->> 'id' = campaign.step_id limit 1), false) as transactional
      from campaign left join sender
        on sender.organization_id = campaign.organization_id and sender.id = campaign.sender_id
      where campaign.organization_id = ${organization.id} and campaign.id = ${decodeId('cmp', campaignId)}`,
  )
  return found ?? missing('cmp', campaignId)
}

async function compileCampaign(call: Call, campaign: CampaignRow): Promise<CompiledEmail> {
  const { content, contentType, subject, preview, transactional } = campaign
  if (contentType !== 'MARKDOWN') {
    throw new Failure(
      'WRONG_STATE',
      `The campaign ${encodeId('cmp', campaign.id)} is written in ${contentType}, which cannot be rendered yet; MARKDOWN can.`,
    )
  }
  const fields = await customFieldTypes(call.em, { organizationId: call.organization.id })
  return compileContent({
    contentType,
    source: typeof content === 'string' ? content : '',
    subject,
    preview,
    kind: transactional ? 'transactional' : 'marketing',
    knownVariables: fields.keys(),
  })
}

/** Values by variable name; without a subscriber the fallbacks show. */
async function variablesFor(call: Call, subscriberId: string | undefined): Promise<Record<string, unknown>> {
  const { name } = call.organization
  if (subscriberId === undefined) return organizationVariables(name)
  return personVariables(await findSubscriber(call, { subscriberId }), name)
}

/** What is no fault of the content, but would surprise whoever sends it. */
function missingParts({ kind, subject }: CampaignRow, compiled: CompiledEmail): RenderWarning[] {
  const warnings: RenderWarning[] = []
  if (subject.trim() === '') warnings.push({ code: 'NO_SUBJECT', message: 'There is no subject; write one.' })
  if (!compiled.unsubscribeLinkAdded) return warnings
  const consequence =
    kind === 'BROADCAST'
      ? 'scheduling it will be refused: add {{unsubscribeUrl}} as a link, or a footer.'
      : 'a footer with one was added.'
  warnings.push({
    code: 'UNSUBSCRIBE_LINK_ADDED',
    message: `The content has no unsubscribe link; ${consequence}`,
  })
  return warnings
}
