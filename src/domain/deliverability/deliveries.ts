import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { array, type EntityManager, execute, row, rows } from '../../database.ts'

/** A due page of sent emails of one organization; ids are uuids. */
export type DueDelivery = { organizationId: string; id: string }

/** An email without a report for this long counts as delivered (decisions, section 8). */
const SILENCE = sql`interval '1 hour'`
/** A server that delays an email gives up after this time at the latest (RFC 5321, 4.5.4.1). */
const PATIENCE = sql`interval '5 days'`
const PAGE = 2_000

/** Schedules a look at the emails of these batches, an hour after the last batch was made. */
export async function awaitDelivery({ em, organization }: Call, batchIds: readonly string[]): Promise<void> {
  const last = batchIds.toSorted().at(-1)
  if (last === undefined) return
  await execute(
    em,
    sql`insert into delivery_due (organization_id, due_at, messages)
      select ${organization.id}, to_timestamp(${momentOf(last)}::float8 / 1000) + ${SILENCE}, array_agg(id order by id)
      from (select email.id, row_number() over (order by email.id) as place
        from outcome_batch batch cross join unnest(batch.messages) as email (id)
        where batch.organization_id = ${organization.id} and batch.id = any(${array(batchIds, 'uuid')})) taken
      group by taken.place / ${PAGE}`,
  )
}

/** Returns the creation time of a UUIDv7 in milliseconds since 1970. */
function momentOf(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
}

/** Returns the due pages of all organizations, oldest first. */
export async function dueDeliveries(em: EntityManager, limit: number): Promise<DueDelivery[]> {
  return await rows<DueDelivery>(
    em,
    sql`select organization_id as "organizationId", id from delivery_due where due_at <= now()
      order by due_at limit ${limit}`,
  )
}

/**
 * Marks the emails of a page as delivered unless a report says otherwise. Emails with a reported delay are scheduled
 * again for when servers have given up. Deletes the page in the same transaction, so a crash changes nothing. Returns
 * false when another process has the page.
 */
export async function confirmDeliveries({ em, organization }: Call, id: string): Promise<boolean> {
  const due = await row<{ messages: string[] }>(
    em,
    sql`delete from delivery_due where organization_id = ${organization.id} and id = (select id from delivery_due
        where organization_id = ${organization.id} and id = ${id} for update skip locked)
      returning messages::text[] as messages`,
  )
  if (!due) return false
  const page = array(due.messages, 'uuid')
  const [first, last] = [due.messages[0], due.messages.at(-1)]
  const isDelayed = sql`exists (select from email_report r where r.organization_id = m.organization_id
    and r.message_id = m.id and r.kind = 'DELAY') and m.sent_at > now() - ${PATIENCE}`
  const own = sql`m.organization_id = ${organization.id} and m.id = any(${page}) and m.id between ${first} and ${last}
    and m.status = 'SENT'`
  await execute(
    em,
    sql`insert into delivery_due (organization_id, due_at, messages)
      select ${organization.id}, max(m.sent_at) + ${PATIENCE}, array_agg(m.id order by m.id) from message m
      where ${own} and ${isDelayed} having count(*) > 0`,
  )
  await execute(
    em,
    sql`update message m set status = 'DELIVERED', delivered_at = m.sent_at + ${SILENCE}
      where ${own} and not (${isDelayed})`,
  )
  return true
}
