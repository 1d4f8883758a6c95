import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { type EntityManager, execute, row, rows } from '../../database.ts'
import { changesWithTime } from '../audience/dates.ts'
import { audiencePredicate } from '../audience/match.ts'
import { loadReferences, placesOf } from '../audience/references.ts'
import { misplaced } from './changes.ts'
import { type WatchedSegment, watchedSegments } from './watch.ts'

const PAGE = 20_000
const LEASE = sql`interval '1 minute'`

/** A segment whose whole audience must be compared; `after` is the transaction id that requested it. */
export type Recheck = { organizationId: string; segmentId: string; after: string }

/**
 * Leases the next due recheck of all organizations for a minute. It is due when all transactions that ran concurrently
 * with the request have ended. A request from before a restore may have a transaction id that the new server has not
 * reached; it is due after a minute. An unfinished recheck is leased again.
 */
export async function claimRecheck(em: EntityManager): Promise<Recheck | null> {
  return await row<Recheck>(
    em,
    sql`with due as (
        select organization_id, segment_id from watched_segment
        where recheck_at <= now() and (recheck_after::xid8 < pg_snapshot_xmin(pg_current_snapshot())
          or recheck_after::xid8 >= pg_snapshot_xmax(pg_current_snapshot()) and recheck_at < now() - ${LEASE})
        order by recheck_at limit 1 for update skip locked)
      update watched_segment watched set recheck_at = now() + ${LEASE} from due
      where watched.organization_id = due.organization_id and watched.segment_id = due.segment_id
      returning watched.organization_id as "organizationId", watched.segment_id as "segmentId",
        watched.recheck_after as after`,
  )
}

/** Ends a recheck, unless a newer one was requested meanwhile. */
export async function finishRecheck(
  { em, organization }: Call,
  { segmentId, after }: Recheck,
): Promise<void> {
  await execute(
    em,
    sql`update watched_segment set recheck_after = null, recheck_at = null
      where organization_id = ${organization.id} and segment_id = ${segmentId} and recheck_after = ${after}`,
  )
}

/**
 * Compares one page of subscribers with the members of a watched segment, and records the misplaced ones as changed for
 * applySegmentChanges. Subscribers with a pending change are skipped, so that a silent change stays silent. Returns the
 * last id of the page, or null after the last page.
 */
export async function noteMisplaced(
  { em, organization }: Call,
  segmentId: string,
  after: string,
): Promise<string | null> {
  const [segment] = await watchedSegments({ em, organization }, [segmentId])
  if (!segment) return null
  const scope = { organizationId: organization.id }
  const predicate = await audiencePredicate(em, scope, segment.filters, {}, { single: true })
  const end = await row<{ id: string }>(
    em,
    sql`select id from subscriber where organization_id = ${organization.id} and id > ${after}
      order by id offset ${PAGE - 1} limit 1`,
  )
  const { from, where } = misplaced(organization.id, segment.id, predicate)
  await execute(
    em,
    sql`insert into segment_change (organization_id, subscriber_id)
      select s.organization_id, s.id from ${from}
      where ${where} and s.id > ${after} ${end ? sql`and s.id <= ${end.id}` : sql``}
        and not exists (select from segment_change change
          where change.organization_id = ${organization.id} and change.subscriber_id = s.id)
      order by s.id`,
  )
  return end?.id ?? null
}

/** Returns the organizations that watch any segment. */
export async function watchingOrganizations(em: EntityManager): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`select distinct organization_id as id from watched_segment order by 1`,
  )
  return found.map(({ id }) => id)
}

/** Returns the watched segments whose members can change as time passes, also through nested segments. */
export async function segmentsOfTime(call: Call): Promise<WatchedSegment[]> {
  const found: WatchedSegment[] = []
  for (const segment of await watchedSegments(call)) {
    const scope = { organizationId: call.organization.id }
    const { segments } = await loadReferences(call.em, scope, segment.filters)
    const every = [segment.filters, ...segments.values()].flat()
    if (placesOf(every, '').some(({ leaf }) => changesWithTime(leaf))) found.push(segment)
  }
  return found
}
