import { sql } from 'kysely'

import type { Campaign } from '../../../schema/campaign.ts'
import {
  CAMPAIGN_SEND,
  type CampaignSendRequest,
  campaignWorkflowId,
  NUDGE,
} from '../../../temporal/contract.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { execute, row } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { findStop } from '../deliverability/stops.ts'
import { standInWarnings } from '../domains/stand-in.ts'
import { releaseHeld } from '../emails/messages.ts'
import { foreseeQuota } from '../emails/quota.ts'
import { spoken } from '../explanation/words.ts'
import { count } from '../text.ts'
import { countRecipients } from './audience.ts'
import { readDueTime, type WishedTime } from './due-time.ts'
import { type CampaignRow, findCampaign, getCampaign, titleOf } from './records.ts'
import { readSendable } from './sendable.ts'
import { doneOf } from './sends.ts'
import { nextStatus } from './status.ts'

/** How many content warnings the confirmation summary shows. */
const MOST_WARNINGS = 10

type Wish = WishedTime & { campaignId: string }

/** Schedules a draft and starts the workflow that waits for its time. */
export async function scheduleCampaign(call: Call, wish: Wish): Promise<Campaign> {
  const { em, organization } = call
  const due = readDueTime(wish, call.now.getTime())
  const campaign = await findCampaign(call, wish.campaignId, { lock: true })
  const status = nextStatus(campaign, 'schedule')
  const { predicate } = await readSendable(call, campaign)
  await foreseeQuota(call, due, async () => (await countRecipients(call, predicate)).reached)
  const scheduled = await row<{ number: number }>(
    em,
    sql`update campaign set status = ${status}, schedule_version = schedule_version + 1, paused = false,
        send_at = ${due === null ? sql`now()` : sql`${new Date(due).toISOString()}::timestamptz`},
        timezone = ${wish.timezone}
      where organization_id = ${organization.id} and id = ${campaign.id}
      returning schedule_version as number`,
  )
  const number = scheduled?.number ?? 0
  startSend(call, campaign, number)
  return await getCampaign(call, wish.campaignId)
}

/**
 * Starts the workflow of a schedule; does nothing when it is already running. `restart` starts it even if one has
 * completed, and one that sleeps looks at once.
 */
export function startSend(
  call: Call,
  campaign: Pick<CampaignRow, 'id'>,
  number: number,
  { restart = false } = {},
): void {
  const campaignId = encodeId('cmp', campaign.id)
  const input: CampaignSendRequest = {
    organizationId: encodeId('org', call.organization.id),
    campaignId,
    number,
  }
  call.emit({
    kind: 'start',
    workflowId: campaignWorkflowId(campaignId, number),
    payload: {
      workflow: CAMPAIGN_SEND,
      input,
      summary: `Campaign ${campaignId} · schedule ${number}`,
      details: `${campaignId} of ${input.organizationId}. The tool get_campaign_progress shows its progress.`,
      restart,
    },
  })
}

/** Summarizes what scheduling will do and how many people it reaches. Throws when the campaign cannot be scheduled. */
export async function summarizeSchedule(call: Call, wish: Wish): Promise<Impact> {
  const due = readDueTime(wish, call.now.getTime())
  const campaign = await findCampaign(call, wish.campaignId)
  nextStatus(campaign, 'schedule')
  const { sender, predicate, warnings } = await readSendable(call, campaign)
  const { reached, suppressed } = await countRecipients(call, predicate)
  const stop = await findStop(call, sender.email)
  await foreseeQuota(call, due, async () => reached)
  const everybody =
    campaign.recipientFilters.length === 0
      ? 'It has no filters, so it goes to every SUBSCRIBED subscriber'
      : 'It goes to the SUBSCRIBED subscribers that its filters match'
  const when = due === null ? 'now' : `on ${spoken(new Date(due).toISOString(), wish.timezone)}`
  return {
    target: `the campaign ${titleOf(campaign)}`,
    recipients: reached,
    effects: [
      `“${campaign.subject}” is sent ${when} from ${sender.name} <${sender.email}>.`,
      `${everybody} when it is due: ${count(reached, 'recipient')} as of now.`,
    ],
    warnings: [
      ...(stop === null ? [] : [stop.message]),
      ...(reached === 0 ? ['Nobody would get it.'] : []),
      ...standInWarnings(sender),
      ...(suppressed > 0 ? [`${count(suppressed, 'more subscriber')} would be skipped: suppressed.`] : []),
      ...warnings.slice(0, MOST_WARNINGS).map(({ message }) => `The content: ${message}`),
      ...(warnings.length > MOST_WARNINGS ? ['render_campaign has more warnings of the content.'] : []),
    ],
  }
}

/** Makes a scheduled campaign a draft again. Throws `WRONG_STATE` when it is not SCHEDULED. */
export async function cancelSchedule(call: Call, campaignId: string): Promise<Campaign> {
  const campaign = await findCampaign(call, campaignId, { lock: true })
  await execute(
    call.em,
    sql`update campaign set status = ${nextStatus(campaign, 'cancelSchedule')}, send_at = null, timezone = null
      where organization_id = ${call.organization.id} and id = ${campaign.id}`,
  )
  nudgeSend(call, campaign)
  return await getCampaign(call, campaignId)
}

/** Holds the emails of a campaign that were not yet handed to a mail server. */
export async function pauseCampaign(call: Call, campaignId: string): Promise<Campaign> {
  await setPaused(call, await findCampaign(call, campaignId, { lock: true }), 'pause')
  return await getCampaign(call, campaignId)
}

/** Resumes a paused campaign, and queues its held emails again in the same transaction. */
export async function resumeCampaign(call: Call, campaignId: string): Promise<Campaign> {
  const campaign = await findCampaign(call, campaignId, { lock: true })
  await setPaused(call, campaign, 'resume')
  await releaseHeld(call, campaign.id)
  call.wakeLane('bulk')
  nudgeSend(call, campaign)
  return await getCampaign(call, campaignId)
}

/** Summarizes what resuming will do. */
export async function summarizeResume(call: Call, campaignId: string): Promise<Impact> {
  const campaign = await findCampaign(call, campaignId)
  nextStatus(campaign, 'resume')
  const found = await row<{ left: number }>(
    call.em,
    sql`select send.total - ${doneOf(sql`send`)} as left from campaign_send send where send.organization_id = ${call.organization.id}
        and send.campaign_id = ${campaign.id} and send.number = ${campaign.scheduleVersion}`,
  )
  const left = found?.left ?? 0
  return {
    target: `the campaign ${titleOf(campaign)}`,
    recipients: left,
    effects: [
      campaign.paused
        ? `Sending goes on at once: ${count(left, 'recipient')} ${left === 1 ? 'has' : 'have'} no outcome yet.`
        : 'It is not paused; nothing changes.',
    ],
    warnings: [],
  }
}

async function setPaused(call: Call, campaign: CampaignRow, action: 'pause' | 'resume'): Promise<void> {
  await execute(
    call.em,
    sql`update campaign set status = ${nextStatus(campaign, action)}, paused = ${action === 'pause'}
      where organization_id = ${call.organization.id} and id = ${campaign.id}`,
  )
}

/** Signals the workflow of a send to look at the campaign now. */
export function nudgeSend(
  call: Call,
  { id, scheduleVersion }: Pick<CampaignRow, 'id' | 'scheduleVersion'>,
): void {
  const workflowId = campaignWorkflowId(encodeId('cmp', id), scheduleVersion)
  call.emit({ kind: 'signal', workflowId, payload: { signal: NUDGE } })
}
