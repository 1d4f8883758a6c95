import { sql } from 'kysely'

import type { Stream } from '../../../schema/deliverability.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, execute, json, row, rows } from '../../database.ts'
import { asciiDomain } from '../addresses.ts'
import { awaitDelivery } from './deliveries.ts'
import { isPlaceholder, NO_MX, placeholderOf, UNKNOWN_FAMILY } from './families.ts'
import { readFamilies } from './receivers.ts'
import { judgeDomains } from './stops.ts'
import type { Figures } from './thresholds.ts'

/** A batch of emails that one statement gave the same outcome, with their lowest and highest ids. */
type Batch = { id: string; kind: Kind; first: string; last: string }
type Kind = 'SENT' | 'BOUNCED' | 'FAILED' | 'COMPLAINED' | 'OPENED'

/** Emails that are counted together. Times are in milliseconds since 1970. */
type Group = {
  kind: Kind
  from: string
  receiver: string
  marketing: boolean
  tracking: boolean
  /** Whether a server had accepted them; otherwise they were refused or failed at once. */
  wasSent: boolean
  hour: number
  /** The latest time before they were sent at which any domain was resumed. */
  resumed: number | null
  emails: number
}
type OwnDomain = { id: string; domain: string; resumedAt: number | null }

type TotalKey = { domainId: string; stream: Stream; at: string; family: string }
/** An amount to add to a row of `domain_total`. */
export type Total = TotalKey & Figures

const BATCHES = 64
/** How many families per domain and hour get their own row; the largest of a round come first. */
const MOST_FAMILIES = 50
/** The family of all others. */
export const OTHER_FAMILIES = 'other'
/** How many days totals are kept. */
export const KEPT_DAYS = 31

/**
 * Counts the oldest uncounted outcomes of an organization in the caller's transaction and deletes them, so each is
 * counted once whatever crashes. Stops streams that cross a limit. It waits for no DNS: emails to domains of an unknown
 * family are counted by domain until unknown-domains.ts learns the family. Returns how many batches it counted.
 */
export async function countOutcomes(call: Call): Promise<number> {
  const { em, organization } = call
  const turn = await row<{ isMine: boolean }>(
    em,
    sql`select pg_try_advisory_xact_lock(${turnOf(organization.id)}) as "isMine"`,
  )
  const batches = turn?.isMine ? await readBatches(call) : []
  if (batches.length === 0) return 0
  const domains = await readDomains(call)
  const groups = await readGroups(call, batches, domains)
  const receivers = [...new Set(groups.flatMap(({ receiver }) => asciiDomain(receiver) ?? []))]
  const totals = totalsOf(groups, domains, await readFamilies(em, receivers))
  await addTotals(call, totals)
  await awaitDelivery(call, idsOf(batches.filter(({ kind }) => kind === 'SENT')))
  await execute(
    em,
    sql`delete from outcome_batch where organization_id = ${organization.id}
      and id = any(${array(idsOf(batches), 'uuid')})`,
  )
  await judgeDomains(
    call,
    totals.map(({ domainId }) => domainId),
  )
  return batches.length
}

/** Takes the lock on the organization's totals until the end of the transaction. */
export async function awaitTurn({ em, organization }: Call): Promise<void> {
  await execute(em, sql`select pg_advisory_xact_lock(${turnOf(organization.id)})`)
}

function turnOf(organizationId: string) {
  return sql`hashtext('count_outcomes'), hashtext(${organizationId})`
}

async function readBatches({ em, organization }: Call): Promise<Batch[]> {
  return await rows<Batch>(
    em,
    sql`select id, kind, (select m from unnest(messages) m order by m limit 1) as first,
        (select m from unnest(messages) m order by m desc limit 1) as last
      from outcome_batch where organization_id = ${organization.id} order by id limit ${BATCHES}`,
  )
}

function idsOf(batches: readonly { id: string }[]): string[] {
  return batches.map(({ id }) => id)
}

async function readDomains({ em, organization }: Call): Promise<Map<string, OwnDomain>> {
  const found = await rows<OwnDomain>(
    em,
    sql`select id, domain, extract(epoch from resumed_at)::float8 * 1000 as "resumedAt" from domain
      where organization_id = ${organization.id}`,
  )
  return new Map(found.map((each) => [each.domain, each]))
}

/** Leaves out tests, and failures other than a refused sender, because those say nothing about the domain. */
async function readGroups(
  { em, organization }: Call,
  batches: readonly Batch[],
  domains: ReadonlyMap<string, OwnDomain>,
): Promise<Group[]> {
  // With constant bounds on the id, the planner reads only the partitions it needs.
  const [first] = batches.map((batch) => batch.first).toSorted()
  const last = batches
    .map((batch) => batch.last)
    .toSorted()
    .at(-1)
  const resumes = [...domains.values()].flatMap(({ resumedAt }) => resumedAt ?? [])
  // Most organizations never resume a domain, and this subquery costs as much as reading the email.
  const resumed =
    resumes.length === 0
      ? sql`null::float8`
      : sql`(select max(resume) from unnest(${resumes}::float8[]) resume
          where resume <= extract(epoch from moment.at)::float8 * 1000)`
  return await rows<Group>(
    em,
    sql`select batch.kind, split_part(m.from_email, '@', -1) as "from", split_part(m.recipient, '@', -1) as receiver,
        m.marketing, m.tracking, m.sent_at is not null as "wasSent",
        extract(epoch from date_trunc('hour', moment.at, 'UTC'))::float8 * 1000 as hour,
        ${resumed} as resumed, count(*)::int as emails
      from outcome_batch batch cross join unnest(batch.messages) as given (id)
      cross join lateral (select * from message m where m.organization_id = ${organization.id} and m.id = given.id
        and m.id between ${first} and ${last} offset 0) m
      cross join lateral (select coalesce(m.sent_at, m.failed_at, m.created_at) as at) moment
      where batch.organization_id = ${organization.id} and batch.id = any(${array(idsOf(batches), 'uuid')})
        and m.class <> 'TEST' and (batch.kind <> 'FAILED' or m.reason = 'SENDER_REFUSED')
      group by 1, 2, 3, 4, 5, 6, 7, 8`,
  )
}

