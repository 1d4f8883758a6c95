import { type RawBuilder, sql } from 'kysely'
import { Temporal } from 'temporal-polyfill'

import {
  GROWTH_BUCKETS,
  type GrowthInterval,
  type SubscriberGrowth,
  type SubscriberStats,
} from '../../../schema/statistics.ts'
import type { SubscriberStatus } from '../../../schema/values.ts'
import { refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { type EntityManager, rows } from '../../database.ts'
import { instant } from '../audience/dates.ts'
import { readMoment } from '../audience/moment.ts'
import { idsAround } from '../event-rows.ts'
import { statusCounts } from './queries.ts'

type Range = { from?: string | undefined; to?: string | undefined }
type Period = { from: Date; to: Date }
type Changes = Omit<SubscriberGrowth['buckets'][number], 'date' | 'start' | 'total'>

const UNIT = { day: 'days', week: 'weeks', month: 'months' } as const
const DEFAULT_LENGTH = { day: 30, week: 12, month: 12 } as const
/** The key of the single bucket that covers a whole period. */
const WHOLE = '1970-01-01'
const NOTHING: Changes = { created: 0, subscribed: 0, unsubscribed: 0, bounced: 0, complained: 0, net: 0 }

/** Returns growth in calendar buckets of the organization's time zone, including empty buckets. */
export async function readGrowth(
  call: Call,
  { interval, ...range }: Range & { interval: GrowthInterval },
): Promise<SubscriberGrowth> {
  const { organization, em } = call
  const { timezone } = organization
  const period = readPeriod(call, range, interval)
  const starts = bucketStarts(period, interval, timezone)
  const bucket = (at: RawBuilder<unknown>) => sql`date_trunc(${interval}, ${at} at time zone ${timezone})`
  const { before, byDate } = await readChanges(em, organization.id, period, bucket)
  let total = before
  const buckets = starts.map((start) => {
    const date = start.toPlainDate().toString()
    const changes = byDate.get(date) ?? NOTHING
    total += changes.created
    return { date, start: new Date(start.epochMilliseconds).toISOString(), ...changes, total }
  })
  return { from: period.from.toISOString(), to: period.to.toISOString(), interval, timezone, buckets }
}

/** Returns subscriber counts by status, and the changes of a period (by default the last 30 days). */
export async function readSubscriberStats(call: Call, range: Range): Promise<SubscriberStats> {
  const { em, organization } = call
  const period = readPeriod(call, range, 'day')
  const statuses = await rows<{ status: SubscriberStatus; count: number }>(
    em,
    sql`select status, count(*)::int as count from subscriber where organization_id = ${organization.id}
      group by status`,
  )
  const { before, byDate } = await readChanges(em, organization.id, period, () => sql`${WHOLE}::timestamp`)
  const changes = byDate.get(WHOLE) ?? NOTHING
  return {
    total: statuses.reduce((sum, { count }) => sum + count, 0),
    byStatus: statusCounts(statuses),
    period: {
      from: period.from.toISOString(),
      to: period.to.toISOString(),
      ...changes,
      growthRate: before === 0 ? null : Math.round((changes.net / before) * 10_000) / 100,
    },
  }
}

/** Returns the changes of non-empty buckets by date, and the number of subscribers created before the period. */
async function readChanges(
  em: EntityManager,
  organizationId: string,
  { from, to }: Period,
  bucket: (at: RawBuilder<unknown>) => RawBuilder<unknown>,
): Promise<{ before: number; byDate: Map<string, Changes> }> {
  const [start, end] = [instant(from.getTime()), instant(to.getTime())]
  const found = await rows<Changes & { date: string | null }>(
    em,
    sql`with people as (
        select case when created_at >= ${start} then ${bucket(sql`created_at`)} end as date, count(*) as created
        from subscriber where organization_id = ${organizationId} and created_at < ${end} group by 1
      ), changes as (
        select ${bucket(sql`created_at`)} as date, count(*) filter (where type = 'SUBSCRIBED') as subscribed,
          count(*) filter (where type = 'UNSUBSCRIBED') as unsubscribed,
          count(distinct subscriber_id) filter (where type = 'EMAIL_BOUNCED') as bounced,
          count(distinct subscriber_id) filter (where type = 'EMAIL_COMPLAINED') as complained
        from subscriber_event
        where organization_id = ${organizationId}
          and type in ('SUBSCRIBED', 'UNSUBSCRIBED', 'EMAIL_BOUNCED', 'EMAIL_COMPLAINED')
          and ${idsAround(start, end)} and created_at >= ${start} and created_at < ${end} group by 1
      )
      select date::date::text as date, coalesce(created, 0)::int as created, coalesce(subscribed, 0)::int as subscribed,
        coalesce(unsubscribed, 0)::int as unsubscribed, coalesce(bounced, 0)::int as bounced,
        coalesce(complained, 0)::int as complained,
        (coalesce(subscribed, 0) - coalesce(unsubscribed, 0))::int as net
      from people full join changes using (date)`,
  )
  const byDate = new Map(found.map(({ date, ...changes }) => [date ?? '', changes]))
  return { before: byDate.get('')?.created ?? 0, byDate }
}

function readPeriod({ organization, now }: Call, range: Range, interval: GrowthInterval): Period {
  const { timezone } = organization
  const to = range.to === undefined ? now : readBound(range.to, 'to', timezone)
  if (range.from === undefined) return { from: defaultStart(to, interval, timezone), to }
  const from = readBound(range.from, 'from', timezone)
  if (from >= to) refuse('from', 'must be before to; exchange them, or leave to out for now.')
  return { from, to }
}

/** Reads a bound. A `to` without a time means the end of that day. */
function readBound(text: string, path: 'from' | 'to', timezone: string): Date {
  const moment = readMoment(text, timezone)
  if (!moment) refuse(path, 'must be an ISO 8601 date, such as "2025-01-31" or "2025-01-31T09:00:00Z".')
  return new Date(path === 'to' ? (moment.end ?? moment.start) : moment.start)
}

/** Returns the start of the default period: whole buckets, including the one that contains `to`. */
function defaultStart(to: Date, interval: GrowthInterval, timezone: string): Date {
  const last = bucketOf(new Date(to.getTime() - 1), interval, timezone)
  const first = last.subtract({ [UNIT[interval]]: DEFAULT_LENGTH[interval] - 1 })
  return new Date(first.toZonedDateTime(timezone).epochMilliseconds)
}

/** Returns the midnights at which buckets begin; the first may be before the period. */
function bucketStarts(
  { from, to }: Period,
  interval: GrowthInterval,
  timezone: string,
): Temporal.ZonedDateTime[] {
  const first = bucketOf(from, interval, timezone)
  const starts: Temporal.ZonedDateTime[] = []
  for (let index = 0; ; index++) {
    const start = first.add({ [UNIT[interval]]: index }).toZonedDateTime(timezone)
    if (start.epochMilliseconds >= to.getTime()) return starts
    if (starts.length === GROWTH_BUCKETS) {
      refuse('interval', `cuts the period into more than ${GROWTH_BUCKETS} buckets; take a longer one.`)
    }
    starts.push(start)
  }
}

function bucketOf(at: Date, interval: GrowthInterval, timezone: string): Temporal.PlainDate {
  const instant = Temporal.Instant.fromEpochMilliseconds(at.getTime())
  const day = instant.toZonedDateTimeISO(timezone).toPlainDate()
  if (interval === 'day') return day
  return interval === 'week' ? day.subtract({ days: day.dayOfWeek - 1 }) : day.with({ day: 1 })
}
