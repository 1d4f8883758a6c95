import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { execute, row } from '../../database.ts'

const key = (organizationId: string) => sql`hashtextextended(${`segments/${organizationId}`}, 0)`

/**
 * Until the end of the transaction, nobody else changes what segments the organization has, which are watched, or who
 * is in them. It comes before every other lock.
 */
export async function lockSegments({ em, organization }: Call): Promise<void> {
  await execute(em, sql`select pg_advisory_xact_lock(${key(organization.id)})`)
}

/** The same lock if it is free. */
export async function tryLockSegments({ em, organization }: Call): Promise<boolean> {
  const found = await row<{ locked: boolean }>(
    em,
    sql`select pg_try_advisory_xact_lock(${key(organization.id)}) as locked`,
  )
  return found?.locked ?? false
}
