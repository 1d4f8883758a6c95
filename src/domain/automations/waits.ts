import { type RawBuilder, sql } from 'kysely'

import type { Where } from '../../../schema/audience.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, rows } from '../../database.ts'
import { compileWhere } from '../audience/match.ts'
import type { RecordedEvent } from '../event-rows.ts'

/** Stands in place of an event type where a run waits for filters to hold. */
export const CONDITION_TYPE = ''

/** What an event does to a run: ends its wait, or ends it by the exit rule of this id. */
export type Woken = { runId: string; ruleId: string | null }

type Waiting = { runId: string; ruleId: string; where: Where[]; positions: number[] }

/**
 * The runs that one of these events moves on or ends. With `forRuns` each event is for the run at its own place of that
 * list only.
 */
export async function findWoken(
  call: Call,
  events: readonly RecordedEvent[],
  forRuns?: readonly string[],
): Promise<Woken[]> {
  const waiting = await rows<Waiting>(
    call.em,
    sql`select wait.run_id as "runId", wait.rule_id as "ruleId", coalesce(wait.conditions -> 'where', '[]') as "where",
        array_agg(event.position::int) as positions
      from ${eventRows(events)} as event (subscriber_id, type, data, position)
      join run_wait wait on wait.organization_id = ${call.organization.id}
        and wait.subscriber_id = event.subscriber_id and wait.event_type = event.type
        ${forRuns ? sql`and wait.run_id = (${array(forRuns, 'uuid')})[event.position]` : sql``}
      group by wait.run_id, wait.rule_id, wait.conditions`,
  )
  const woken: Woken[] = []
  for (const { where, runs, positions } of byCondition(waiting)) {
    const matching = await matchingEvents(call, events, positions, where)
    for (const { runId, ruleId, positions: own } of runs) {
      if (own.some((position) => matching.has(position))) woken.push({ runId, ruleId: ruleId || null })
    }
  }
  return woken
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
