import type { EntityManager } from '../database.ts'
import { findFile, insertFile } from '../domain/stored-files.ts'

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
    put: (organizationId, key, bytes) => insertFile(em.fork(), organizationId, key, bytes),
    get: (organizationId, key) => findFile(em.fork(), organizationId, key),
  }
}
