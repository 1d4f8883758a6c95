import { sql } from 'kysely'

import { type EntityManager, execute } from '../database.ts'

/**
 * What keeps the database in shape, safe to run by several processes at any time: partitions for the coming months,
 * and the end of what has outlived its use.
 */
export async function keepHouse(em: EntityManager): Promise<void> {
  await execute(em, sql`select ensure_partitions()`)
  await execute(em, sql`delete from confirmation_challenge where expires_at < now() - interval '1 day'`)
  await execute(em, sql`delete from idempotency_record where created_at < now() - interval '24 hours'`)
}
