import { sql } from 'kysely'

import { type EntityManager, execute, row, rows } from '../../src/database.ts'
import { newId } from '../../src/ids.ts'

/** The ids (uuids) to which the benchmark's filters refer. */
export type AudienceData = { campaignId: string; segmentId: string }

const SEGMENT = 'Pro and interested'
const YEAR = 31_536_000

/**
 * Creates an organization's subscribers and a year of their events with INSERT … SELECT: rare to common tags, custom
 * fields, statistics that agree with the events, and a campaign that half of the subscribers received. A second
 * organization with a twentieth of the data shares every table. All values are derived from row numbers, so every run
 * has the same data.
 */
export async function fillAudience(
  em: EntityManager,
  organizationId: string,
  { subscribers, events }: { subscribers: number; events: number },
): Promise<void> {
  const data = { campaignId: newId(), segmentId: newId() }
  await pastPartitions(em)
  const neighbour = newId()
  await execute(
    em,
    sql`insert into organization (id, name, slug) values (${neighbour}, 'Neighbour', ${neighbour})`,
  )
  await withoutSearchIndexes(em, async () => {
    await fillOrganization(em, neighbour, { subscribers: subscribers / 20, events: events / 20 })
    await fillOrganization(em, organizationId, { subscribers, events })
  })
  await fillCampaign(em, organizationId, data.campaignId)
  const filters = [
    { field: 'customFields.plan', operator: 'equals', value: 'pro' },
    { field: 'tags', operator: 'has_any', value: ['tag-20'] },
  ]
  await execute(
    em,
    sql`insert into segment (id, organization_id, name, filters)
      values (${data.segmentId}, ${organizationId}, ${SEGMENT}, ${JSON.stringify(filters)}::jsonb)`,
  )
  await execute(em, sql`vacuum (analyze, parallel 0)`)
}

/** Returns the filled organization and the ids to which its filters refer. */
export async function findAudience(em: EntityManager): Promise<AudienceData & { organizationId: string }> {
  const found = await row<AudienceData & { organizationId: string }>(
    em,
    sql`select organization_id as "organizationId", id as "segmentId",
        (select campaign.id from campaign where campaign.organization_id = segment.organization_id) as "campaignId"
      from segment where name = ${SEGMENT}`,
  )
  if (!found) throw new Error('the database holds no audience of this benchmark')
  return found
}

/** Returns the number of subscribers and events of an organization. */
export async function sizeOf(
  em: EntityManager,
  organizationId: string,
): Promise<{ subscribers: number; events: number }> {
  const found = await row<{ subscribers: number; events: number }>(
    em,
    sql`select (select count(*)::int from subscriber where organization_id = ${organizationId}) as subscribers,
      (select count(*)::int from subscriber_event where organization_id = ${organizationId}) as events`,
  )
  return found ?? { subscribers: 0, events: 0 }
}

/** Creates the partitions of the past months, which would exist if the service had run for a year. */
async function pastPartitions(em: EntityManager): Promise<void> {
  await execute(
    em,
    sql`do $$ declare parent text; month timestamptz; child text; begin
      foreach parent in array array['subscriber_event', 'message'] loop
        for step in 1..13 loop
          month := (date_trunc('month', now() at time zone 'utc') - make_interval(months => step)) at time zone 'utc';
          child := parent || to_char(month at time zone 'utc', '_YYYY_MM');
          execute format('create table if not exists %I partition of %I for values from (%L) to (%L)', child, parent,
            id_floor(month), id_floor(((month at time zone 'utc') + interval '1 month') at time zone 'utc'));
        end loop;
      end loop;
    end $$`,
  )
}

/**
 * Drops the GIN indexes of `subscriber` during `work`: creating them afterwards is ten times as fast as updating them
 * per row.
 */
