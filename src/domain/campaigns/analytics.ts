import { sql } from 'kysely'

import type { CampaignAnalytics } from '../../../schema/campaign.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row, rows } from '../../database.ts'
import { timestamp } from '../text.ts'
import { countOutcomes } from './outcomes.ts'
import { type CampaignRow, findCampaign } from './records.ts'
import { compileCampaign } from './render.ts'

type Visits = CampaignAnalytics['opens']
type Visit = { kind: 'OPEN' | 'CLICK'; human: boolean; unique: number; total: number }
type Link = { position: number; unique: number; total: number }

/** A payment this soon after a click counts for the campaign (decisions, section 5). */
const ATTRIBUTED = sql`interval '5 days'`

/** What came of a campaign, from its emails and what readers did with them. */
export async function readAnalytics(call: Call, campaignId: string): Promise<CampaignAnalytics> {
  const campaign = await findCampaign(call, campaignId)
  const { settled, sent, delivered, complained } = await countOutcomes(call, campaign.id)
  const visits = await readVisits(call, campaign)
  return {
    recipients: settled,
    sent,
    delivered,
    opens: visitsOf(visits, 'OPEN'),
    clicks: visitsOf(visits, 'CLICK'),
    links: await readLinks(call, campaign),
    ...(await readConsequences(call, campaign)),
    complaints: complained,
    timeline: await readTimeline(call, campaign),
  }
}

function emailsOf({ organization }: Call, { id }: CampaignRow) {
  return sql`message m where m.organization_id = ${organization.id} and m.campaign_id = ${id} and m.class <> 'TEST'`
}

/** The visits to the campaign's emails, as `t`; `m` is the email. */
function visitsTo({ organization }: Call, { id }: CampaignRow) {
  return sql`message m join tracking_event t on t.organization_id = ${organization.id} and t.message_id = m.id
    where m.organization_id = ${organization.id} and m.campaign_id = ${id} and m.class <> 'TEST'`
}

async function readVisits(call: Call, campaign: CampaignRow): Promise<Visit[]> {
  return await rows<Visit>(
    call.em,
    sql`select t.kind, t.human, count(distinct m.id)::int as unique, count(*)::int as total
      from ${visitsTo(call, campaign)} group by 1, 2`,
  )
}

function visitsOf(visits: readonly Visit[], kind: Visit['kind']): Visits {
  const found = (human: boolean) => {
    const { unique, total } = visits.find((visit) => visit.kind === kind && visit.human === human) ?? NONE
    return { unique, total }
  }
  return { ...found(true), machine: found(false) }
}

const NONE = { unique: 0, total: 0 }

/** Every link of the content, whether anybody followed it or not. */
async function readLinks(call: Call, campaign: CampaignRow): Promise<CampaignAnalytics['links']> {
  const followed = await rows<Link>(
    call.em,
    sql`select t.position, count(distinct m.id)::int as unique, count(*)::int as total
      from ${visitsTo(call, campaign)} and t.kind = 'CLICK' and t.human group by 1 order by 1`,
  )
  const byPosition = new Map(followed.map((link) => [link.position, link]))
  const known = await linksOf(call, campaign)
  const positions = new Set([...known.keys(), ...byPosition.keys()])
  return [...positions]
    .toSorted((one, other) => one - other)
    .map((position) => {
      const { unique, total } = byPosition.get(position) ?? NONE
      return { position, url: known.get(position) ?? null, unique, total }
    })
}

/** The addresses by position, of the content that was sent. */
async function linksOf(call: Call, campaign: CampaignRow): Promise<Map<number, string | null>> {
  const frozen = await row<Pick<CampaignRow, 'subject' | 'preview' | 'content' | 'contentType'>>(
    call.em,
    sql`select subject, preview, content, content_type as "contentType" from campaign_send
      where organization_id = ${call.organization.id} and campaign_id = ${campaign.id} order by number desc limit 1`,
  )
  const { links } = await compileCampaign(call, { ...campaign, ...frozen }, { isFrozen: frozen !== null })
  return new Map(links.map(({ position, url }) => [position, url]))
}

type Consequences = Pick<CampaignAnalytics, 'unsubscribes' | 'bounces' | 'revenue'>

async function readConsequences(call: Call, campaign: CampaignRow): Promise<Consequences> {
  const { id: organizationId } = call.organization
  const found = await row<Consequences>(
    call.em,
    sql`select
      (select count(distinct m.id)::int from ${emailsOf(call, campaign)} and exists (
        select from subscriber_event e where e.organization_id = ${organizationId}
          and e.subscriber_id = m.subscriber_id and e.type = 'UNSUBSCRIBED'
          and e.data ->> 'source' = 'email ' || type_id('eml', m.id))) as unsubscribes,
      (select coalesce(jsonb_object_agg(category, count), '{}') from (
        select coalesce(m.bounce_category, 'UNKNOWN') as category, count(*)::int as count
        from ${emailsOf(call, campaign)} and m.status = 'BOUNCED' group by 1) by_category) as bounces,
      (select coalesce(sum((paid.data ->> 'amount')::numeric), 0)::float8 from subscriber_event paid
        join (select distinct m.subscriber_id from ${visitsTo(call, campaign)} and t.kind = 'CLICK' and t.human) clicker
          on clicker.subscriber_id = paid.subscriber_id
        where paid.organization_id = ${organizationId} and paid.type = 'SUBSCRIBER_PAYMENT'
          and exists (select from ${visitsTo(call, campaign)} and m.subscriber_id = paid.subscriber_id
            and t.kind = 'CLICK' and t.human
            and paid.created_at >= t.created_at and paid.created_at < t.created_at + ${ATTRIBUTED})) as revenue`,
  )
  return found ?? { unsubscribes: 0, bounces: {}, revenue: 0 }
}

/** By the hour, those in which nothing happened left out; opens and clicks of people. */
async function readTimeline(call: Call, campaign: CampaignRow): Promise<CampaignAnalytics['timeline']> {
  const found = await rows<CampaignAnalytics['timeline'][number]>(
    call.em,
    sql`select hour, sum(sent)::int as sent, sum(opens)::int as opens, sum(clicks)::int as clicks from (
        select date_trunc('hour', m.sent_at) as hour, count(*) as sent, 0 as opens, 0 as clicks
        from ${emailsOf(call, campaign)} and m.sent_at is not null group by 1
        union all
        select date_trunc('hour', t.created_at), 0, count(*) filter (where t.kind = 'OPEN'),
          count(*) filter (where t.kind = 'CLICK')
        from ${visitsTo(call, campaign)} and t.human group by 1) hours
      group by 1 order by 1`,
  )
  return found.map((bucket) => ({ ...bucket, hour: timestamp(bucket.hour) }))
}
