import { type RawBuilder, sql } from 'kysely'

import type { Where } from '../../../schema/audience.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, execute, rows } from '../../database.ts'
import { compileWhere } from '../audience/match.ts'
import type { RecordedEvent } from '../event-rows.ts'
import { type RunKey, writeNudges } from './nudge.ts'

type Waiting = { runId: string; where: Where[]; positions: number[] }

/**
 * Runs that waited for one of these events go on: their row says so first, then they are nudged. With `forRuns` each
 * event is for the run at its own place of that list only.
 */
export async function endEventWaits(
  call: Call,
  events: readonly RecordedEvent[],
  forRuns?: readonly string[],
): Promise<void> {
  if (events.length === 0) return
  const { em, organization } = call
  const waiting = await rows<Waiting>(
    em,
    sql`select wait.run_id as "runId", coalesce(wait.conditions -> 'where', '[]') as "where",
        array_agg(event.position::int) as positions
      from ${eventRows(events)} as event (subscriber_id, type, data, position)
      join run_wait wait on wait.organization_id = ${organization.id}
        and wait.subscriber_id = event.subscriber_id and wait.event_type = event.type
        ${forRuns ? sql`and wait.run_id = (${array(forRuns, 'uuid')})[event.position]` : sql``}
      group by wait.run_id, wait.conditions`,
  )
  const woken: string[] = []
  for (const { where, runs, positions } of byCondition(waiting)) {
    const matching = await matchingEvents(call, events, positions, where)
    for (const run of runs)
      if (run.positions.some((position) => matching.has(position))) woken.push(run.runId)
  }
  if (woken.length === 0) return
  const keys = await rows<RunKey>(
    em,
    sql`with locked as (
        select id from automation_run where organization_id = ${organization.id} and id = any(${array(woken, 'uuid')})
          and status = 'WAITING' and wait_kind = 'EVENT' order by id for update)
      update automation_run run set wake_reason = coalesce(run.wake_reason, 'EVENT'), wake_at = now()
      from locked where run.organization_id = ${organization.id} and run.id = locked.id
      returning run.automation_id as "automationId", run.subscriber_id as "subscriberId", run.number`,
  )
  await execute(
    em,
    sql`delete from run_wait where organization_id = ${organization.id} and run_id = any(${array(woken, 'uuid')})`,
  )
  await writeNudges(em, organization.id, keys)
}

/** The positions of the events whose data fulfil the conditions, in one query. */
export async function matchingEvents(
  call: Call,
  events: readonly RecordedEvent[],
  positions: Iterable<number>,
  where: readonly Where[],
): Promise<Set<number>> {
  const asked = [...new Set(positions)]
  if (where.length === 0 || asked.length === 0) return new Set(asked)
  const chosen = asked.map((position) => events[position - 1]?.data ?? null)
  const holds = compileWhere(sql`event.data`, where, call.organization.timezone)
  const found = await rows<{ position: number }>(
    call.em,
    sql`select event.position from unnest(${array(chosen, 'jsonb')}, ${array(asked, 'int')}) as event (data, position)
      where ${holds}`,
  )
  return new Set(found.map(({ position }) => position))
}

/** Events as rows (subscriber_id, type, data, position from 1), for joins. */
function eventRows(events: readonly RecordedEvent[]): RawBuilder<unknown> {
  return sql`unnest(
    ${array(
      events.map(({ subscriberId }) => subscriberId),
      'uuid',
    )},
    ${array(
      events.map(({ type }) => type),
      'text',
    )},
    ${array(
      events.map(({ data }) => data),
      'jsonb',
    )}) with ordinality`
}

function byCondition(waiting: readonly Waiting[]) {
  const groups = new Map<string, { where: Where[]; runs: Waiting[]; positions: Set<number> }>()
  for (const run of waiting) {
    const key = JSON.stringify(run.where)
    const group = groups.get(key) ?? { where: run.where, runs: [], positions: new Set<number>() }
    groups.set(key, group)
    group.runs.push(run)
    for (const position of run.positions) group.positions.add(position)
  }
  return groups.values()
}