async function withoutSearchIndexes(em: EntityManager, work: () => Promise<void>): Promise<void> {
  const inverted = await rows<{ name: string; definition: string }>(
    em,
    sql`select indexname as name, indexdef as definition from pg_indexes
      where tablename = 'subscriber' and indexdef like '% USING gin %'`,
  )
  for (const { name } of inverted) await execute(em, sql`drop index ${sql.id(name)}`)
  await work()
  for (const { definition } of inverted) await execute(em, sql.raw(definition))
}

async function fillOrganization(
  em: EntityManager,
  organizationId: string,
  { subscribers, events }: { subscribers: number; events: number },
): Promise<void> {
  const own = sql`${organizationId}::uuid`
  await execute(
    em,
    sql`insert into subscriber (id, organization_id, email, name, phone, status, country, fields, created_at, updated_at)
      select ${idAt(sql`made.at`, sql`made.n`)}, ${own},
        'person-' || n || '@' || case when n % 5 < 2 then 'mail.example' else 'company' || n % 300 || '.example' end,
        case when n % 9 = 0 then null else
          (array['Ada', 'Grace', 'Zoë', 'Linus', 'Renée', 'Edsger', 'Barbara', 'Alan', 'Radia', 'Ken'])[1 + n % 10]
          || ' ' || (array['Lovelace', 'Hopper', 'Müller', 'Ngũgĩ', 'Dubois', 'Perlman', 'Okafor'])[1 + (n / 10) % 7]
          || ' ' || n % 1000 end,
        case when n % 3 = 0 then '+33' || 600000000 + n end,
        case when n % 10 < 8 then 'SUBSCRIBED' when n % 10 = 8 then 'UNSUBSCRIBED'
          when n % 20 = 9 then 'BOUNCED' when n % 100 = 19 then 'COMPLAINED' else 'TRANSACTIONAL' end,
        (array['FR', 'DE', 'US', 'GB', 'IN'])[1 + n % 5],
        jsonb_build_object('plan', (array['free', 'free', 'free', 'pro', 'enterprise'])[1 + (n / 3) % 5],
          'seats', (n * 7919::bigint) % 1000, 'beta', n % 2 = 0, 'city', 'City ' || n % 400),
        made.at, made.at
      from (select n, now() - make_interval(secs => ${YEAR} * (1 - n / ${subscribers}::float8) + 60) as at
        from generate_series(1, ${Math.round(subscribers)}::int) n) made`,
  )
  await execute(
    em,
    sql`insert into tag (id, organization_id, name) select new_id(), ${own}, 'tag-' || n from generate_series(1, 50) n`,
  )
  // `tag-k` is on every k-th subscriber, except `tag-50`, which is on one in a thousand.
  await execute(
    em,
    sql`insert into subscriber_tag (organization_id, subscriber_id, tag_id, created_at)
      select ${own}, s.id, tag.id, s.created_at
      from (select id, created_at, row_number() over (order by id) as n from subscriber where organization_id = ${own}) s
      cross join lateral (values (2), (7), (20), (33), (50)) as every (k)
      join tag on tag.organization_id = ${own} and tag.name = 'tag-' || every.k
      where (s.n * 2654435761) % 1000003 % case when every.k = 50 then 1000 else every.k end = 0`,
  )
  await execute(em, sql`create temporary table person (n int primary key, id uuid not null)`)
  await execute(
    em,
    sql`insert into person select row_number() over (order by id), id from subscriber where organization_id = ${own}`,
  )
  await execute(em, sql`analyze person`)
  // Squaring the random number makes some subscribers ten times as active as others.
  await execute(
    em,
    sql`insert into subscriber_event (id, organization_id, subscriber_id, type, data, cause, created_at)
      select ${idAt(sql`made.at`, sql`made.n`)}, ${own}, person.id, made.type,
        case when made.type = 'SUBSCRIBER_PAYMENT'
          then jsonb_build_object('amount', made.n % 200, 'currency', 'EUR')
          else jsonb_build_object('emailId', 'eml_' || md5(made.n::text)) end,
        '{"kind": "system", "id": "", "name": "Benchmark"}', made.at
      from (
        select n, case when n % 50 = 9 then 'SUBSCRIBER_PAYMENT' else (array['EMAIL_SENT', 'EMAIL_SENT', 'EMAIL_SENT',
            'EMAIL_SENT', 'EMAIL_SENT', 'EMAIL_OPENED', 'EMAIL_OPENED', 'EMAIL_OPENED', 'EMAIL_CLICKED',
            'TAG_ADDED'])[1 + n % 10] end as type,
          now() - make_interval(secs => ${YEAR} * (1 - n / ${events}::float8) + 60) as at,
          (hashint8(n)::bigint + 2147483648) / 4294967296.0 as draw
        from generate_series(1, ${Math.round(events)}::int) n
      ) made
      join person on person.n = 1 + floor(made.draw * made.draw * ${Math.round(subscribers)}::int)::int`,
  )
  await execute(em, sql`drop table person`)
  await execute(
    em,
    sql`insert into subscriber_stat (organization_id, subscriber_id, revenue, email_count, open_count, click_count,
        last_opened_at, last_clicked_at)
      select ${own}, s.id, coalesce(counts.revenue, 0), coalesce(sent, 0), coalesce(opened, 0), coalesce(clicked, 0),
        last_opened_at, last_clicked_at
      from subscriber s left join (
        select subscriber_id, sum((data ->> 'amount')::numeric) as revenue,
          count(*) filter (where type = 'EMAIL_SENT') as sent,
          count(*) filter (where type = 'EMAIL_OPENED') as opened,
          count(*) filter (where type = 'EMAIL_CLICKED') as clicked,
          max(created_at) filter (where type = 'EMAIL_OPENED') as last_opened_at,
          max(created_at) filter (where type = 'EMAIL_CLICKED') as last_clicked_at
        from subscriber_event where organization_id = ${own} group by subscriber_id
      ) counts on counts.subscriber_id = s.id
      where s.organization_id = ${own} order by s.id`,
  )
  for (const [name, type] of [
    ['beta', 'boolean'],
    ['city', 'string'],
    ['plan', 'string'],
    ['seats', 'number'],
  ] as const) {
    await execute(
      em,
      sql`insert into custom_field (id, organization_id, name, type) values (new_id(), ${own}, ${name}, ${type})`,
    )
  }
}

