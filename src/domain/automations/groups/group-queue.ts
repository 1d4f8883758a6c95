import { type RawBuilder, sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { type EntityManager, rows } from '../../../database.ts'
import type { RecordedEvent } from '../../event-rows.ts'
import { noteSegmentChanges } from '../../segments/notes.ts'
import { type StartingRun, startRuns } from '../entry/run-starts.ts'
import { IS_ACTIVE } from '../runs/active.ts'
import { recordDecisions } from '../runs/decisions.ts'
import { lockPlaces, MAY_BEGIN, type Place, placeRows } from './group-places.ts'

const PAGE = 500

/**
 * Starts the longest waiting queued run in each of these places that no run holds. Runs that waited longer than the
 * group allows become SKIPPED, and runs of paused workflows are passed over until those are active again. Returns
 * events that other runs may wait for, which `freePlaces` passes to `endEventWaits`.
 */
export async function releasePlaces(call: Call, places: readonly Place[]): Promise<RecordedEvent[]> {
  if (places.length === 0) return []
  await lockPlaces(call, places)
  await expireQueued(call, places)
  return await beginQueued(
    call,
    sql`select distinct on (run.group_id, run.subscriber_id) run.id, run.automation_id, run.version_id
      from (select distinct * from ${placeRows(places)} as place (group_id, subscriber_id)) as asked
      join automation_run run on run.organization_id = ${call.organization.id} and run.group_id = asked.group_id
        and run.subscriber_id = asked.subscriber_id and run.status = 'QUEUED' and run.queued_at is not null
        and ${MAY_BEGIN}
      where not exists (select from automation_run holder where holder.organization_id = run.organization_id
        and holder.group_id = run.group_id and holder.subscriber_id = run.subscriber_id
        and holder.queued_at is null and holder.${IS_ACTIVE})
      order by run.group_id, run.subscriber_id, run.queued_at, run.id`,
  )
}

/**
 * Starts all queued runs of an automation that has just left its group. If the automation is paused, they are held at
 * their first turn. Returns events that other runs may wait for, for `endEventWaits`.
 */
export async function beginUngrouped(call: Call, automationId: string): Promise<RecordedEvent[]> {
  return await beginQueued(
    call,
    sql`select id, automation_id, version_id from automation_run where organization_id = ${call.organization.id}
      and automation_id = ${automationId} and status = 'QUEUED' and queued_at is not null order by id`,
  )
}

/** Starts queued runs. `chosen` selects their rows (id, automation_id, version_id). */
async function beginQueued(call: Call, chosen: RawBuilder<unknown>): Promise<RecordedEvent[]> {
  const begun = await rows<StartingRun>(
    call.em,
    sql`with next as (${chosen})
      update automation_run run
      set queued_at = null, queue_expires_at = null, wake_at = now()
      from next
      join automation on automation.organization_id = ${call.organization.id} and automation.id = next.automation_id
      join automation_version version
        on version.organization_id = automation.organization_id and version.id = next.version_id
      where run.organization_id = ${call.organization.id} and run.id = next.id
      returning run.id, run.automation_id as "automationId", automation.name as "automationName",
        version.number as "versionNumber", run.subscriber_id as "subscriberId", run.number`,
  )
  return begun.length > 0 ? await startRuns(call, begun) : []
}

async function expireQueued(call: Call, places: readonly Place[]): Promise<void> {
  const expired = await rows<{ subscriberId: string; automationId: string; runId: string; stepId: string }>(
    call.em,
    sql`with expired as (
        update automation_run run
        set status = 'SKIPPED', exit_reason = 'EXPIRED', ended_at = now(), queued_at = null
        from ${placeRows(places)} as asked (group_id, subscriber_id)
        where run.organization_id = ${call.organization.id} and run.group_id = asked.group_id
          and run.subscriber_id = asked.subscriber_id and run.status = 'QUEUED' and run.queued_at is not null
          and run.queue_expires_at <= now()
        returning run.subscriber_id, run.automation_id, run.id, run.current_step_id
      ), unwatched as (
        delete from run_wait wait using expired
        where wait.organization_id = ${call.organization.id} and wait.run_id = expired.id
      ), aimless as (
        delete from goal_watch watch using expired
        where watch.organization_id = ${call.organization.id} and watch.run_id = expired.id)
      select subscriber_id as "subscriberId", automation_id as "automationId", id as "runId",
        current_step_id as "stepId" from expired`,
  )
  await recordDecisions(
    call,
    expired.map((run) => ({ ...run, action: 'ENTRY_REFUSED', reason: 'EXPIRED' })),
  )
  await noteSegmentChanges(
    call,
    expired.map(({ subscriberId }) => subscriberId),
  )
}

/** Finds up to `PAGE` places with a queued run that has expired, or that could begin because no run holds the place. */
export async function findStalePlaces(
  em: EntityManager,
): Promise<{ organizationId: string; places: Place[] }[]> {
  const found = await rows<Place & { organizationId: string }>(
    em,
    sql`select distinct run.organization_id as "organizationId", run.group_id as "groupId",
        run.subscriber_id as "subscriberId"
      from automation_run run where run.status = 'QUEUED' and run.queued_at is not null
        and (run.queue_expires_at <= now() or ${MAY_BEGIN} and not exists (select from automation_run holder
          where holder.organization_id = run.organization_id and holder.group_id = run.group_id
            and holder.subscriber_id = run.subscriber_id and holder.queued_at is null and holder.${IS_ACTIVE}))
      limit ${PAGE}`,
  )
  return Object.entries(Object.groupBy(found, ({ organizationId }) => organizationId)).map(
    ([organizationId, places = []]) => ({ organizationId, places }),
  )
}
