import { sql } from 'kysely'

import { WEBHOOK_LIMITS } from '../../schema/webhook.ts'
import { type EntityManager, execute } from '../database.ts'
import { IS_OPEN } from './automations/goals/goals.ts'
import { KEPT_DAYS } from './deliverability/totals.ts'
import { forgetOAuth } from './oauth/records.ts'

/** Deletion of expired data. Safe to run by several processes at any time. */

/** Deletes data that is kept for at most a day. Run it every hour. */
export async function forgetExpired(em: EntityManager): Promise<void> {
  await execute(em, sql`delete from confirmation_challenge where expires_at < now() - interval '1 day'`)
  await execute(em, sql`delete from idempotency_record where created_at < now() - interval '24 hours'`)
  await forgetOAuth(em)
  await execute(em, sql`delete from automation_webhook_receipt where created_at < now() - interval '1 day'`)
  // Uploads whose process crashed.
  await execute(
    em,
    sql`delete from subscriber_import where status = 'UPLOADING' and updated_at < now() - interval '1 hour'`,
  )
}

/** Creates the partitions of the coming months, and deletes data whose retention is over. Run it every day. */
export async function keepHouse(em: EntityManager): Promise<void> {
  await execute(em, sql`select ensure_partitions()`)
  await execute(em, sql`delete from email_report where created_at < now() - interval '90 days'`)
  await execute(em, sql`delete from domain_total where at < now() - make_interval(days => ${KEPT_DAYS})`)
  // Visits that could not be settled are kept for 90 days for diagnosis.
  await execute(em, sql`delete from pending_visit where apart and created_at < now() - interval '90 days'`)
  await execute(em, sql`delete from receiver where checked_at < now() - interval '30 days'`)
  await forgetOld(em)
  // A window that opens with an email no longer opens two days after its run ended: queued email leaves within one.
  await execute(
    em,
    sql`delete from goal_watch watch using automation_run run
      where run.organization_id = watch.organization_id and run.id = watch.run_id and (watch.expires_at < now()
        or (watch.opens_at is null and run.ended_at < now() - interval '2 days'
          and not coalesce(${IS_OPEN}, false)))`,
  )
  // Entries that triggers created; schedules remember separately how far they looked.
  await execute(
    em,
    sql`delete from automation_intake where step_id is not null and finished_at < now() - interval '90 days'`,
  )
  // Rejected rows can be downloaded for 30 days.
  await execute(
    em,
    sql`delete from import_rejection refused using subscriber_import finished
      where finished.organization_id = refused.organization_id and finished.id = refused.import_id
        and finished.finished_at < now() - interval '30 days'`,
  )
}

const PAGE = 10_000

/**
 * Deletes old rows page by page, because there may be millions of them. A page is read by index and deleted by its
 * places in the table: with plain joins, the last, empty page would read the whole table.
 */
async function forgetOld(em: EntityManager): Promise<void> {
  // Every recipient of a finished send has an email or a ledger row, and is included in the totals.
  const recipients = sql`delete from campaign_recipient where ctid = any (array(
    select old.ctid from campaign_send s cross join lateral (
      select r.ctid from campaign_recipient r
      where r.organization_id = s.organization_id and r.campaign_id = s.campaign_id
      order by r.subscriber_id limit ${PAGE}) old
    where s.finished_at < now() - interval '90 days' and s.enqueued + s.skipped >= s.total limit ${PAGE}))`
  // The content of single emails; campaigns and workflows keep the content of theirs.
  const contents = sql`delete from message_content where ctid = any (array(
    select old.ctid from organization cross join lateral (
      select content.ctid from message_content content
      where content.organization_id = organization.id and content.message_id < id_floor(now() - interval '90 days')
        and not exists (select from delivery_queue q where q.id = content.message_id)
      order by content.message_id limit ${PAGE}) old
    limit ${PAGE}))`
  // Audit entries of confirmation challenges.
  const confirmations = sql`delete from audit_entry where ctid = any (array(
    select old.ctid from organization cross join lateral (
      select entry.ctid from audit_entry entry
      where entry.organization_id = organization.id and entry.id < id_floor(now() - interval '1 year')
        and entry.action in ('confirmation.asked', 'confirmation.used')
      order by entry.id limit ${PAGE}) old
    limit ${PAGE}))`
  const deliveries = sql`delete from webhook_delivery where ctid = any (array(
    select old.ctid from webhook cross join lateral (
      select delivery.ctid from webhook_delivery delivery where delivery.organization_id = webhook.organization_id
        and delivery.webhook_id = webhook.id and delivery.next_attempt_at is null
        and delivery.event_id < id_floor(now() - make_interval(days => ${WEBHOOK_LIMITS.days}))
      order by delivery.event_id limit ${PAGE}) old
    limit ${PAGE}))`
  for (const page of [recipients, contents, confirmations, deliveries])
    while ((await execute(em, page)) === PAGE);
}
