import { sql } from 'kysely'

import type { AppliedOperation, WireOperation } from '../../../schema/campaign-edit.ts'
import type { Campaign } from '../../../schema/campaign.ts'
import { DOCUMENT_LIMITS } from '../../../schema/document.ts'
import type { ContentType } from '../../../schema/values.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, json } from '../../database.ts'
import { checkFilters } from '../audience/check.ts'
import { readContent } from '../library/content.ts'
import { lockSegments } from '../segments/lock.ts'
import { applyOperations } from './document-operations.ts'
import { recordHistory } from './history.ts'
import { readName, readPreview, readReplyTo, readSubject } from './lines.ts'
import { readOperations } from './operations.ts'
import { type CampaignRow, findCampaign, getCampaign } from './records.ts'
import { findSender } from './sender.ts'
import { nextStatus } from './status.ts'

/** The changes that edit_campaign takes; members left out stay as they are. */
export type CampaignChange = {
  name?: string | undefined
  subject?: string | undefined
  preview?: string | null | undefined
  content?: unknown
  operations?: readonly WireOperation[] | undefined
  senderId?: string | undefined
  replyTo?: string | null | undefined
  contentType?: ContentType | undefined
}

/** Edits a draft or an internal email. A row lock makes concurrent edits run one after the other. */
export async function editCampaign(
  call: Call,
  campaignId: string,
  change: CampaignChange,
): Promise<{ campaign: Campaign; operations: AppliedOperation[] }> {
  refuseContradiction(change)
  const campaign = await findCampaign(call, campaignId, { lock: true })
  nextStatus(campaign, 'edit')
  const { name, subject, preview, replyTo, senderId } = change
  const next = {
    name: name === undefined ? campaign.name : readName(name),
    subject: subject === undefined ? campaign.subject : readSubject(subject),
    preview: preview === undefined ? campaign.preview : readPreview(preview),
    replyTo: replyTo === undefined ? campaign.replyTo : readReplyTo(replyTo),
    senderId: senderId === undefined ? campaign.senderId : await findSender(call, senderId),
  }
  const { contentType, content, matched } = await changedContent(call, campaign, change)
  await execute(
    call.em,
    sql`update campaign set name = ${next.name}, subject = ${next.subject}, preview = ${next.preview},
        reply_to = ${next.replyTo}, sender_id = ${next.senderId}, content_type = ${contentType},
        content = ${content === undefined ? sql`content` : json(content)}
      where organization_id = ${call.organization.id} and id = ${campaign.id}`,
  )
  await recordHistory(call, campaign.id)
  return {
    campaign: await getCampaign(call, campaignId),
    operations: matched.map((count, index) => ({ index, matched: count })),
  }
}

/** Sets the recipient filters of a draft. */
export async function updateFilters(call: Call, campaignId: string, filters: unknown): Promise<Campaign> {
  const { em, organization } = call
  // The lock keeps a segment that these filters name from being deleted between the check and the commit.
  await lockSegments(call)
  const campaign = await findCampaign(call, campaignId, { lock: true })
  nextStatus(campaign, 'setAudience')
  const checked = await checkFilters(em, { organizationId: organization.id }, filters, 'filters')
  await execute(
    em,
    sql`update campaign set recipient_filters = ${json(checked)}
      where organization_id = ${organization.id} and id = ${campaign.id}`,
  )
  return await getCampaign(call, campaignId)
}

function refuseContradiction({ content, operations, contentType, ...rest }: CampaignChange): void {
  if (content !== undefined && operations !== undefined) {
    refuse(
      'operations',
      'and content exclude one another: send the whole content, or operations on what is there.',
    )
  }
  const isEmpty = Object.values(rest).every((value) => value === undefined)
  if (isEmpty && content === undefined && operations === undefined && contentType === undefined) {
    refuse('id', 'alone changes nothing; send a name, subject, content or operations beside it.')
  }
}

/** Returns the content after the change; `content` is undefined when it does not change. */
async function changedContent(
  call: Call,
  campaign: CampaignRow,
  { content, operations, contentType = campaign.contentType }: CampaignChange,
): Promise<{ contentType: ContentType; content: unknown; matched: number[] }> {
  if (operations !== undefined) {
    if (contentType !== campaign.contentType) {
      refuse(
        'contentType',
        `cannot change from ${campaign.contentType} by operations; send it with the whole content.`,
      )
    }
    const applied = applyOperations(contentType, campaign.content, readOperations(contentType, operations))
    refuseLarge(applied.content)
    const checked = await readContent(call, contentType, applied.content)
    return { contentType, content: checked.content, matched: applied.matched }
  }
  if (content !== undefined) {
    return { contentType, content: (await readContent(call, contentType, content)).content, matched: [] }
  }
  if (contentType !== campaign.contentType) {
    refuse(
      'contentType',
      `cannot change from ${campaign.contentType} without content of the new type beside it.`,
    )
  }
  return { contentType, content: undefined, matched: [] }
}

/** Refuses content larger than a request may carry, which operations could otherwise build up. */
function refuseLarge(content: unknown): void {
  if (Buffer.byteLength(JSON.stringify(content)) <= DOCUMENT_LIMITS.bytes) return
  throw new Failure(
    'TOO_LARGE',
    `operations would make the content larger than ${DOCUMENT_LIMITS.bytes / 1e6} MB; shorten it.`,
  )
}
