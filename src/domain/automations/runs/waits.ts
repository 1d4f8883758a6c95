import { type RawBuilder, sql } from 'kysely'

import type { Where } from '../../../../schema/audience.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, column, rows } from '../../../database.ts'
import { judge } from '../../audience/judge.ts'
import { zonedScope } from '../../audience/references.ts'
import type { RecordedEvent } from '../../event-rows.ts'
import { IS_ENTERED_BEFORE } from './since-entry.ts'

/** The `event_type` of a `run_wait` row of a run that waits for filters. */
export const CONDITION_TYPE = ''

/** A run that an event affects: the event ends the run's wait or, with `ruleId`, ends the run by this exit rule. */
export type Woken = { runId: string; ruleId: string | null }

type Waiting = { runId: string; ruleId: string; where: Where[]; positions: number[] }

/**
 * Finds the runs that one of these events wakes or ends. With `forRuns`, `events[i]` counts only for the run
 * `forRuns[i]`.
 */
export async function findWoken(
  call: Call,
  events: readonly RecordedEvent[],
  forRuns?: readonly string[],
): Promise<Woken[]> {
  const waiting = await rows<Waiting>(
    call.em,
    sql`select wait.run_id as "runId", wait.rule_id as "ruleId", coalesce(wait.conditions -> 'where', '[]') as "where",
        array_agg((event.position - 1)::int) as positions
      from ${eventRows(events)} as event (subscriber_id, type, data, position)
      join run_wait wait on wait.organization_id = ${call.organization.id}
        and wait.subscriber_id = event.subscriber_id and wait.event_type = event.type
      join automation_run run on run.organization_id = wait.organization_id and run.id = wait.run_id
        and ${IS_ENTERED_BEFORE}
        ${forRuns ? sql`and wait.run_id = (${array(forRuns, 'uuid')})[event.position]` : sql``}
      group by wait.run_id, wait.rule_id, wait.conditions`,
  )
  const meant = await eventsMeant(call, events, waiting)
  return waiting.flatMap(({ runId, ruleId }, index) =>
    meant[index] === undefined ? [] : [{ runId, ruleId: ruleId || null }],
  )
}

/**
 * Returns, for each item of `asking`, the first of the events at its `positions` (from 0) whose data meet `where`.
 * Items with equal conditions are evaluated once, and many conditions in one statement.
 */
export async function eventsMeant(
  call: Call,
  events: readonly RecordedEvent[],
  asking: readonly { where: readonly Where[]; positions: readonly number[] }[],
): Promise<(RecordedEvent | undefined)[]> {
  const groups = Map.groupBy(asking, ({ where }) => JSON.stringify(where))
  const questions = [...groups.values()].map((group) => ({
    automationId: '',
    where: group[0]?.where ?? [],
    filters: [],
    places: [...new Set(group.flatMap(({ positions }) => positions))],
  }))
  const verdicts = await judge(call.em, zonedScope(call.organization), events, questions)
  const meant = new Map([...groups.keys()].map((key, index) => [key, new Set(verdicts[index]?.meant)]))
  return asking.map(({ where, positions }) => {
    const fulfilling = meant.get(JSON.stringify(where))
    const [first] = positions
      .filter((position) => fulfilling?.has(position))
      .toSorted((one, other) => one - other)
    return first === undefined ? undefined : events[first]
  })
}

/** Makes a SQL table of events (subscriber_id, type, data, position from 1) for joins. */
function eventRows(events: readonly RecordedEvent[]): RawBuilder<unknown> {
  return sql`unnest(
    ${column(events, ({ subscriberId }) => subscriberId, 'uuid')},
    ${column(events, ({ type }) => type, 'text')},
    ${column(events, ({ data }) => data, 'jsonb')}) with ordinality`
}
