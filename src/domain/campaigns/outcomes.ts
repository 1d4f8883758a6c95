import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { rows } from '../../database.ts'

/** What became of the recipients of a campaign. */
export type Outcomes = {
  /** How many have one. */
  settled: number
  sent: number
  delivered: number
  bounced: number
  complained: number
  failed: number
  skipped: Record<string, number>
  resent: number
  /** Sent within the last ten seconds. */
  recent: number
  /** The most frequent reason of what failed or bounced. */
  worst: string
}

type Group = {
  status: string
  reason: string | null
  count: number
  sent: number
  delivered: number
  resent: number
  recent: number
}

const PENDING = ['QUEUED', 'SUBMITTING', 'DELAYED']

/** Counts the outcomes of a campaign by its rows, those among them who got no email. */
export async function countOutcomes({ em, organization }: Call, campaignId: string): Promise<Outcomes> {
  const groups = await rows<Group>(
    em,
    sql`select status, case when status in ('SKIPPED', 'FAILED', 'BOUNCED') then coalesce(reason, 'UNKNOWN') end as reason,
        count(*)::int as count, count(sent_at)::int as sent, count(delivered_at)::int as delivered,
        count(*) filter (where resent)::int as resent,
        count(*) filter (where sent_at > now() - interval '10 seconds')::int as recent
      from message where organization_id = ${organization.id} and campaign_id = ${campaignId} and class <> 'TEST'
      group by 1, 2
      union all
      select 'SKIPPED', reason, count(*)::int, 0, 0, 0, 0 from campaign_recipient
      where organization_id = ${organization.id} and campaign_id = ${campaignId} and reason is not null
      group by reason`,
  )
  const settled = groups.filter(({ status }) => !PENDING.includes(status))
  const of = (status: string) =>
    total(settled.filter((group) => group.status === status).map(({ count }) => count))
  const skipped = Map.groupBy(
    settled.filter(({ status }) => status === 'SKIPPED'),
    ({ reason }) => reason ?? 'UNKNOWN',
  )
  const refused = settled.filter(({ status }) => status === 'FAILED' || status === 'BOUNCED')
  const [worst] = refused.toSorted((one, other) => other.count - one.count)
  return {
    settled: total(settled.map(({ count }) => count)),
    sent: total(groups.map(({ sent }) => sent)),
    delivered: total(groups.map(({ delivered }) => delivered)),
    bounced: of('BOUNCED'),
    complained: of('COMPLAINED'),
    failed: of('FAILED'),
    skipped: Object.fromEntries(
      [...skipped].map(([reason, same]) => [reason, total(same.map(({ count }) => count))]),
    ),
    resent: total(groups.map(({ resent }) => resent)),
    recent: total(groups.map(({ recent }) => recent)),
    worst: worst?.reason ?? '',
  }
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
