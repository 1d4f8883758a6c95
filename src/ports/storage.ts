import type { EntityManager } from '../database.ts'
import { findFile, insertFile } from '../domain/library/stored-files.ts'

/**
 * Stores the bytes of files. A key is made from the bytes, so a file never changes, putting it twice has no effect, and
 * a file without a reference does no harm: no storage has to take part in a transaction.
 */
export type Storage = {
  put(organizationId: string, key: string, bytes: Buffer): Promise<void>
  get(organizationId: string, key: string): Promise<Buffer | null>
}

/** Creates a storage in PostgreSQL: it needs no further service, and every backup includes it. */
export function createDatabaseStorage(em: EntityManager): Storage {
  return {
    put: (organizationId, key, bytes) => insertFile(em.fork(), organizationId, key, bytes),
    get: (organizationId, key) => findFile(em.fork(), organizationId, key),
  }
}
