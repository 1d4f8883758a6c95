import { sql } from 'kysely'

import type {
  DomainHealth,
  Health,
  HealthFinding,
  HealthWindow,
  ProviderHealth,
  Stream,
} from '../../../schema/deliverability.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, column, rows } from '../../database.ts'
import { type DomainRow, findDomain, presentDomain, readDomains } from '../domains/domains.ts'
import { UNKNOWN_FAMILY } from './families.ts'
import { ownFindings, providerFindings, worstOf } from './findings.ts'
import { SUMS } from './stops.ts'
import { deliveredOf, type Figures, rateOf, share, THRESHOLDS } from './thresholds.ts'
import { OTHER_FAMILIES } from './totals.ts'

/** Totals of the last `days` days by domain, stream and family of receivers. */
type Sum = Figures & { domainId: string; stream: Stream; family: string; days: number }

/** The reported windows in days; totals are kept as long as the longest. */
const WINDOWS = [1, 7, 30] as const
/** How many of the largest providers are listed by name. */
const MOST_PROVIDERS = 20

/** Returns the health of a domain or of all domains, from stored totals; the cost does not depend on emails sent. */
export async function readHealth(call: Call, name?: string): Promise<Health> {
  const domains = name === undefined ? await readDomains(call) : [await findDomain(call, name)]
  const sums = Map.groupBy(await readSums(call, domains), ({ domainId }) => domainId)
  return {
    thresholds: { bounceRate: THRESHOLDS.BOUNCES, complaintRate: THRESHOLDS.COMPLAINTS },
    domains: domains.map((domain) => healthOf(domain, sums.get(domain.id) ?? [])),
  }
}

async function readSums({ em, organization }: Call, domains: readonly DomainRow[]): Promise<Sum[]> {
  const ids = column(domains, ({ id }) => id, 'uuid')
  return await rows<Sum>(
    em,
    sql`select total.domain_id as "domainId", total.stream,
        case when total.family like '@%' then ${UNKNOWN_FAMILY} else total.family end as family, told.days, ${SUMS}
      from unnest(${array(WINDOWS, 'int')}) as told (days)
      join domain_total total on total.at > now() - make_interval(days => told.days)
      where total.organization_id = ${organization.id} and total.domain_id = any(${ids})
      group by 1, 2, 3, 4`,
  )
}

function healthOf(domain: DomainRow, sums: readonly Sum[]): DomainHealth {
  const { id, stops } = presentDomain(domain)
  const providers = providersOf(sums)
  const findings = ownFindings({ domain, stops, sums: streamsOf(sums) })
  const level = worstOf([...findings, ...providers.flatMap((provider) => provider.findings)])
  return { id, domain: domain.domain, level, stops, windows: windowsOf(sums), findings, providers }
}

function streamsOf(sums: readonly Sum[]): (Figures & { stream: Stream; days: number })[] {
  const groups = Map.groupBy(sums, ({ stream, days }) => `${stream} ${days}`)
  return [...groups.values()].flatMap(([first, ...others]) =>
    first ? [{ stream: first.stream, days: first.days, ...totalOf([first, ...others]) }] : [],
  )
}

function providersOf(sums: readonly Sum[]): ProviderHealth[] {
  const longest = Math.max(...WINDOWS)
  const emailsOf = (some: readonly Sum[]) => totalOf(some.filter(({ days }) => days === longest)).emails
  const families = [...Map.groupBy(sums, ({ family }) => family)]
    .filter(([family]) => family !== OTHER_FAMILIES)
    .toSorted(([, one], [, other]) => emailsOf(other) - emailsOf(one))
  const named = new Set(families.slice(0, MOST_PROVIDERS).map(([family]) => family))
  const grouped = Map.groupBy(sums, ({ family }) => (named.has(family) ? family : OTHER_FAMILIES))
  const all = windowsOf(sums)
  return [...grouped]
    .toSorted(([, one], [, other]) => emailsOf(other) - emailsOf(one))
    .map(([provider, some]) => {
      const windows = windowsOf(some)
      const findings: HealthFinding[] = providerFindings(provider, {
        sums: WINDOWS.map((days) => ({ days, ...figuresOf(some, days) })),
        opens: { here: windows.at(-1), everywhere: all.at(-1) },
      })
      return { provider, windows, findings }
    })
}

function windowsOf(sums: readonly Sum[]): HealthWindow[] {
  return WINDOWS.map((days) => windowOf(days, figuresOf(sums, days)))
}

function figuresOf(sums: readonly Sum[], of: number): Figures {
  return totalOf(sums.filter(({ days }) => days === of))
}

function windowOf(days: number, figures: Figures): HealthWindow {
  const { emails, bounced, complained, tracked, opened } = figures
  const delivered = deliveredOf(figures)
  return {
    days,
    emails,
    delivered,
    bounced,
    complained,
    opened,
    deliveryRate: rounded(share(delivered, emails)),
    bounceRate: rounded(rateOf(figures, 'BOUNCES')),
    complaintRate: rounded(rateOf(figures, 'COMPLAINTS')),
    openRate: rounded(share(opened, tracked)),
  }
}

function rounded(rate: number | null): number | null {
  return rate === null ? null : Math.round(rate * 10_000) / 10_000
}

const NOTHING: Figures = { emails: 0, bounced: 0, failed: 0, complained: 0, tracked: 0, opened: 0 }

function totalOf(all: readonly Figures[]): Figures {
  return all.reduce(
    (sum, each) => ({
      emails: sum.emails + each.emails,
      bounced: sum.bounced + each.bounced,
      failed: sum.failed + each.failed,
      complained: sum.complained + each.complained,
      tracked: sum.tracked + each.tracked,
      opened: sum.opened + each.opened,
    }),
    NOTHING,
  )
}
