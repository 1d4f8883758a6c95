import { sql } from 'kysely'

import type { CampaignSendProgress } from '../../../temporal/contract.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { unitOfWork } from '../../catalogue/unit-of-work.ts'
import { array, execute, json, row } from '../../database.ts'
import { encodeId, newId } from '../../ids.ts'
import type { Services } from '../../services.ts'
import { sharedTargets } from '../emails/links.ts'
import { giveBackEmails } from '../emails/quota.ts'
import { withSnippets } from '../library/carried-content.ts'
import { type CampaignRow, findCampaign } from './records.ts'
import { compileCampaign } from './render.ts'
import { readSendable } from './sendable.ts'
import type { CampaignSender } from './sender.ts'
import { findSend, progressOf, scopeOf, type SendKey } from './sends.ts'

/** A campaign that is more than this many hours late is not sent automatically (decisions, section 5). */
const LATEST_HOURS = 24

/** Why a campaign is not sent: the reason code for the ledger and the message shown as `failure`. */
export type Obstacle = { code: string; message: string }

/**
 * Begins a send if it is due. A campaign that can no longer be sent becomes FAILED with the reason. The update compares
 * status and schedule version, so a concurrent cancellation and this call cannot both succeed.
 */
export async function beginSend(services: Services, key: SendKey): Promise<CampaignSendProgress> {
  return await unitOfWork(services, scopeOf(key), async (call) => {
    const campaign = await findCampaign(call, encodeId('cmp', key.campaignId), { lock: true })
    if (campaign.scheduleVersion !== key.number) return progressOf(null)
    if (campaign.status !== 'SCHEDULED') return progressOf(await findSend(call, key), ended(campaign))
    const waitMs = await remaining(call, campaign)
    if (waitMs > 0) return waiting(campaign, waitMs)
    const obstacle = waitMs < -LATEST_HOURS * 3_600_000 ? MISSED : await begin(call, campaign, key)
    if (obstacle === null) return progressOf(await findSend(call, key))
    await fail(call, key, obstacle)
    return progressOf(null, ended({ status: 'FAILED', failure: obstacle.message }))
  })
}

/** Ends a send because an operator canceled its workflow; everything not sent yet is skipped. */
export async function cancelSend(services: Services, key: SendKey): Promise<CampaignSendProgress> {
  return await unitOfWork(services, scopeOf(key), async (call) => {
    await fail(call, key, {
      code: 'OPERATOR_CANCELED',
      message: 'an operator canceled its workflow in Temporal',
    })
    const send = await findSend(call, key)
    if (send !== null) return progressOf(send)
    return { ...progressOf(null), label: 'an operator canceled it' }
  })
}

/** Describes a failure for a campaign that has no send row because it failed before it began. */
function ended({ status, failure }: Pick<CampaignRow, 'status' | 'failure'>): Partial<CampaignSendProgress> {
  return status === 'FAILED' ? { stage: 'FAILED', label: 'it failed', error: failure } : {}
}

const MISSED: Obstacle = {
  code: 'MISSED_WINDOW',
  message: `missed window: it was due more than ${LATEST_HOURS} hours ago`,
}

/** Marks a SCHEDULED or SENDING campaign as FAILED and writes the decision to the ledger; otherwise changes nothing. */
export async function fail(call: Call, key: SendKey, { code, message }: Obstacle): Promise<void> {
  const { em, organization } = call
  await execute(
    em,
    sql`with failed as (
        update campaign set status = 'FAILED', paused = false, failure = ${message}
        where organization_id = ${organization.id} and id = ${key.campaignId} and schedule_version = ${key.number}
          and status in ('SCHEDULED', 'SENDING')
        returning organization_id, id
      ), noted as (
        insert into decision (id, organization_id, campaign_id, action, reason, data)
        select new_id(), organization_id, id, 'SEND_CAMPAIGN', ${code}, ${json({ message })} from failed
      )
      update campaign_send send set finished_at = now() from failed
      where send.organization_id = failed.organization_id and send.campaign_id = failed.id
        and send.number = ${key.number}`,
  )
  await giveBackEmails(call, key)
}

async function remaining({ em, organization }: Call, { id }: CampaignRow): Promise<number> {
  const found = await row<{ remaining: number }>(
    em,
    sql`select extract(epoch from send_at - clock_timestamp())::float8 * 1000 as remaining from campaign
      where organization_id = ${organization.id} and id = ${id}`,
  )
  return found?.remaining ?? 0
}

function waiting({ sendAt }: CampaignRow, waitMs: number): CampaignSendProgress {
  const due = sendAt === null ? 'now' : new Date(sendAt).toISOString()
  return { ...progressOf(null), stage: 'SCHEDULED', waitMs: Math.ceil(waitMs), label: `due at ${due}` }
}

/** Begins the send. Returns null, or the reason why it cannot begin. */
async function begin(call: Call, campaign: CampaignRow, key: SendKey): Promise<Obstacle | null> {
  try {
    const { sender } = await readSendable(call, campaign)
    const content = await withSnippets(call, campaign.contentType, campaign.content)
    const compiled = await compileCampaign(call, { ...campaign, content }, { isFrozen: true })
    await freeze(call, key, sender, { content, targets: sharedTargets(compiled) })
    return null
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

/** Stores the content with its snippets included, so that later edits of a snippet do not change the send. */
async function freeze(
  { em, organization }: Call,
  key: SendKey,
  sender: CampaignSender,
  { content, targets }: { content: unknown; targets: readonly (string | null)[] },
): Promise<void> {
  await execute(
    em,
    sql`with begun as (
        update campaign set status = 'SENDING', paused = false, failure = null
        where organization_id = ${organization.id} and id = ${key.campaignId} and status = 'SCHEDULED'
          and schedule_version = ${key.number} and send_at <= clock_timestamp()
        returning *)
      insert into campaign_send (id, organization_id, campaign_id, number, subject, preview, content, content_type,
        targets, sender_name, sender_email, stood_in_for, reply_to, recipient_filters)
      select ${newId()}, organization_id, id, schedule_version, subject, preview, ${json(content)}, content_type,
        ${array(targets, 'text')}, ${sender.name}, ${sender.email}, ${sender.stoodInFor},
        ${sender.replyTo}, recipient_filters
      from begun`,
  )
}
