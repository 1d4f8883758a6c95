import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { execute, rows } from '../../database.ts'
import type { DomainRow } from './domains.ts'
import { dkimName } from './records.ts'

/** A key without its secret; `isFresh` when it is younger than 72 hours, while its record is checked often. */
export type StoredKeyFacts = { selector: string; state: 'NEXT' | 'ACTIVE' | 'RETIRING'; isFresh: boolean }

/** Returns the keys of a domain, newest first. */
export async function readKeys({ em, organization }: Call, domainId: string): Promise<StoredKeyFacts[]> {
  return await rows<StoredKeyFacts>(
    em,
    sql`select selector, state, created_at > now() - interval '72 hours' as "isFresh" from dkim_key
      where organization_id = ${organization.id} and domain_id = ${domainId} order by created_at desc, id desc`,
  )
}

/**
 * Activates the next key when its record is published. The previous key loses its private half; its record is still
 * needed.
 */
export async function promoteNext(
  call: Call,
  domain: DomainRow,
  published: ReadonlySet<string>,
): Promise<void> {
  const { em, organization } = call
  const next = (await readKeys(call, domain.id)).find(({ state }) => state === 'NEXT')
  if (!next || !published.has(dkimName(next.selector, domain.domain))) return
  const where = sql`organization_id = ${organization.id} and domain_id = ${domain.id}`
  await execute(
    em,
    sql`update dkim_key set state = 'RETIRING', retired_at = now(), private_key = null where ${where} and state = 'ACTIVE'`,
  )
  await execute(em, sql`update dkim_key set state = 'ACTIVE' where ${where} and selector = ${next.selector}`)
}

/**
 * Deletes keys that were retired more than 7 days ago. Relays give up after five days (RFC 5321 4.5.4.1), and some
 * receivers verify forwarded mail again.
 */
export async function forgetRetired({ em, organization }: Call, domainId: string): Promise<void> {
  await execute(
    em,
    sql`delete from dkim_key where organization_id = ${organization.id} and domain_id = ${domainId}
      and state = 'RETIRING' and retired_at < now() - interval '7 days'`,
  )
}
