import { sql } from 'kysely'

import type { Call } from '../catalogue/tool.ts'
import { array, type EntityManager, execute, rows } from '../database.ts'

/** Starts that a crowd makes at once: whoever acts alone goes before them. */
export const BULK_PRIORITY = -10

/** Something Temporal must be told, leased to one relay. */
export type OutboxRow = {
  id: string
  organizationId: string
  workflowId: string
  kind: 'start' | 'signal' | 'work' | 'schedule'
  payload: Record<string, unknown>
  attempts: number
}

/**
 * Leases the next rows, of all organizations: higher priorities first, and of each workflow only the oldest row, so
 * that it hears things in order. A lease that its relay did not finish runs out and the row is taken again.
 */
export async function claimOutbox(
  em: EntityManager,
  limit: number,
  leaseSeconds: number,
): Promise<OutboxRow[]> {
  const claimed = await rows<OutboxRow & { priority: number }>(
    em,
    sql`with due as (
        select candidate.id from outbox candidate where candidate.available_at <= now()
          and not exists (select 1 from outbox earlier
            where earlier.workflow_id = candidate.workflow_id and earlier.id < candidate.id)
        order by candidate.priority desc, candidate.id limit ${limit} for update of candidate skip locked)
      update outbox set available_at = now() + make_interval(secs => ${leaseSeconds}), attempts = attempts + 1
      from due where outbox.id = due.id
      returning outbox.id::text as id, organization_id as "organizationId", workflow_id as "workflowId", kind, payload, attempts, priority`,
  )
  return claimed.toSorted((one, other) => other.priority - one.priority || Number(one.id) - Number(other.id))
}

/** Forgets rows that were dispatched. */
export async function finishOutbox(em: EntityManager, ids: readonly string[]): Promise<void> {
  await execute(em, sql`delete from outbox where id = any(${array(ids, 'text')}::bigint[])`)
}

/** Takes a row for good, in the transaction of what it asks for; false where another relay was faster. */
export async function takeWork({ em, organization }: Call, id: string): Promise<boolean> {
  const count = await execute(
    em,
    sql`delete from outbox where organization_id = ${organization.id} and id = ${id}::bigint`,
  )
  return count > 0
}

/** Gives rows back for a later attempt. */
export async function postponeOutbox(
  em: EntityManager,
  ids: readonly string[],
  delayMs: number,
): Promise<void> {
  await execute(
    em,
    sql`update outbox set available_at = now() + make_interval(secs => ${delayMs / 1000}::float8)
      where id = any(${array(ids, 'text')}::bigint[])`,
  )
}

/** How many rows wait, for the metrics. */
export async function outboxDepth(em: EntityManager): Promise<number> {
  const [found] = await rows<{ count: number }>(em, sql`select count(*)::int as count from outbox`)
  return found?.count ?? 0
}
