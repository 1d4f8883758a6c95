import { sql } from 'kysely'

import type { Call } from '../catalogue/tool.ts'
import { array, type EntityManager, execute, rows } from '../database.ts'

/** The priority of starts that many subscribers cause at once; starts of single subscribers go first. */
export const BULK_PRIORITY = -10

/** An entry for Temporal that one relay has leased. */
export type OutboxRow = {
  id: string
  organizationId: string
  workflowId: string
  kind: 'start' | 'signal' | 'work' | 'schedule'
  payload: Record<string, unknown>
  attempts: number
}

/**
 * Leases the next rows of all organizations for `leaseSeconds`, higher priorities first. Only the oldest row of each
 * workflow is eligible, so a workflow gets its rows in order. A row that is not finished in time is leased again.
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

/** Deletes rows that were dispatched. */
export async function finishOutbox(em: EntityManager, ids: readonly string[]): Promise<void> {
  await execute(em, sql`delete from outbox where id = any(${array(ids, 'text')}::bigint[])`)
}

/** Deletes a row in the transaction that does its work; returns false when another relay already did. */
export async function takeWork({ em, organization }: Call, id: string): Promise<boolean> {
  const count = await execute(
    em,
    sql`delete from outbox where organization_id = ${organization.id} and id = ${id}::bigint`,
  )
  return count > 0
}

/** Makes rows available again after `delayMs`. */
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

/** Counts waiting rows, for the metrics. */
export async function outboxDepth(em: EntityManager): Promise<number> {
  const [found] = await rows<{ count: number }>(em, sql`select count(*)::int as count from outbox`)
  return found?.count ?? 0
}
