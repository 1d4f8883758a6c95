import { sql } from 'kysely'

import { unitOfWork } from '../../catalogue/unit-of-work.ts'
import { row } from '../../database.ts'
import type { Services } from '../../services.ts'
import { findSend, scopeOf, type SendKey } from './sends.ts'

/** Recipients per transaction, so that each takes well below a second. */
const PAGE = 10_000

/**
 * Skips the recipients of a failed campaign who have no email yet, and writes a ledger row for each. The sending lane
 * skips emails that are already in the queue. Safe to repeat.
 */
export async function closeRecipients(services: Services, key: SendKey): Promise<void> {
  while ((await closePage(services, key)) === PAGE);
}

async function closePage(services: Services, key: SendKey): Promise<number> {
  return await unitOfWork(services, scopeOf(key), async (call) => {
    const send = await findSend(call, key, { lock: true })
    if (send === null || send.isOld || send.status !== 'FAILED') return 0
    const { em, organization } = call
    const closed = await row<{ count: number }>(
      em,
      sql`with page as materialized (
          select subscriber_id from campaign_recipient where organization_id = ${organization.id}
            and campaign_id = ${key.campaignId} and reason is null and subscriber_id > ${send.enqueuedTo}
          order by subscriber_id limit ${PAGE}
        ), skipped as (
          update campaign_recipient r set reason = 'CAMPAIGN_ENDED' from page
          where r.organization_id = ${organization.id} and r.campaign_id = ${key.campaignId}
            and r.subscriber_id = page.subscriber_id
        ), noted as (
          insert into decision (id, organization_id, subscriber_id, campaign_id, action, reason)
          select new_id(), ${organization.id}, subscriber_id, ${key.campaignId}, 'SEND_EMAIL', 'CAMPAIGN_ENDED'
          from page order by subscriber_id
        ), counted as (select count(*)::int as count from page)
        update campaign_send set skipped = campaign_send.skipped + counted.count from counted
        where organization_id = ${organization.id} and id = ${send.id} returning counted.count`,
    )
    return closed?.count ?? 0
  })
}
