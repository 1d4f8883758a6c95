import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import type { CampaignSendProgress } from '../../../temporal/contract.ts'
import type { Call } from '../../catalogue/tool.ts'
import { unitOfWork } from '../../catalogue/unit-of-work.ts'
import { execute } from '../../database.ts'
import type { Services } from '../../services.ts'
import { giveBackEmails } from '../emails/quota.ts'
import type { WorkControl } from '../work-control.ts'
import { fail } from './begin.ts'
import { countOutcomes } from './outcomes.ts'
import {
  findSend,
  isEnqueued,
  isGoingOn,
  progressOf,
  scopeOf,
  type Send,
  type SendKey,
  touchSend,
} from './sends.ts'

const SLICE_MS = 10_000
const POLL_MS = 200
/** The shortest wait, used near the expected end so that the end is noticed at once. */
const LAST_POLLS_MS = 20
/** The wait between looks when the remaining emails only wait for their next attempt. */
const IDLE_MS = 5_000

/**
 * Watches for up to `SLICE_MS` how recipients get their outcomes, and ends the send once all have one. Each look reads
 * all state from the database, so attempts may follow or overlap each other.
 */
export async function deliver(
  services: Services,
  key: SendKey,
  control: WorkControl<CampaignSendProgress>,
): Promise<CampaignSendProgress> {
  const began = performance.now()
  const within = <Result>(work: (call: Call) => Promise<Result>) => unitOfWork(services, scopeOf(key), work)
  const first = await within(async (call) => {
    await touchSend(call, key)
    return await findSend(call, key)
  })
  for (let send = first; ; send = await look()) {
    if (send === null || first === null || !isGoingOn(send)) return progressOf(send)
    if (send.fault !== null) throw new Error(`emails could not be written: ${send.fault}`)
    if (send.done >= send.total) return progressOf(await within((call) => finish(call, key)))
    if (isEnqueued(send) && !send.isWaiting) {
      throw new Error(`${send.total} recipients have ${send.done} outcomes`)
    }
    if (send.isStopped) return progressOf(send)
    const seconds = (performance.now() - began) / 1_000
    const progress = progressOf(send, paceOf(send, send.done - first.done, seconds))
    control.report(progress)
    if (control.isStopping() || seconds * 1_000 > SLICE_MS) return progress
    // Many campaigns may wait like this for a day, and each one that polls takes a worker slot from one that is due.
    if (isEnqueued(send) && !send.isMoving) {
      return { ...progress, label: 'waiting for the next tries', waitMs: IDLE_MS }
    }
    const leftMs = (progress.expectedEnd ?? Number.POSITIVE_INFINITY) - Date.now()
    await sleep(Math.max(LAST_POLLS_MS, Math.min(POLL_MS, leftMs)))
  }

  async function look(): Promise<Send | null> {
    return await unitOfWork(services, scopeOf(key), (call) => findSend(call, key), { readOnly: true })
  }
}

function paceOf(send: Send, done: number, seconds: number): Partial<CampaignSendProgress> {
  const perSecond = Math.round(done / seconds)
  const left = send.total - send.done
  const expectedEnd = perSecond === 0 ? null : Date.now() + Math.round((left / perSecond) * 1_000)
  return { perSecond, expectedEnd, label: 'delivering' }
}

/** Ends a send whose recipients all have an outcome: SENT, or FAILED when none was sent and some were refused. */
async function finish(call: Call, key: SendKey): Promise<Send | null> {
  const send = await findSend(call, key, { lock: true })
  if (send === null || !isGoingOn(send) || send.done < send.total) return send
  const { em, organization } = call
  const outcomes = await countOutcomes(call, key.campaignId)
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
            and status = 'SENDING' and not paused and schedule_version = ${key.number}
          returning id)
        update campaign_send send set finished_at = now() from sent
        where send.organization_id = ${organization.id} and send.campaign_id = sent.id and send.number = ${key.number}`,
    )
    await giveBackEmails(call, key)
  }
  return await findSend(call, key)
}
