import { sql } from 'kysely'

import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, type EntityManager, execute, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { audiencePredicate } from '../audience/match.ts'
import type { Predicate } from '../audience/predicate.ts'
import { reachWatchedGoals } from '../automations/goals/goal-filters.ts'
import { endConditionWaits } from '../automations/runs/conditions.ts'
import { refuseInSilence } from '../automations/triggers/triggers.ts'
import { type NewEvent, recordEvents } from '../events.ts'
import { BULK_PRIORITY } from '../outbox.ts'
import { tryLockSegments } from './lock.ts'
import { type WatchedSegment, watchedSegments } from './watch.ts'

const BATCH = 1_000
const RETRY = sql`interval '1 minute'`

type Change = { subscriberId: string; silent: boolean; depth: number | null }
type Move = { subscriberId: string; entered: boolean }

/** Returns organizations with pending changes. It skips from one organization to the next in the index. */
export async function organizationsWithChanges(em: EntityManager): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`with recursive jump as (
        (select organization_id from segment_change order by organization_id limit 1)
        union all
        select (select next.organization_id from segment_change next
          where next.organization_id > jump.organization_id order by next.organization_id limit 1)
        from jump where jump.organization_id is not null)
      select organization_id as id from jump where organization_id is not null`,
  )
  return found.map(({ id }) => id)
}

/**
 * Takes the oldest changes of the organization, finds who entered or left a watched segment, and lets automations
 * react. Everything is one transaction, so a crash undoes it as a whole and each entry and exit counts once. Returns
 * how many changes it took; 0 also while another process holds the lock.
 */
export async function applySegmentChanges(call: Call): Promise<number> {
  if (!(await tryLockSegments(call))) return 0
  // A change becomes visible together with its cause, so the later statements here see that cause.
  const taken = await rows<Change>(
    call.em,
    sql`select subscriber_id as "subscriberId", silent, depth
      from take_segment_changes(${call.organization.id}, ${BATCH})`,
  )
  if (taken.length === 0) return 0
  const moved: NewEvent[] = []
  const loud = new Set(taken.flatMap(({ subscriberId, silent }) => (silent ? [] : [subscriberId])))
  const people = [...new Set(taken.map(({ subscriberId }) => subscriberId))].toSorted()
  for (const segment of await watchedSegments(call)) {
    const moves = await moveMembers(call, segment, people)
    moved.push(...moves.map(toEvent(segment)))
  }
  await reachWatchedGoals(call, [...loud])
  await endConditionWaits(call, [...loud])
  const priority = taken.length < BATCH ? 0 : BULK_PRIORITY
  const { heard = [], unheard = [] } = Object.groupBy(moved, ({ subscriberId }) =>
    loud.has(subscriberId) ? 'heard' : 'unheard',
  )
  await refuseInSilence(call, unheard)
  for (const [depth, events] of byDepth(taken, heard)) {
    // The events keep the depth of the run that caused them, so that loops through segments end like other loops.
    const actor = depth === null ? call.actor : { ...call.actor, depth }
    await recordEvents({ ...call, actor }, events, { priority })
  }
  return taken.length
}

/** Groups events by the depth of the run that changed the subscriber; null for changes that no run made. */
function byDepth(changes: readonly Change[], events: readonly NewEvent[]): Map<number | null, NewEvent[]> {
  const depths = new Map<string, number>()
  for (const { subscriberId, depth } of changes) {
    if (depth !== null) depths.set(subscriberId, Math.max(depth, depths.get(subscriberId) ?? 0))
  }
  return Map.groupBy(events, ({ subscriberId }) => depths.get(subscriberId) ?? null)
}

/** Returns a query for subscribers whose stored membership differs from whether they match the segment. */
export function misplaced(organizationId: string, segmentId: string, predicate: Predicate) {
  return {
    from: sql`subscriber s left join segment_member m on m.organization_id = s.organization_id
      and m.segment_id = ${segmentId} and m.subscriber_id = s.id`,
    where: sql`s.organization_id = ${organizationId}
      and coalesce(${predicate}, false) <> (m.subscriber_id is not null)`,
  }
}

/** Updates the membership of these people and returns who moved. A segment whose filters fail is rechecked later. */
async function moveMembers(call: Call, segment: WatchedSegment, people: readonly string[]): Promise<Move[]> {
  const { em, organization } = call
  const scope = { organizationId: organization.id }
  try {
    const predicate = await audiencePredicate(em, scope, segment.filters, {}, { single: true })
    const { from, where } = misplaced(organization.id, segment.id, predicate)
    return await rows<Move>(
      em,
      sql`with moved as materialized (
          select s.id, m.subscriber_id is null as entered from ${from}
          where ${where} and s.id = any(${array(people, 'uuid')}) order by s.id for key share of s
        ), come as (
          insert into segment_member (organization_id, segment_id, subscriber_id)
          select ${organization.id}::uuid, ${segment.id}::uuid, id from moved where entered order by id
        ), gone as (
          delete from segment_member member using moved
          where member.organization_id = ${organization.id} and member.segment_id = ${segment.id}
            and member.subscriber_id = moved.id and not moved.entered
        )
        select id as "subscriberId", entered from moved`,
    )
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    await execute(
      em,
      sql`update watched_segment set recheck_after = pg_current_xact_id()::text, recheck_at = now() + ${RETRY}
        where organization_id = ${organization.id} and segment_id = ${segment.id}`,
    )
    return []
  }
}

function toEvent({ id }: WatchedSegment): (move: Move) => NewEvent {
  return ({ subscriberId, entered }) => ({
    subscriberId,
    type: entered ? 'SEGMENT_ENTERED' : 'SEGMENT_EXITED',
    data: { segmentId: encodeId('seg', id) },
  })
}
