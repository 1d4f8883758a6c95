import { sql } from 'kysely'

import type { Filter } from '../../../schema/audience.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, execute, rows } from '../../database.ts'
import { audiencePredicate } from '../audience/match.ts'

/** A segment whose members are stored because a trigger reacts to entering or leaving it. */
export type WatchedSegment = { id: string; filters: Filter[] }

/** The segments that triggers of published automations name. Archived automations start no runs and need none. */
const WANTED = sql`select distinct segment.organization_id, segment.id as segment_id from automation_trigger trigger
  join automation on automation.organization_id = trigger.organization_id and automation.id = trigger.automation_id
  join segment on segment.organization_id = trigger.organization_id and type_id('seg', segment.id) = trigger.match_key
  where trigger.type in ('SEGMENT_ENTERED', 'SEGMENT_EXITED') and automation.status in ('ACTIVE', 'PAUSED')
    and automation.published_version_id is not null`

/**
 * Updates the set of watched segments to match the triggers; call it under lockSegments. The first members of a newly
 * watched segment are stored silently: they do not count as entering.
 */
export async function syncWatchedSegments(call: Call): Promise<void> {
  const { em, organization } = call
  await execute(
    em,
    sql`delete from watched_segment watched where watched.organization_id = ${organization.id}
      and watched.segment_id not in (select segment_id from (${WANTED}) as wanted
        where wanted.organization_id = ${organization.id})`,
  )
  const added = await rows<WatchedSegment>(
    em,
    sql`with added as (
        insert into watched_segment (organization_id, segment_id)
        select organization_id, segment_id from (${WANTED}) as wanted
        where wanted.organization_id = ${organization.id} on conflict do nothing returning segment_id)
      select segment.id, segment.filters from added
      join segment on segment.organization_id = ${organization.id} and segment.id = added.segment_id`,
  )
  for (const segment of added) await takeMembers(call, segment)
}

/**
 * Stores the current members of these watched segments, or of all, after a change of their filters or of the time zone,
 * silently; call it under lockSegments. When the filters have a missing reference, the members stay as they were.
 */
export async function retakeMembers(call: Call, segmentIds: readonly string[] | null = null): Promise<void> {
  for (const segment of await watchedSegments(call, segmentIds)) {
    try {
      await takeMembers(call, segment)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
    }
  }
}

/** Returns the watched segments of the organization, or those among the given uuids. */
export async function watchedSegments(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  among: readonly string[] | null = null,
): Promise<WatchedSegment[]> {
  return await rows<WatchedSegment>(
    em,
    sql`select segment.id, segment.filters from watched_segment watched
      join segment on segment.organization_id = watched.organization_id and segment.id = watched.segment_id
      where watched.organization_id = ${organization.id}
        ${among === null ? sql`` : sql`and segment.id = any(${array(among, 'uuid')})`}
      order by segment.id`,
  )
}

/** Stores all members, and requests a recheck, which finds changes by concurrent transactions. */
async function takeMembers({ em, organization }: Call, { id, filters }: WatchedSegment): Promise<void> {
  const predicate = await audiencePredicate(em, { organizationId: organization.id }, filters)
  await execute(
    em,
    sql`delete from segment_member where organization_id = ${organization.id} and segment_id = ${id}`,
  )
  await execute(
    em,
    sql`insert into segment_member (organization_id, segment_id, subscriber_id)
      select s.organization_id, ${id}::uuid, s.id from subscriber s
      where s.organization_id = ${organization.id} and ${predicate} order by s.id`,
  )
  await execute(
    em,
    sql`update watched_segment set recheck_after = pg_current_xact_id()::text, recheck_at = now()
      where organization_id = ${organization.id} and segment_id = ${id}`,
  )
}
