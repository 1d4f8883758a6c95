import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { rows } from '../../database.ts'

/** Counts of the recipients of a campaign by outcome. */
export type Outcomes = {
  /** Recipients with any outcome. */
  settled: number
  sent: number
  delivered: number
  bounced: number
  complained: number
  failed: number
  skipped: Record<string, number>
  /** Bounces by category. */
  categories: Record<string, number>
  resent: number
  /** Sent within the last ten seconds. Counts are kept per ten-second window; a share of the older one is estimated. */
  recent: number
  /** The most frequent reason among failed and bounced emails; empty when there are none. */
  worst: string
}

type Group = {
  status: string
  reason: string
  count: number
  sent: number
  delivered: number
  resent: number
  recent: number
}

/**
 * Returns the outcomes of a campaign from `campaign_tally`, which triggers keep up to date. The cost does not depend on
 * the number of recipients.
 */
export async function countOutcomes({ em, organization }: Call, campaignId: string): Promise<Outcomes> {
  const groups = await rows<Group>(
    em,
    sql`select status, reason, sum(emails)::int as count,
        coalesce(sum(emails) filter (where sent_hour > '-infinity'), 0)::int as sent,
        sum(delivered)::int as delivered, sum(resent)::int as resent,
        coalesce(sum(case window_at when since then in_window + before_window * rest
          when since - interval '10 seconds' then in_window * rest end) filter (where status = 'SENT'), 0)::float8 as recent
      from campaign_tally, (select date_bin('10 seconds', clock_timestamp(), 'epoch') as since,
        1 - extract(epoch from clock_timestamp() - date_bin('10 seconds', clock_timestamp(), 'epoch')) / 10 as rest) clock
      where organization_id = ${organization.id} and campaign_id = ${campaignId}
      group by 1, 2 having sum(emails) <> 0`,
  )
  const of = (status: string) => groups.filter((group) => group.status === status)
  const refused = [...of('FAILED'), ...of('BOUNCED')]
  const [worst] = refused.toSorted((one, other) => other.count - one.count)
  return {
    settled: total(groups.map(({ count }) => count)),
    sent: total(groups.map(({ sent }) => sent)),
    delivered: total(groups.map(({ delivered }) => delivered)),
    bounced: total(of('BOUNCED').map(({ count }) => count)),
    complained: total(of('COMPLAINED').map(({ count }) => count)),
    failed: total(of('FAILED').map(({ count }) => count)),
    skipped: byReason(of('SKIPPED')),
    categories: byReason(of('BOUNCED')),
    resent: total(groups.map(({ resent }) => resent)),
    recent: total(groups.map(({ recent }) => recent)),
    worst: worst?.reason ?? '',
  }
}

/** A statement that counts the emails of a campaign sent in each hour. */
export function sentByHour({ organization }: Call, campaignId: string) {
  return sql`select sent_hour as hour, sum(emails) as sent from campaign_tally
    where organization_id = ${organization.id} and campaign_id = ${campaignId} and sent_hour > '-infinity'
    group by sent_hour having sum(emails) <> 0`
}

function byReason(groups: readonly Group[]): Record<string, number> {
  return Object.fromEntries(groups.map(({ reason, count }) => [reason, count]))
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
