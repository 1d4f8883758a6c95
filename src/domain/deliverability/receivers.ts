import { sql } from 'kysely'

import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { array, type EntityManager, execute, rows } from '../../database.ts'
import type { Services } from '../../services.ts'
import { familyOf, UNKNOWN_FAMILY } from './families.ts'

const QUESTIONS_AT_ONCE = 64
/** Reserved top-level domains (RFC 2606), which have no mail servers. */
const RESERVED = /\.(?:test|example|invalid|localhost)$/
const FRESH = sql`receiver.checked_at > now() - case when receiver.family is null then interval '10 minutes'
  else interval '7 days' end`

/** Returns the known families of domains; `askReceivers` looks up the missing ones. */
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

/**
 * Looks up the mail servers of domains, `QUESTIONS_AT_ONCE` at a time, and stores the results, including missing
 * answers. Starts no look-up after `withinMs`. Returns families like `readFamilies`.
 */
export async function askReceivers(
  services: Services,
  domains: readonly string[],
  withinMs: number,
): Promise<Map<string, string>> {
  if (domains.length === 0) return new Map()
  const until = performance.now() + withinMs
  const waiting = [...domains]
  const said: { domain: string; family: string | null }[] = []
  async function ask(): Promise<void> {
    for (let domain = waiting.shift(); domain !== undefined; domain = waiting.shift()) {
      said.push({ domain, family: familyOf(await services.dns.lookUp(domain, 'MX')) })
      if (performance.now() >= until) return
    }
  }
  await Promise.all(Array.from({ length: QUESTIONS_AT_ONCE }, ask))
  await store(crossOrganization(services), said)
  return new Map(said.map(({ domain, family }) => [domain, family ?? UNKNOWN_FAMILY]))
}

async function store(
  em: EntityManager,
  said: readonly { domain: string; family: string | null }[],
): Promise<void> {
  const domains = said.map(({ domain }) => domain)
  const families = said.map(({ family }) => family)
  await execute(
    em,
    sql`insert into receiver (domain, family)
      select domain, family from unnest(${array(domains, 'text')}, ${array(families, 'text')}) as said (domain, family)
      order by domain
      on conflict (domain) do update set checked_at = now(), family = coalesce(excluded.family, receiver.family)`,
  )
}