/** Creates a campaign that every second subscriber got ten days ago and three in ten of them opened. */
async function fillCampaign(em: EntityManager, organizationId: string, campaignId: string): Promise<void> {
  const own = sql`${organizationId}::uuid`
  await execute(
    em,
    sql`insert into campaign (id, organization_id, kind, status)
      values (${campaignId}, ${own}, 'BROADCAST', 'SENT')`,
  )
  await execute(
    em,
    sql`insert into message (id, organization_id, class, marketing, status, subscriber_id, recipient, from_email,
        campaign_id, created_at, sent_at, delivered_at, opened_at, clicked_at)
      select ${idAt(sql`made.at`, sql`made.n`)}, ${own}, 'CAMPAIGN', true, 'DELIVERED', made.id, made.email,
        'hello@example.com', ${campaignId}::uuid, at, at, at, case when (n * 2654435761) % 1000003 % 10 < 3 then at end,
        case when (n * 2654435761) % 1000003 % 10 = 0 then at end
      from (select id, email, row_number() over (order by id) as n,
          now() - interval '10 days' + make_interval(secs => row_number() over (order by id) / 400.0) as at
        from subscriber where organization_id = ${own}) made
      where n % 2 = 0`,
  )
}

/** Returns a UUID version 7 for a point in time. Its random part is derived from `number`. */
function idAt(moment: ReturnType<typeof sql>, number: ReturnType<typeof sql>) {
  return sql`(left(id_floor(${moment})::text, 14) || '7' || lpad(to_hex(${number} % 4096), 3, '0') || '-8'
    || substr(md5(${number}::text), 1, 3) || '-' || substr(md5(${number}::text), 4, 12))::uuid`
}
