import { sql } from 'kysely'

import type { OrganizationStats } from '../../../schema/organization.ts'
import type { SubscriberStatus } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { IS_ACTIVE } from '../automations/runs/active.ts'
import { statusCounts } from '../subscribers/queries.ts'

type Counts = Omit<OrganizationStats, 'name' | 'plan' | 'subscribers' | 'subscribersByStatus'> & {
  byStatus: { status: SubscriberStatus; count: number }[]
}

/** Returns the current statistics of an organization, in one statement whose counts all use an index. */
export async function readStats({ em, organization }: Call): Promise<OrganizationStats> {
  const own = sql`organization_id = ${organization.id}`
  const found = await row<Counts>(
    em,
    sql`select
      (select coalesce(jsonb_agg(statuses), '[]') from (
        select status, count(*) as count from subscriber where ${own} group by status) as statuses) as "byStatus",
      (select count(*)::int from tag where ${own}) as tags,
      (select count(*)::int from segment where ${own}) as segments,
      (select count(*)::int from custom_field where ${own}) as "customFields",
      (select count(*)::int from campaign where ${own} and kind = 'BROADCAST') as campaigns,
      (select count(*)::int from automation where ${own}) as workflows,
      (select count(*)::int from automation where ${own} and status = 'ACTIVE') as "activeWorkflows",
      (select count(*)::int from automation_run where ${own} and ${IS_ACTIVE}) as "activeRuns",
      (select jsonb_build_object('total', count(*),
          'delivered', count(*) filter (where delivered_at is not null),
          'opened', count(*) filter (where opened_at is not null),
          'clicked', count(*) filter (where clicked_at is not null),
          'bounced', count(*) filter (where status = 'BOUNCED'),
          'complained', count(*) filter (where status = 'COMPLAINED'))
        from message where ${own} and id >= id_floor(now() - interval '30 days') and status <> 'SKIPPED'
          and class <> 'TEST') as "emailsLast30Days",
      (select jsonb_build_object('limit', email_limit(${organization.id}), 'used', coalesce(
          case when email_limit(${organization.id}) is not null then emails_counted(${organization.id}) end,
          (select count(*)::int from message where ${own} and class <> 'TEST'
            and id >= id_floor(quota_month()::timestamp at time zone 'utc'))))) as "emailsThisMonth"`,
  )
  if (!found) throw new Error('a statement of counts gave no row')
  const { byStatus, ...counts } = found
  return {
    name: organization.name,
    plan: organization.plan,
    subscribers: byStatus.reduce((sum, { count }) => sum + count, 0),
    subscribersByStatus: statusCounts(byStatus),
    ...counts,
  }
}
