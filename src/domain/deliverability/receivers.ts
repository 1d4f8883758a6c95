import { sql } from 'kysely'

import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { array, type EntityManager, execute, rows } from '../../database.ts'
import type { Services } from '../../services.ts'
import { familyOf, UNKNOWN_FAMILY } from './families.ts'

const QUESTIONS_AT_ONCE = 64
/** Nobody has them (RFC 2606), so nobody is asked. */
const RESERVED = /\.(?:test|example|invalid|localhost)$/
const FRESH = sql`receiver.checked_at > now() - case when receiver.family is null then interval '10 minutes'
  else interval '7 days' end`

/** The families of these domains; what is missing has to be asked for (askReceivers). */
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
 * Asks DNS who receives for these domains, so many at once, and writes it down, also that nobody said. Those that are not
 * begun when the time is over are left. Answers the families as readFamilies does.
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
