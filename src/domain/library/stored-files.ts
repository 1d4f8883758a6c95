import { sql } from 'kysely'

import { type EntityManager, execute, row } from '../../database.ts'

/** Stores a file under a key that is derived from its bytes; does nothing when the key exists. */
export async function insertFile(
  em: EntityManager,
  organizationId: string,
  key: string,
  bytes: Buffer,
): Promise<void> {
  await execute(
    em,
    sql`insert into stored_file (organization_id, key, bytes) values (${organizationId}, ${key}, ${bytes})
      on conflict (organization_id, key) do nothing`,
  )
}

/** Returns the bytes of a file, or null when there is none. */
export async function findFile(
  em: EntityManager,
  organizationId: string,
  key: string,
): Promise<Buffer | null> {
  const found = await row<{ bytes: Buffer }>(
    em,
    sql`select bytes from stored_file where organization_id = ${organizationId} and key = ${key}`,
  )
  return found?.bytes ?? null
}
