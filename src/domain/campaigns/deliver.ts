import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import type { CampaignSendProgress } from '../../../temporal/contract.ts'
import { unitOfWork } from '../../catalogue/unit-of-work.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute } from '../../database.ts'
import type { Services } from '../../services.ts'
import { fail } from './begin.ts'
import { countOutcomes } from './outcomes.ts'
import {
  doneOf,
  findSend,
  isEnqueued,
  isGoingOn,
  progressOf,
  scopeOf,
  type Send,
  type SendControl,
  type SendKey,
  touchSend,
} from './sends.ts'

/** Emails of one transaction. */
const PAGE = 2_000
/** Emails that wait in the queue ahead of the lane: some seconds of its work, few enough to be looked through quickly. */
const AHEAD = 8_000
const SLICE_MS = 10_000
const POLL_MS = 200
/** When only retries are left, nobody has to look often. */
const IDLE_MS = 5_000

/**
 * Keeps the lane busy for some seconds, and ends the send once every recipient has an outcome. What it knows it reads
 * from the rows each time, so any number of attempts may follow, or overlap, each other.
 */
export async function deliver(
  services: Services,
  key: SendKey,
  control: SendControl,
): Promise<CampaignSendProgress> {
  const began = performance.now()
  const within = <Result>(work: (call: Call) => Promise<Result>) => unitOfWork(services, scopeOf(key), work)
  const first = await within(async (call) => {
    const send = await findSend(call, key)
    if (send) await touchSend(call, send)
    return send
  })
  for (let send = first; ; send = await look()) {
    if (send === null || first === null || !isGoingOn(send)) return progressOf(send)
    if (!isEnqueued(send) && send.pending < AHEAD) {
      await within((call) => enqueuePage(call, key))
      continue
    }
    if (isEnqueued(send) && send.pending === 0) return progressOf(await within((call) => finish(call, key)))
    const seconds = (performance.now() - began) / 1_000
    const progress = progressOf(send, paceOf(send, doneOf(send) - doneOf(first), seconds))
    control.report(progress)
    if (control.isStopping()) return progress
    if (seconds * 1_000 > SLICE_MS) {
      return { ...progress, waitMs: isEnqueued(send) && progress.perSecond === 0 ? IDLE_MS : 0 }
    }
    await sleep(POLL_MS)
  }

  async function look(): Promise<Send | null> {
    return await unitOfWork(services, scopeOf(key), (call) => findSend(call, key), { readOnly: true })
  }
}

function paceOf(send: Send, done: number, seconds: number): Partial<CampaignSendProgress> {
  const perSecond = Math.round(done / seconds)
  const left = send.total - doneOf(send)
  const expectedEnd = perSecond === 0 ? null : Date.now() + Math.round((left / perSecond) * 1_000)
  return { perSecond, expectedEnd, label: 'delivering' }
}

/** Writes the next emails and their places in the queue; who is gone by now is skipped. */
async function enqueuePage(call: Call, key: SendKey): Promise<void> {
  const send = await findSend(call, key, { lock: true })
  if (send === null || !isGoingOn(send) || isEnqueued(send)) return
  const { em, organization } = call
  await execute(
    em,
    sql`with page as materialized (
        select r.subscriber_id, r.message_id, s.email from campaign_recipient r
        left join subscriber s on s.organization_id = r.organization_id and s.id = r.subscriber_id
        where r.organization_id = ${organization.id} and r.campaign_id = ${key.campaignId} and r.reason is null
          and r.subscriber_id > ${send.enqueuedTo}
        order by r.subscriber_id limit ${PAGE}
      ), messages as (
        insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_name, from_email,
          reply_to, campaign_id, version_id)
        select page.message_id, ${organization.id}, 'CAMPAIGN', true, page.subscriber_id, page.email,
          frozen.sender_name, frozen.sender_email, frozen.reply_to, frozen.campaign_id, frozen.id
        from page join campaign_send frozen on frozen.organization_id = ${organization.id} and frozen.id = ${send.id}
        where page.email is not null
      ), queued as (
        insert into delivery_queue (id, organization_id, lane, weight, campaign_id)
        select message_id, ${organization.id}, 'bulk', 0, ${key.campaignId} from page where email is not null
      ), gone as materialized (
        select subscriber_id from page where email is null
      ), skipped as (
        update campaign_recipient r set reason = 'SUBSCRIBER_DELETED'
        where r.organization_id = ${organization.id} and r.campaign_id = ${key.campaignId}
          and r.subscriber_id = any(array(select subscriber_id from gone))
      ), noted as (
        insert into decision (id, organization_id, subscriber_id, campaign_id, action, reason)
        select new_id(), ${organization.id}, subscriber_id, ${key.campaignId}, 'SEND_EMAIL', 'SUBSCRIBER_DELETED'
        from gone
      ), counted as (
        select count(email)::int as enqueued, count(*)::int - count(email)::int as skipped from page
      )
      update campaign_send set enqueued = campaign_send.enqueued + counted.enqueued,
        skipped = campaign_send.skipped + counted.skipped,
        enqueued_to = (select subscriber_id from page order by subscriber_id desc limit 1)
      from counted where organization_id = ${organization.id} and id = ${send.id}`,
  )
  call.wakeLane('bulk')
}

/** Everybody has an outcome: SENT, or FAILED when there was something to send and nothing went out. */
async function finish(call: Call, key: SendKey): Promise<Send | null> {
  const send = await findSend(call, key, { lock: true })
  if (send === null || !isGoingOn(send) || !isEnqueued(send) || send.pending > 0) return send
  const { em, organization } = call
  const outcomes = await countOutcomes(call, key.campaignId)
  if (outcomes.settled !== send.total) {
    throw new Error(`${send.total} recipients have ${outcomes.settled} outcomes`)
  }
  const refused = outcomes.failed + outcomes.bounced
  if (outcomes.sent === 0 && refused > 0) {
    await fail(call, key, {
      code: 'NOTHING_SENT',
      message: `nothing could be sent: ${refused} of ${send.total} were refused (${outcomes.worst})`,
    })
  } else {
    await execute(
      em,
      sql`with sent as (
          update campaign set status = 'SENT' where organization_id = ${organization.id} and id = ${key.campaignId}
            and status = 'SENDING' and schedule_version = ${key.number}
          returning id)
        update campaign_send send set finished_at = now() from sent
        where send.organization_id = ${organization.id} and send.campaign_id = sent.id and send.number = ${key.number}`,
    )
  }
  return await findSend(call, key)
}
