import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { execute, row } from '../../database.ts'

const key = (organizationId: string) => sql`hashtextextended(${`segments/${organizationId}`}, 0)`

/**
 * Locks the segments of an organization until the end of the transaction: which exist, which are watched, and who is in
 * them. Take it before every other lock.
 */
export async function lockSegments({ em, organization }: Call): Promise<void> {
  await execute(em, sql`select pg_advisory_xact_lock(${key(organization.id)})`)
}

/** Takes the same lock if it is free; returns whether it did. */
export async function tryLockSegments({ em, organization }: Call): Promise<boolean> {
  const found = await row<{ locked: boolean }>(
    em,
    sql`select pg_try_advisory_xact_lock(${key(organization.id)}) as locked`,
  )
  return found?.locked ?? false
}
