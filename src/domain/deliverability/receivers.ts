import { sql } from 'kysely'

import { array, type EntityManager, execute, rows } from '../../database.ts'
import type { Services } from '../../services.ts'
import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { familyOf, UNKNOWN_FAMILY } from './families.ts'

const QUESTIONS_AT_ONCE = 64
/** Nobody has them (RFC 2606), so nobody is asked. */
const RESERVED = /\.(?:test|example|invalid|localhost)$/
const FRESH = sql`receiver.checked_at > now() - case when receiver.family is null then interval '10 minutes'
  else interval '7 days' end`

/** The families of these domains; what is missing has to be asked for with askReceivers. */
export async function readFamilies(
  em: EntityManager,
  domains: readonly string[],
): Promise<Map<string, string>> {
  const found = await rows<{ domain: string; family: string | null }>(
    em,
    sql`select domain, family from receiver where domain = any(${array(domains, 'text')}) and ${FRESH}`,
  )
  const reserved = domains.filter((domain) => RESERVED.test(domain))
  return new Map([
    ...reserved.map((domain) => [domain, UNKNOWN_FAMILY] as const),
    ...found.map(({ domain, family }) => [domain, family ?? UNKNOWN_FAMILY] as const),
  ])
}

/** Asks DNS who receives for these domains and writes it down, also that nobody said, so that counting never waits twice. */
export async function askReceivers(services: Services, domains: readonly string[]): Promise<void> {
  let isSilent = false
  for (let from = 0; from < domains.length; from += QUESTIONS_AT_ONCE) {
    const some = domains.slice(from, from + QUESTIONS_AT_ONCE)
    // Where a whole round of questions got no answer, the others would only take their time.
    const families: (string | null)[] = isSilent ? some.map(() => null) : await ask(services, some)
    isSilent = families.every((family) => family === null)
    await store(crossOrganization(services), some, families)
  }
}

async function ask({ dns }: Services, domains: readonly string[]): Promise<(string | null)[]> {
  return await Promise.all(domains.map(async (domain) => familyOf(await dns.lookUp(domain, 'MX'))))
}

async function store(
  em: EntityManager,
  domains: readonly string[],
  families: readonly (string | null)[],
): Promise<void> {
  await execute(
    em,
    sql`insert into receiver (domain, family)
      select domain, family from unnest(${array(domains, 'text')}, ${array(families, 'text')}) as said (domain, family)
      order by domain
      on conflict (domain) do update set checked_at = now(), family = coalesce(excluded.family, receiver.family)`,
  )
}
