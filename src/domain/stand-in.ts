import { sql } from 'kysely'

import type { Call } from '../catalogue/tool.ts'
import { row } from '../database.ts'

/** Where an email leaves from; `stoodInFor` is the address of its sender, where another domain stands in. */
export type Leaving = { email: string; stoodInFor: string | null }

/** Where an email from an address on a domain leaves from; null where it may not, or the domain is not there. */
export async function readLeaving(
  { em, organization }: Call,
  from: { email: string; domain: string },
): Promise<Leaving | null> {
  return await row<Leaving>(
    em,
    sql`select leaving.email, leaving.stood_in_for as "stoodInFor"
      from domain cross join lateral leave_from(domain.organization_id, ${from.email}, domain.status) leaving
      where domain.organization_id = ${organization.id} and domain.domain = ${from.domain}`,
  )
}

/** What whoever confirms has to know of another domain that stands in. */
export function standInWarnings({ email, stoodInFor }: Leaving): string[] {
  return stoodInFor === null ? [] : [standInWords({ email, stoodInFor })]
}

/** Why an email comes from another domain than its sender's. */
export function standInWords({ email, stoodInFor }: Leaving): string {
  return `It comes from ${email} in place of ${stoodInFor}, whose domain is not VERIFIED; its DKIM signature is of ${domainOf(email)}.`
}

function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1)
}
