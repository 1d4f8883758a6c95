import { type RawBuilder, sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import type { Predicate } from '../audience/predicate.ts'

/** A `from` and `where` for the recipients: SUBSCRIBED subscribers that match the predicate, under the alias `s`. */
export function recipients(organizationId: string, predicate: Predicate): RawBuilder<unknown> {
  return sql`subscriber s where s.organization_id = ${organizationId} and s.status = 'SUBSCRIBED' and ${predicate}`
}

/**
 * A condition that is true when the address of `s` is suppressed. It hashes addresses only in an organization that has
 * erased people, whose suppressions are hashed. Each part is a single equality, so that PostgreSQL can look it up in a
 * hash table over all suppressions.
 */
export function isSuppressed(organizationId: string): RawBuilder<boolean> {
  const blocked = (key: RawBuilder<string>) =>
    sql<boolean>`exists (select from suppression b where b.organization_id = ${organizationId} and b.email_key = ${key})`
  return sql<boolean>`(${blocked(sql`s.email_key`)}
    or ((select exists (select from erasure where organization_id = ${organizationId}))
      and ${blocked(sql`erased_email_key(s.organization_id, s.email)`)}))`
}

/** Counts the subscribers that would get the campaign now, and those that match but are suppressed. */
export async function countRecipients(
  { em, organization }: Call,
  predicate: Predicate,
): Promise<{ reached: number; suppressed: number }> {
  // Without the offset, PostgreSQL would expect to test one row, that of the counts, and read all suppressions for each
  // subscriber.
  const found = await row<{ total: number; suppressed: number }>(
    em,
    sql`select count(*)::int as total, count(*) filter (where suppressed)::int as suppressed
      from (select ${isSuppressed(organization.id)} as suppressed
        from ${recipients(organization.id, predicate)} offset 0) as recipient`,
  )
  const { total, suppressed } = found ?? { total: 0, suppressed: 0 }
  return { reached: total - suppressed, suppressed }
}
