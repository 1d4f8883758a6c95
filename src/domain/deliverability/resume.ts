import { sql } from 'kysely'

import type { Domain } from '../../../schema/domain.ts'
import { audit } from '../../catalogue/audit.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { execute, row, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { nudgeSend } from '../campaigns/schedule.ts'
import { type DomainRow, findDomain, presentDomain } from '../domains/domains.ts'
import { releaseHeld } from '../emails/messages.ts'
import { count } from '../text.ts'
import { presentStop } from './stop-words.ts'

/** Resumes a domain: queues its held emails in the same transaction, and judges it only by email sent from now on. */
export async function resumeSending(call: Call, name: string): Promise<Domain> {
  const { em, organization } = call
  const domain = await findDomain(call, name, 'for no key update')
  refuseUnlessStopped(domain)
  const own = sql`organization_id = ${organization.id}`
  const sends = await rows<{ id: string; scheduleVersion: number }>(
    em,
    sql`select c.id, c.schedule_version as "scheduleVersion" from campaign c
      join campaign_send send on send.organization_id = c.organization_id and send.campaign_id = c.id
        and send.number = c.schedule_version
      where c.organization_id = ${organization.id} and c.status = 'SENDING'
        and stopped_by(c.organization_id, true, send.sender_email) = ${domain.id}`,
  )
  await execute(em, sql`delete from sending_stop where ${own} and domain_id = ${domain.id}`)
  await execute(em, sql`update domain set resumed_at = now() where ${own} and id = ${domain.id}`)
  await releaseHeld(call, domain.id)
  const streams = domain.stops.map(({ stream }) => stream)
  await audit(call, 'sending.resumed', encodeId('dom', domain.id), { streams })
  call.wakeLane('transactional')
  call.wakeLane('bulk')
  for (const send of sends) nudgeSend(call, send)
  return presentDomain({ ...domain, stops: [] })
}

/** Summarizes what resuming will do. Throws `WRONG_STATE` when the domain is not stopped. */
export async function summarizeResuming(call: Call, name: string): Promise<Impact> {
  const domain = await findDomain(call, name)
  refuseUnlessStopped(domain)
  const found = await row<{ held: number; left: number }>(
    call.em,
    sql`select (select count(*)::int from delivery_queue
          where organization_id = ${call.organization.id} and held_by = ${domain.id} and state = 'held') as held,
        (select coalesce(sum(send.total - send.enqueued - send.skipped), 0)::int from campaign_send send
          join campaign c on c.organization_id = send.organization_id and c.id = send.campaign_id
            and c.schedule_version = send.number and c.status = 'SENDING'
          where send.organization_id = ${call.organization.id} and send.finished_at is null
            and stopped_by(send.organization_id, true, send.sender_email) = ${domain.id}) as left`,
  )
  const waiting = (found?.held ?? 0) + (found?.left ?? 0)
  return {
    target: `the domain ${domain.domain}`,
    recipients: waiting,
    effects: [`Sending goes on at once: ${count(waiting, 'email')} that waited, and whatever follows.`],
    warnings: [
      ...domain.stops.map((stop) => presentStop(domain.domain, stop).message),
      'Repair the cause first: sending stops again at the same rate, and receivers remember.',
    ],
  }
}

function refuseUnlessStopped({ domain, stops }: DomainRow): void {
  if (stops.length > 0) return
  throw new Failure(
    'WRONG_STATE',
    `Sending from ${domain} is not stopped, so there is nothing to resume; get_deliverability_health shows its health.`,
  )
}
