import { sql } from 'kysely'

import type { Call } from '../catalogue/tool.ts'
import { row } from '../database.ts'

/** The From address of an email; `stoodInFor` is its sender's own address if another domain stands in. */
export type FromAddress = { email: string; stoodInFor: string | null }

/** The From address that an email of this sender gets; null if its domain is not registered, or may not send and has no stand-in. */
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

/** The warning of a confirmation that another domain stands in; none if it does not. */
export function standInWarnings({ email, stoodInFor }: FromAddress): string[] {
  return stoodInFor === null ? [] : [standInWords({ email, stoodInFor })]
}

/** Why an email comes from another domain than its sender's. */
export function standInWords({ email, stoodInFor }: FromAddress): string {
  return `It comes from ${email} in place of ${stoodInFor}, whose domain is not VERIFIED; its DKIM signature is of ${domainOf(email)}.`
}

function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1)
}