/** Sums groups into totals; leaves out emails from domains that the organization no longer has. */
function totalsOf(
  groups: readonly Group[],
  domains: ReadonlyMap<string, OwnDomain>,
  families: ReadonlyMap<string, string>,
): Total[] {
  const totals = new Map<string, Total>()
  for (const group of groups) {
    const domain = domains.get(asciiDomain(group.from) ?? '')
    if (!domain) continue
    const stream = group.marketing ? 'MARKETING' : 'TRANSACTIONAL'
    const receiver = asciiDomain(group.receiver)
    const family = receiver === null ? UNKNOWN_FAMILY : (families.get(receiver) ?? placeholderOf(receiver))
    const key = {
      domainId: domain.id,
      stream,
      at: new Date(bucketOf(group, domain)).toISOString(),
      family,
    } as const
    const name = Object.values(key).join(' ')
    const total = totals.get(name) ?? { ...key, ...NOTHING }
    totals.set(name, added(total, group))
  }
  return [...totals.values()]
}

const NOTHING = { emails: 0, bounced: 0, failed: 0, complained: 0, tracked: 0, opened: 0 }

/** Returns the hour, or the time of a resume within it, so that emails before and after a resume are counted apart. */
function bucketOf({ hour, resumed }: Group, { resumedAt }: OwnDomain): number {
  const isAfter = resumedAt !== null && resumed !== null && resumed >= resumedAt
  return isAfter ? Math.max(hour, resumedAt) : hour
}

function added(total: Total, { kind, wasSent, tracking, emails }: Group): Total {
  const first = kind === 'SENT' || (!wasSent && (kind === 'BOUNCED' || kind === 'FAILED')) ? emails : 0
  const of = (one: Kind) => (kind === one ? emails : 0)
  return {
    ...total,
    emails: total.emails + first,
    bounced: total.bounced + of('BOUNCED'),
    failed: total.failed + of('FAILED'),
    complained: total.complained + of('COMPLAINED'),
    tracked: total.tracked + (kind === 'SENT' && tracking ? emails : 0),
    opened: total.opened + of('OPENED'),
  }
}

/** Merges small families into one row, because many receivers have their own mail server. */
async function withFewFamilies(call: Call, totals: readonly Total[]): Promise<Total[]> {
  const bucket = ({ domainId, stream, at }: Omit<TotalKey, 'family'>) => [domainId, stream, at].join(' ')
  const kept = Map.groupBy(await readKept(call, totals), bucket)
  const names = new Map([...kept].map(([key, found]) => [key, new Set(found.map(({ family }) => family))]))
  return totals
    .toSorted((one, other) => other.emails - one.emails)
    .map((total) => {
      const own = names.get(bucket(total)) ?? new Set<string>()
      names.set(bucket(total), own)
      if (isPlaceholder(total.family)) return total
      const isFree = total.family === NO_MX || total.family === UNKNOWN_FAMILY || own.size < MOST_FAMILIES
      const family = own.has(total.family) || isFree ? total.family : OTHER_FAMILIES
      own.add(family)
      return { ...total, family }
    })
}

async function readKept({ em, organization }: Call, totals: readonly Total[]) {
  return await rows<TotalKey>(
    em,
    sql`select domain_id as "domainId", stream, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, family
      from domain_total where organization_id = ${organization.id}
        and domain_id = any(${array([...new Set(totals.map(({ domainId }) => domainId))], 'uuid')})
        and at = any(${array([...new Set(totals.map(({ at }) => at))], 'timestamptz')})
        and family not like '@%'`,
  )
}

/** Adds to the stored totals. The caller holds the lock of `awaitTurn`. */
export async function addTotals(call: Call, totals: readonly Total[]): Promise<void> {
  const { em, organization } = call
  const few = await withFewFamilies(call, totals)
  await execute(
    em,
    sql`insert into domain_total as total (organization_id, domain_id, stream, at, family, emails, bounced, failed,
        complained, tracked, opened)
      select ${organization.id}, "domainId", stream, at, family, sum(emails), sum(bounced), sum(failed),
        sum(complained), sum(tracked), sum(opened)
      from jsonb_to_recordset(${json(few)}) as added ("domainId" uuid, stream text, at timestamptz, family text,
        emails int, bounced int, failed int, complained int, tracked int, opened int)
      where at > now() - make_interval(days => ${KEPT_DAYS})
      group by 2, 3, 4, 5 order by 2, 3, 4, 5
      on conflict (organization_id, domain_id, stream, at, family) do update set
        emails = total.emails + excluded.emails, bounced = total.bounced + excluded.bounced,
        failed = total.failed + excluded.failed, complained = total.complained + excluded.complained,
        tracked = total.tracked + excluded.tracked, opened = total.opened + excluded.opened`,
  )
}

/** Returns the organizations with uncounted outcomes. */
export async function organizationsToCount(em: Call['em']): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`with recursive waiting (id) as (
        (select organization_id from outcome_batch order by organization_id limit 1)
        union all
        select (select organization_id from outcome_batch where organization_id > waiting.id
          order by organization_id limit 1)
        from waiting where waiting.id is not null
      )
      select id from waiting where id is not null`,
  )
  return found.map(({ id }) => id)
}
