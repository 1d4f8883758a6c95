import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { type EntityManager, execute } from '../../database.ts'
import { AGAIN } from './deliveries.ts'
import { HOURS } from './results.ts'
import type { Turn } from './turns.ts'
import { CLOSED } from './webhooks.ts'

/** Work on many deliveries of a webhook, page by page, so that no transaction is long. */

/** Rows that one transaction closes, deletes or queues. */
const PAGE = 5_000

/**
 * Fails a page of pending deliveries of a disabled webhook. With `isLate`, fails those that have been due for `HOURS`
 * while the webhook was failing for as long; those that waited because our workers were down are still sent.
 */
export async function closePending(
  em: EntityManager,
  { organizationId, webhookId }: Turn,
  { isLate }: { isLate: boolean },
): Promise<void> {
  const own = sql`organization_id = ${organizationId} and webhook_id = ${webhookId}`
  const late = sql`<= now() - make_interval(hours => ${HOURS}) and exists (select from webhook
    where organization_id = ${organizationId} and id = ${webhookId}
      and failing_since <= now() - make_interval(hours => ${HOURS}))`
  // The lock keeps the webhook from being enabled meanwhile: what happens after that is delivered.
  const disabled = sql`is not null and exists (select from webhook
    where organization_id = ${organizationId} and id = ${webhookId} and not enabled for share)`
  const why = isLate ? `The endpoint accepted nothing for ${HOURS} hours.` : CLOSED
  await execute(
    em,
    sql`update webhook_delivery set status = 'FAILED', next_attempt_at = null, error = ${why}
      where ${own} and event_id = any (array(select event_id from webhook_delivery where ${own}
        and next_attempt_at ${isLate ? late : disabled}
        order by next_attempt_at limit ${PAGE}))`,
  )
}

/** Deletes a page of a deleted webhook's deliveries, and the webhook itself when no new delivery can be added. */
export async function clearDeleted(em: EntityManager, { organizationId, webhookId }: Turn): Promise<void> {
  const own = sql`organization_id = ${organizationId} and webhook_id = ${webhookId}`
  const cleared = await execute(
    em,
    sql`delete from webhook_delivery where ${own} and event_id = any (array(
      select event_id from webhook_delivery where ${own} order by event_id limit ${PAGE}))`,
  )
  if (cleared > 0) return
  await execute(
    em,
    sql`delete from webhook where organization_id = ${organizationId} and id = ${webhookId}
      and deleted_at < now() - interval '1 hour'`,
  )
}

/** Queues the next page of a replay and moves its checkpoint. */
export async function replayPage({ em, organization }: Call, webhookId: string): Promise<void> {
  await execute(
    em,
    sql`with asked as (
        select id, event_types, replay_after, replay_until from webhook
        where organization_id = ${organization.id} and id = ${webhookId} and enabled and replay_after is not null
        for update
      ), page as materialized (
        select event.id, event.type from asked cross join lateral (select id, type from subscriber_event event
          where event.organization_id = ${organization.id} and event.id > asked.replay_after
            and event.id < asked.replay_until order by event.id limit ${PAGE}) event
      ), queued as (
        insert into webhook_delivery as delivery (organization_id, webhook_id, event_id, type)
        select ${organization.id}, asked.id, page.id, page.type from asked cross join page
        where asked.event_types is null or page.type = any (asked.event_types)
        on conflict (organization_id, webhook_id, event_id) do update set ${AGAIN}
      ), reached as (
        select id from page order by id offset ${PAGE - 1}
      )
      update webhook set replay_after = (select id from reached),
        replay_until = case when (select id from reached) is not null then webhook.replay_until end
      from asked where webhook.organization_id = ${organization.id} and webhook.id = asked.id`,
  )
}
