import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { column, type EntityManager, rows } from '../../database.ts'
import type { Services } from '../../services.ts'
import { placeholderOf } from './families.ts'
import { askReceivers, readFamilies } from './receivers.ts'
import { SUMS } from './stops.ts'
import { addTotals, awaitTurn, type Total } from './totals.ts'

/** Receiver domains of an organization whose family is not known yet; emails are counted by domain meanwhile. */
export type UnknownDomains = { organizationId: string; domains: string[] }

/** Domains per organization and round, so that an organization with thousands leaves time for others. */
const DOMAINS = 256
/** A round starts no look-up after this time; running ones have their own timeout (dns.ts). */
const ASKING_MS = 2_000

/** Returns the families of as many of these domains as there is time for, alternating between organizations. */
export async function learnFamilies(
  services: Services,
  waiting: readonly UnknownDomains[],
): Promise<Map<string, string>> {
  const domains = inTurns(waiting.map((each) => each.domains))
  const known = await readFamilies(crossOrganization(services), domains)
  const unknown = domains.filter((domain) => !known.has(domain))
  return new Map([...known, ...(await askReceivers(services, unknown, ASKING_MS))])
}

/** Returns some unknown domains of every organization that has any. */
export async function readUnknownDomains(em: EntityManager): Promise<UnknownDomains[]> {
  return await rows<UnknownDomains>(
    em,
    sql`with recursive waiting (id) as (
        (select organization_id from domain_total where family like '@%' order by organization_id limit 1)
        union all
        select (select organization_id from domain_total where family like '@%' and organization_id > waiting.id
          order by organization_id limit 1)
        from waiting where waiting.id is not null
      )
      select id as "organizationId", array(select distinct substr(total.family, 2) from domain_total total
        where total.organization_id = waiting.id and total.family like '@%' limit ${DOMAINS}) as domains
      from waiting where id is not null`,
  )
}

/** Returns the first of each list, then the second of each, and so on, without duplicates. */
function inTurns(lists: readonly (readonly string[])[]): string[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return [
    ...new Set(Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list[at] ?? [])).flat()),
  ]
}

/** Moves counts of domains to the families known by now. Returns the number of domains. */
export async function settleUnknownDomains(
  call: Call,
  waiting: readonly string[],
  families: ReadonlyMap<string, string>,
): Promise<number> {
  const domains = waiting.filter((domain) => families.has(domain))
  if (domains.length === 0) return 0
  await awaitTurn(call)
  const counted = await rows<Total>(
    call.em,
    sql`with gone as (
        delete from domain_total where organization_id = ${call.organization.id} and family like '@%'
          and family = any(${column(domains, placeholderOf, 'text')}) returning *
      )
      select domain_id as "domainId", stream,
        to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, told.family, ${SUMS}
      from gone total join unnest(${column(domains, placeholderOf, 'text')},
          ${column(domains, (domain) => families.get(domain), 'text')}) as told (stranger, family)
        on told.stranger = total.family
      group by 1, 2, 3, 4`,
  )
  await addTotals(call, counted)
  return domains.length
}
