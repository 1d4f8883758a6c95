import { sql } from 'kysely'

import type { Filter } from '../../../schema/audience.ts'
import type { CampaignSendProgress } from '../../../temporal/contract.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { unitOfWork } from '../../catalogue/unit-of-work.ts'
import { execute, row } from '../../database.ts'
import type { Services } from '../../services.ts'
import { audiencePredicate } from '../audience/match.ts'
import { zonedScope } from '../audience/references.ts'
import { quotaWords, takeCampaignEmails } from '../emails/quota.ts'
import type { WorkControl } from '../work-control.ts'
import { isSuppressed, recipients } from './audience.ts'
import { fail } from './begin.ts'
import { findSend, isGoingOn, progressOf, scopeOf, type Send, type SendKey, touchSend } from './sends.ts'

/** Recipients per transaction, so that each takes well below a second. */
const PAGE = 10_000
/** How long one activity attempt works, about. */
const SLICE_MS = 10_000

/**
 * Writes the recipients of a send: subscribers that match the filters and existed when the send began. Each page
 * continues after the last written recipient, so a crash neither repeats nor skips anybody.
 */
export async function freezeAudience(
  services: Services,
  key: SendKey,
  control: WorkControl<CampaignSendProgress>,
): Promise<CampaignSendProgress> {
  const until = performance.now() + SLICE_MS
  for (;;) {
    const send = await unitOfWork(services, scopeOf(key), (call) => freezeNext(call, key))
    const progress = progressOf(send, { label: 'writing down who gets it' })
    control.report(progress)
    if (send === null || !isGoingOn(send) || send.audienceFrozen) return progress
    if (performance.now() > until || control.isStopping()) return progress
  }
}

async function freezeNext(call: Call, key: SendKey): Promise<Send | null> {
  const send = await findSend(call, key, { lock: true })
  if (send === null) return null
  await touchSend(call, key)
  if (!isGoingOn(send) || send.audienceFrozen) return send
  try {
    await freezePage(call, key, send)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    await fail(call, key, error)
  }
  const frozen = await findSend(call, key)
  if (!frozen?.audienceFrozen) return frozen
  const wanted = frozen.total - frozen.skipped
  const over = await takeCampaignEmails(call, frozen.id, wanted)
  if (over === null) return frozen
  await fail(call, key, { code: 'QUOTA_EXCEEDED', message: quotaWords(over, wanted) })
  return await findSend(call, key)
}

async function freezePage(call: Call, { campaignId }: SendKey, send: Send): Promise<void> {
  const { em, organization } = call
  const stored = await row<{ filters: Filter[] }>(
    em,
    sql`select recipient_filters as filters from campaign_send
      where organization_id = ${organization.id} and id = ${send.id}`,
  )
  const filters = stored?.filters ?? []
  const predicate = await audiencePredicate(em, zonedScope(organization), filters, {}, { single: true })
  const last = sql`coalesce((select subscriber_id from campaign_recipient where organization_id = ${organization.id}
    and campaign_id = ${campaignId} order by subscriber_id desc limit 1), '00000000-0000-0000-0000-000000000000')`
  await execute(
    em,
    sql`with page as materialized (
        select s.id, case when ${isSuppressed(organization.id)} then 'SUPPRESSED' end as reason
        from ${recipients(organization.id, predicate)} and s.id > ${last}
          and s.created_at <= (select started_at from campaign_send
            where organization_id = ${organization.id} and id = ${send.id})
        order by s.id limit ${PAGE}
      ), frozen as (
        insert into campaign_recipient (organization_id, campaign_id, subscriber_id, message_id, reason)
        select ${organization.id}, ${campaignId}, id, new_id(), reason from page order by id
      ), noted as (
        insert into decision (id, organization_id, subscriber_id, campaign_id, action, reason)
        select new_id(), ${organization.id}, id, ${campaignId}, 'SEND_EMAIL', reason from page
        where reason is not null
      ), counted as (
        select count(*)::int as total, count(reason)::int as skipped from page
      )
      update campaign_send set total = campaign_send.total + counted.total,
        skipped = campaign_send.skipped + counted.skipped, audience_frozen = counted.total < ${PAGE}
      from counted where organization_id = ${organization.id} and id = ${send.id}`,
  )
  call.wakeLane('bulk')
}
