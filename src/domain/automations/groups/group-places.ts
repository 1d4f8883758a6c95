import { type RawBuilder, sql } from 'kysely'

import type { Duration } from '../../../../schema/automation-parts.ts'
import type { ConflictStrategy } from '../../../../schema/workflow-group.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, column, execute, rows } from '../../../database.ts'
import { IS_ACTIVE } from '../runs/active.ts'

/** A subscriber's place in a group: one of their runs holds it, others may queue for it. Ids are UUIDs. */
export type Place = { groupId: string; subscriberId: string }

/** The rules by which places of a group are given. */
export type GroupRules = { id: string; conflictStrategy: ConflictStrategy; maxQueueAge: Duration | null }

/** The holder of a place, and the number of queued runs that may begin. */
export type Occupation = { holder: Holder | null; queued: number }
/** The id (UUID) of the run that holds a place, and the priority of its version. */
export type Holder = { runId: string; priority: number }

/** The decision about a new run. PREEMPTS means that it takes the place of the holder. */
export type Turn = 'HOLDS' | 'QUEUES' | 'SKIPPED' | 'PREEMPTS'

/** SQL condition: a queued `run` may begin because its workflow is ACTIVE. */
export const MAY_BEGIN = sql<boolean>`exists (select from automation where automation.organization_id = run.organization_id
  and automation.id = run.automation_id and automation.status = 'ACTIVE')`

/** Reads the groups with these ids and locks them against changes until the end of the transaction. */
export async function lockGroups(
  { em, organization }: Call,
  groupIds: readonly string[],
): Promise<Map<string, GroupRules>> {
  const found = await rows<GroupRules>(
    em,
    sql`select id, conflict_strategy as "conflictStrategy", max_queue_age as "maxQueueAge" from automation_group
      where organization_id = ${organization.id} and id = any(${array([...new Set(groupIds)], 'uuid')})
      order by id for key share`,
  )
  return new Map(found.map((group) => [group.id, group]))
}

/**
 * Locks these places until the end of the transaction, so that no other transaction gives them away. In the lock order,
 * places come after automations and subscribers and before runs.
 */
export async function lockPlaces({ em, organization }: Call, places: readonly Place[]): Promise<void> {
  if (places.length === 0) return
  await execute(
    em,
    sql`insert into automation_group_place as place (organization_id, group_id, subscriber_id)
      select distinct ${organization.id}::uuid, asked.group_id, asked.subscriber_id
      from ${placeRows(places)} as asked (group_id, subscriber_id) order by 2, 3
      on conflict (organization_id, group_id, subscriber_id) do update set decisions = place.decisions + 1`,
  )
}

/** Reads who holds these places. The caller has called `lockPlaces`, so the answer cannot change. */
export async function readPlaces(
  { em, organization }: Call,
  places: readonly Place[],
): Promise<Map<string, Occupation>> {
  const found = await rows<Place & Holder & { isQueued: boolean }>(
    em,
    sql`select run.id as "runId", run.group_id as "groupId", run.subscriber_id as "subscriberId",
        run.queued_at is not null as "isQueued",
        coalesce((version.definition #>> '{settings,priority}')::int, 50) as priority
      from (select distinct * from ${placeRows(places)} as place (group_id, subscriber_id)) as asked
      join automation_run run on run.organization_id = ${organization.id} and run.group_id = asked.group_id
        and run.subscriber_id = asked.subscriber_id and run.${IS_ACTIVE} and (run.queued_at is null or ${MAY_BEGIN})
      join automation_version version
        on version.organization_id = run.organization_id and version.id = run.version_id`,
  )
  const occupied = new Map<string, Occupation>()
  for (const { isQueued, runId, priority, ...place } of found) {
    const occupation = occupied.get(placeKey(place)) ?? { holder: null, queued: 0 }
    occupied.set(placeKey(place), occupation)
    if (isQueued) occupation.queued += 1
    else occupation.holder = { runId, priority }
  }
  return occupied
}

/** Decides about a new run in a place (decisions, section 6). Of equal priorities, the holder stays. */
export function decideTurn(
  strategy: ConflictStrategy,
  { holder, queued }: Occupation,
  priority: number,
): Turn {
  if (strategy === 'QUEUE') return holder || queued > 0 ? 'QUEUES' : 'HOLDS'
  if (!holder) return 'HOLDS'
  if (strategy === 'LAST_WINS') return 'PREEMPTS'
  return strategy === 'PRIORITY' && priority > holder.priority ? 'PREEMPTS' : 'SKIPPED'
}

/** Returns a map key for a place. */
export function placeKey({ groupId, subscriberId }: Place): string {
  return `${groupId}/${subscriberId}`
}

/** Makes a SQL table of places (group_id, subscriber_id). */
export function placeRows(places: readonly Place[]): RawBuilder<unknown> {
  return sql`unnest(
    ${column(places, ({ groupId }) => groupId, 'uuid')},
    ${column(places, ({ subscriberId }) => subscriberId, 'uuid')}
  )`
}
