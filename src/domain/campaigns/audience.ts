import { type RawBuilder, sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import type { Predicate } from '../audience/predicate.ts'

/** A `from` and `where` for the recipients: SUBSCRIBED subscribers that match the predicate, under the alias `s`. */
export function recipients(organizationId: string, predicate: Predicate): RawBuilder<unknown> {
  return sql`subscriber s where s.organization_id = ${organizationId} and s.status = 'SUBSCRIBED' and ${predicate}`
}

/**
 * A condition that is true when the address of `s` is suppressed. It computes the keys of an address, which include a
 * hash for erased people, only when the organization has any suppression.
 */
export function isSuppressed(organizationId: string): RawBuilder<boolean> {
  return sql<boolean>`((select exists (select from suppression where organization_id = ${organizationId}))
    and exists (select from suppression b where b.organization_id = ${organizationId}
      and b.email_key = any(suppression_keys(s.organization_id, s.email))))`
}

/** Counts the subscribers that would get the campaign now, and those that match but are suppressed. */
export async function countRecipients(
  { em, organization }: Call,
  predicate: Predicate,
): Promise<{ reached: number; suppressed: number }> {
  const found = await row<{ total: number; suppressed: number }>(
    em,
    sql`select count(*)::int as total, count(*) filter (where ${isSuppressed(organization.id)})::int as suppressed
      from ${recipients(organization.id, predicate)}`,
  )
  const { total, suppressed } = found ?? { total: 0, suppressed: 0 }
  return { reached: total - suppressed, suppressed }
}
