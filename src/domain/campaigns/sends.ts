import { type RawBuilder, sql } from 'kysely'

import type { CampaignStatus } from '../../../schema/values.ts'
import type { CampaignSendProgress } from '../../../temporal/contract.ts'
import type { Call } from '../../catalogue/tool.ts'
import type { Scope } from '../../catalogue/unit-of-work.ts'
import { execute, row } from '../../database.ts'
import { encodeId } from '../../ids.ts'

/** Identifies a send: ids are uuids, `number` is the number of the schedule. */
export type SendKey = { organizationId: string; campaignId: string; number: number }

/** A send with the status of its campaign. */
export type Send = {
  id: string
  status: CampaignStatus
  paused: boolean
  failure: string | null
  /** The campaign was rescheduled since. */
  isOld: boolean
  audienceFrozen: boolean
  total: number
  enqueued: number
  skipped: number
  enqueuedTo: string
  /** Why its next emails could not be written; null when they could. */
  fault: string | null
  /** The sender's domain is stopped for marketing until somebody resumes it. */
  isStopped: boolean
  /** Number of recipients with an outcome, from `campaign_tally`. */
  done: number
  /** Some recipients are in a batch or have an email in the queue. */
  isWaiting: boolean
  /** Some of them are being sent now; false when all wait for a retry or are held. */
  isMoving: boolean
}

/** How long the workflow of a paused or stopped send waits before it looks again. */
const PAUSED_MS = 60_000
/** The same wait while emails are still under way, so that their outcomes are shown. */
const SETTLING_MS = 1_000

/** Returns the unit-of-work scope of a send: its organization, with the campaign as the actor. */
export function scopeOf({ organizationId, campaignId }: SendKey): Scope {
  return { organizationId, actor: { kind: 'system', id: encodeId('cmp', campaignId), name: 'campaign' } }
}

/** An expression for the number of recipients with an outcome; the cost does not depend on the number of recipients. */
export function doneOf(send: RawBuilder<unknown>): RawBuilder<number> {
  return sql`(select coalesce(sum(tally.emails), 0)::int from campaign_tally tally
    where tally.organization_id = ${send}.organization_id and tally.campaign_id = ${send}.campaign_id)`
}

/** Returns the send, or null before it began. `lock` locks its row until the end of the transaction. */
export async function findSend(
  { em }: Pick<Call, 'em'>,
  { organizationId, campaignId, number }: SendKey,
  { lock = false }: { lock?: boolean } = {},
): Promise<Send | null> {
  const inQueue = sql`from delivery_queue q where q.organization_id = send.organization_id
    and q.campaign_id = send.campaign_id`
  const isTaken = sql`exists (select from campaign_batch b where b.organization_id = send.organization_id
    and b.campaign_id = send.campaign_id)`
  return await row<Send>(
    em,
    sql`select send.id, campaign.status, campaign.paused, campaign.failure,
        campaign.schedule_version <> send.number as "isOld", send.audience_frozen as "audienceFrozen", send.total,
        send.enqueued, send.skipped, send.enqueued_to as "enqueuedTo", send.fault,
        stopped_by(send.organization_id, true, send.sender_email) is not null as "isStopped",
        ${doneOf(sql`send`)} as done, ${isTaken} or exists (select ${inQueue}) as "isWaiting",
        ${isTaken} or exists (select ${inQueue} and q.state in ('queued', 'claimed')) as "isMoving"
      from campaign_send send
      join campaign on campaign.organization_id = send.organization_id and campaign.id = send.campaign_id
      where send.organization_id = ${organizationId} and send.campaign_id = ${campaignId} and send.number = ${number}
      ${lock ? sql`for update of send` : sql``}`,
  )
}

/** The last send of a campaign, as its statistics need it. */
export type LatestSend = {
  /** Number of recipients, including skipped ones. */
  total: number
  /** The sender's address. */
  from: string
  startedAt: string
  finishedAt: string | null
  /** Seconds from the start to the end, or to now. */
  seconds: number
}

/** Returns the last send of a campaign, or null when none has begun. */
export async function latestSend({ em, organization }: Call, campaignId: string): Promise<LatestSend | null> {
  return await row<LatestSend>(
    em,
    sql`select total, sender_email as "from", started_at as "startedAt", finished_at as "finishedAt",
        extract(epoch from coalesce(finished_at, now()) - started_at)::float8 as seconds
      from campaign_send where organization_id = ${organization.id} and campaign_id = ${campaignId}
      order by number desc limit 1`,
  )
}

/** Records that a worker works on the send, and clears `fault` so that writing is tried again. */
export async function touchSend(
  { em }: Pick<Call, 'em'>,
  { organizationId, campaignId, number }: SendKey,
): Promise<void> {
  await execute(
    em,
    sql`update campaign_send set seen_at = now(), fault = null where organization_id = ${organizationId}
      and campaign_id = ${campaignId} and number = ${number}`,
  )
}

/** Whether a send may continue: it is the campaign's latest, SENDING and not paused. */
export function isGoingOn({ status, paused, isOld }: Send): boolean {
  return status === 'SENDING' && !paused && !isOld
}

/** Whether every recipient has an email in the queue or is skipped. */
export function isEnqueued({ total, enqueued, skipped }: Send): boolean {
  return enqueued + skipped >= total
}

/** Returns the progress of a send for its workflow. */
export function progressOf(
  send: Send | null,
  more: Partial<CampaignSendProgress> = {},
): CampaignSendProgress {
  if (send === null || send.isOld || send.status === 'DRAFT') return { ...NOTHING, ...more }
  const known = { ...NOTHING, total: send.total, done: send.done, error: send.failure, ...more }
  if (send.status === 'SENT') return { ...known, stage: 'SENT', label: 'everybody has an outcome' }
  if (send.status !== 'SENDING') return { ...known, stage: 'FAILED', label: 'it failed' }
  const stage = send.audienceFrozen ? 'DELIVERING' : 'FREEZING'
  const waitMs = send.isMoving ? SETTLING_MS : PAUSED_MS
  if (send.paused) return { ...known, stage, label: 'paused until resume_campaign', waitMs }
  if (send.isStopped && send.audienceFrozen) {
    return { ...known, stage, label: 'its domain is stopped until resume_sending', waitMs }
  }
  return { ...known, stage, label: more.label ?? 'under way' }
}

const NOTHING: CampaignSendProgress = {
  stage: 'CANCELED',
  waitMs: 0,
  label: 'it is no longer scheduled',
  total: 0,
  done: 0,
  perSecond: null,
  expectedEnd: null,
  error: null,
}
