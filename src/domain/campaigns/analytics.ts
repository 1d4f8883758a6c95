import { sql } from 'kysely'

import type { CampaignAnalytics } from '../../../schema/campaign.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row, rows } from '../../database.ts'
import { timestamp } from '../text.ts'
import { countOutcomes, sentByHour } from './outcomes.ts'
import { type CampaignRow, findCampaign } from './records.ts'
import { compileCampaign } from './render.ts'
import { latestSend } from './sends.ts'

type Visits = CampaignAnalytics['opens']
type Kind = 'OPEN' | 'CLICK' | 'LINK' | 'UNSUBSCRIBE'
type Count = {
  kind: Kind
  position: number
  people: number
  machines: number
  emailsByPeople: number
  emailsByMachines: number
}

/** How long after a click a payment still counts for the campaign (decisions, section 5). */
const ATTRIBUTED = sql`interval '5 days'`

/** Returns the analytics of a campaign: the outcomes of its emails and the recorded visits of its recipients. */
export async function readAnalytics(call: Call, campaignId: string): Promise<CampaignAnalytics> {
  const campaign = await findCampaign(call, campaignId)
  const { settled, sent, delivered, complained, categories } = await countOutcomes(call, campaign.id)
  const latest = await latestSend(call, campaign.id)
  const counts = await readCounts(call, campaign)
  return {
    recipients: latest?.total ?? settled,
    sent,
    delivered,
    opens: visitsOf(counts, 'OPEN'),
    clicks: visitsOf(counts, 'CLICK'),
    links: await readLinks(call, campaign, counts),
    unsubscribes: counts.find(({ kind }) => kind === 'UNSUBSCRIBE')?.emailsByPeople ?? 0,
    bounces: categories,
    complaints: complained,
    revenue: await readRevenue(call, campaign),
    timeline: await readTimeline(call, campaign),
  }
}

async function readCounts({ em, organization }: Call, { id }: CampaignRow): Promise<Count[]> {
  return await rows<Count>(
    em,
    sql`select kind, position, people, machines, emails_by_people as "emailsByPeople",
        emails_by_machines as "emailsByMachines"
      from campaign_engagement where organization_id = ${organization.id} and campaign_id = ${id} order by position`,
  )
}

function visitsOf(counts: readonly Count[], wanted: Kind): Visits {
  const found = counts.find(({ kind }) => kind === wanted)
  return {
    unique: found?.emailsByPeople ?? 0,
    total: found?.people ?? 0,
    machine: { unique: found?.emailsByMachines ?? 0, total: found?.machines ?? 0 },
  }
}

/** Returns every link of the content, including links that nobody followed. */
async function readLinks(
  call: Call,
  campaign: CampaignRow,
  counts: readonly Count[],
): Promise<CampaignAnalytics['links']> {
  const followed = new Map(
    counts.filter(({ kind }) => kind === 'LINK').map((count) => [count.position, count]),
  )
  const known = await linksOf(call, campaign)
  return [...new Set([...known.keys(), ...followed.keys()])]
    .toSorted((one, other) => one - other)
    .map((position) => {
      const { emailsByPeople = 0, people = 0 } = followed.get(position) ?? {}
      return { position, url: known.get(position) ?? null, unique: emailsByPeople, total: people }
    })
}

/** Returns link addresses by position, of the content of the last send, or of the current content before any send. */
async function linksOf(call: Call, campaign: CampaignRow): Promise<Map<number, string | null>> {
  const frozen = await row<Pick<CampaignRow, 'subject' | 'preview' | 'content' | 'contentType'>>(
    call.em,
    sql`select subject, preview, content, content_type as "contentType" from campaign_send
      where organization_id = ${call.organization.id} and campaign_id = ${campaign.id} order by number desc limit 1`,
  )
  const { links } = await compileCampaign(call, { ...campaign, ...frozen }, { isFrozen: frozen !== null })
  return new Map(links.map(({ position, url }) => [position, url]))
}

/**
 * Sums payments per currency. Starts from the recipients who clicked, because they are few compared with all emails.
 */
async function readRevenue(
  { em, organization }: Call,
  { id }: CampaignRow,
): Promise<CampaignAnalytics['revenue']> {
  return await rows<CampaignAnalytics['revenue'][number]>(
    em,
    sql`with clicker as materialized (
        select m.subscriber_id, array_agg(clicked.message_id) as emails from engagement clicked
        join message m on m.organization_id = clicked.organization_id and m.id = clicked.message_id
        where clicked.organization_id = ${organization.id} and clicked.campaign_id = ${id}
          and clicked.kind = 'CLICK' and clicked.people > 0
        group by m.subscriber_id)
      select paid.data ->> 'currency' as currency, sum((paid.data ->> 'amount')::numeric)::float8 as total from clicker
      join subscriber_event paid on paid.organization_id = ${organization.id}
        and paid.subscriber_id = clicker.subscriber_id and paid.type = 'SUBSCRIBER_PAYMENT'
        and (paid.data ->> 'amount')::numeric > 0
      where exists (select from tracking_event t where t.organization_id = ${organization.id}
        and t.message_id = any(clicker.emails) and t.kind = 'CLICK' and t.human
        and t.created_at <= paid.created_at and t.created_at > paid.created_at - ${ATTRIBUTED})
      group by 1 order by 1`,
  )
}

/** Returns counts per hour, without hours in which nothing happened. Opens and clicks of machines are left out. */
async function readTimeline(call: Call, campaign: CampaignRow): Promise<CampaignAnalytics['timeline']> {
  const found = await rows<CampaignAnalytics['timeline'][number]>(
    call.em,
    sql`select hour, sum(sent)::int as sent, sum(opens)::int as opens, sum(clicks)::int as clicks from (
        select hour, sent, 0 as opens, 0 as clicks from (${sentByHour(call, campaign.id)}) sent
        union all
        select hour, 0, opens, clicks from campaign_hour
        where organization_id = ${call.organization.id} and campaign_id = ${campaign.id}
          and (opens <> 0 or clicks <> 0)) hours
      group by 1 order by 1`,
  )
  return found.map((bucket) => ({ ...bucket, hour: timestamp(bucket.hour) }))
}
