import { sql } from 'kysely'

import { type Campaign, CAMPAIGN_LIMITS } from '../../../schema/campaign.ts'
import type { ContentType } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { DEFAULT_CONTENT } from '../../content/default-document.ts'
import { execute, json, row } from '../../database.ts'
import { encodeId, newId } from '../../ids.ts'
import { readContent } from '../library/content.ts'
import { lockSegments } from '../segments/lock.ts'
import { copyName } from '../text.ts'
import { recordHistory } from './history.ts'
import { readName, readPreview, readReplyTo, readSubject } from './lines.ts'
import { findCampaign, getCampaign } from './records.ts'
import { findSender } from './sender.ts'

/** The input of create_campaign. */
export type NewCampaign = {
  subject: string
  name: string
  preview?: string | null | undefined
  content?: unknown
  contentType: ContentType
  senderId?: string | undefined
  replyTo?: string | null | undefined
}

/** Creates a draft. Uses the default content and the most likely sender when they are not given. */
export async function createCampaign(call: Call, input: NewCampaign): Promise<Campaign> {
  const { em, organization } = call
  const { contentType } = input
  const senderId =
    input.senderId === undefined ? await likelySender(call) : await findSender(call, input.senderId)
  const name = readName(input.name)
  const subject = readSubject(input.subject)
  const preview = readPreview(input.preview ?? null)
  const replyTo = readReplyTo(input.replyTo ?? null)
  const { content } = await readContent(call, contentType, input.content ?? DEFAULT_CONTENT[contentType])
  const id = newId()
  await execute(
    em,
    sql`insert into campaign (id, organization_id, kind, name, subject, preview, content, content_type, sender_id,
        reply_to)
      values (${id}, ${organization.id}, 'BROADCAST', ${name}, ${subject}, ${preview}, ${json(content)},
        ${contentType}, ${senderId}, ${replyTo})`,
  )
  await recordHistory(call, id)
  return await getCampaign(call, encodeId('cmp', id))
}

/** Creates a draft with the content and settings of a campaign or an internal email, whatever the status of that is. */
export async function duplicateCampaign(
  call: Call,
  campaignId: string,
  newName: string | undefined,
): Promise<Campaign> {
  const { em, organization } = call
  const given = newName === undefined ? undefined : readName(newName, 'newName')
  // The copy uses the same segments, so none of them may be deleted meanwhile.
  await lockSegments(call)
  const source = await findCampaign(call, campaignId)
  const id = newId()
  await execute(
    em,
    sql`insert into campaign (id, organization_id, kind, name, subject, preview, content, content_type, sender_id,
        reply_to, recipient_filters)
      select ${id}, organization_id, 'BROADCAST', ${given ?? copyName(source.name, CAMPAIGN_LIMITS.name)}, subject,
        preview, content, content_type, sender_id, reply_to, recipient_filters
      from campaign where organization_id = ${organization.id} and id = ${source.id}`,
  )
  await recordHistory(call, id)
  return await getCampaign(call, encodeId('cmp', id))
}

/** Returns the uuid of the default sender, else of the last used one, else of any; null without senders. */
async function likelySender({ em, organization }: Call): Promise<string | null> {
  const found = await row<{ id: string }>(
    em,
    sql`select sender.id from sender where sender.organization_id = ${organization.id}
      order by sender.is_default desc, (
        select campaign.created_at from campaign
        where campaign.organization_id = sender.organization_id and campaign.sender_id = sender.id
        order by campaign.id desc limit 1) desc nulls last, sender.id
      limit 1 for key share`,
  )
  return found?.id ?? null
}
