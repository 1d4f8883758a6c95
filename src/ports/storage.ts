import { sql } from 'kysely'

import { type EntityManager, execute, row } from '../database.ts'

/**
 * Where the bytes of files are kept. A key is made from the bytes, so a file never changes, putting it twice is putting
 * it once, and one that nothing points to does no harm: no store has to take part in a transaction.
 */
export type Storage = {
  put(organizationId: string, key: string, bytes: Buffer): Promise<void>
  get(organizationId: string, key: string): Promise<Buffer | null>
}

/** Files in PostgreSQL: no further service, and every backup has them. */
export function createDatabaseStorage(em: EntityManager): Storage {
  return {
    async put(organizationId, key, bytes) {
      await execute(
        em.fork(),
        sql`insert into stored_file (organization_id, key, bytes) values (${organizationId}, ${key}, ${bytes})
          on conflict (organization_id, key) do nothing`,
      )
    },
    async get(organizationId, key) {
      const found = await row<{ bytes: Buffer }>(
        em.fork(),
        sql`select bytes from stored_file where organization_id = ${organizationId} and key = ${key}`,
      )
      return found?.bytes ?? null
    },
  }
}
