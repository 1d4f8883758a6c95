import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'

/** The From address of an email; `stoodInFor` is the sender's own address when a fallback domain is used. */
export type FromAddress = { email: string; stoodInFor: string | null }

/**
 * Returns the From address for a sender. Null when its domain is not registered, or is not verified and has no
 * fallback.
 */
export async function readFromAddress(
  { em, organization }: Call,
  from: { email: string; domain: string },
): Promise<FromAddress | null> {
  return await row<FromAddress>(
    em,
    sql`select leaving.email, leaving.stood_in_for as "stoodInFor"
      from domain cross join lateral leave_from(domain.organization_id, ${from.email}, domain.status) leaving
      where domain.organization_id = ${organization.id} and domain.domain = ${from.domain}`,
  )
}

/** Returns the confirmation's warning about a fallback domain; empty when none is used. */
export function standInWarnings({ email, stoodInFor }: FromAddress): string[] {
  return stoodInFor === null ? [] : [standInWords({ email, stoodInFor })]
}

/** Explains why an email comes from another domain than its sender's. */
export function standInWords({ email, stoodInFor }: FromAddress): string {
  return `It comes from ${email} in place of ${stoodInFor}, whose domain is not VERIFIED; its DKIM signature is of ${domainOf(email)}.`
}

function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1)
}
