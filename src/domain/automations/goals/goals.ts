import { sql } from 'kysely'

import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { RunStatus } from '../../../../schema/values.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, column, execute, row, rows } from '../../../database.ts'
import { compileWhere, eachHolds } from '../../audience/match.ts'
import type { RecordedEvent } from '../../event-rows.ts'
import { loadVersions, type Version } from '../definition/versions.ts'
import type { Listener } from '../runs/exit-rules.ts'
import { IS_ENTERED_BEFORE, isSinceEntry } from '../runs/since-entry.ts'
import { eventsMeant } from '../runs/waits.ts'
import { entryOf, scopeOf, type Settled, type Turn } from '../steps/step.ts'
import { type GoalWindow, valueOf, windowOf } from './goal-window.ts'

/** A goal that a run has reached. `eventId` is null if filters reached it. Run and event ids are UUIDs. */
export type Conversion = {
  runId: string
  goalId: string
  eventId: string | null
  value: number | null
  currency: string | null
}

/** A conversion that was just written, with the state of its run before any effect of the conversion. */
export type Converted = {
  runId: string
  goalId: string
  versionId: string
  status: RunStatus
  waitKind: string | null
  stepId: string | null
}

type Asking = Pick<Turn, 'call' | 'run' | 'version'>

/** The `event_type` of a `goal_watch` row whose goal is reached by filters. */
export const BY_FILTERS = ''

/** SQL for the start of a watch's window: `opens_at`, or if that is null, when the first email of the run was sent. */
export const OPENS = sql`coalesce(watch.opens_at, (select min(m.sent_at) from message m
  where m.organization_id = watch.organization_id and m.run_id = watch.run_id))`
/**
 * SQL condition: the window of a watch is open. It may have opened after the transaction began, so its start is
 * compared with `clock_timestamp()`. Stored times are rounded to milliseconds, possibly upwards, so the clock is
 * rounded too.
 */
export const IS_OPEN = sql`${OPENS} <= clock_timestamp()::timestamptz(3) and ${OPENS} + watch.window_days * interval '24 hours' > now()`

/**
 * Writes a `goal_watch` row for each goal of these runs, so that events and changes find the goals until they expire.
 */
export async function watchGoals(call: Call, runs: readonly Listener[]): Promise<void> {
  const goals = runs.flatMap(({ id, version }) =>
    version.definition.successGoals.map((goal) => ({ runId: id, goal })),
  )
  if (goals.length === 0) return
  await execute(
    call.em,
    sql`insert into goal_watch (organization_id, run_id, goal_id, subscriber_id, event_type, window_days, opens_at, expires_at)
      select run.organization_id, run.id, goal_id, run.subscriber_id, event_type, days, opens,
        opens + days * interval '24 hours'
      from unnest(
        ${column(goals, ({ runId }) => runId, 'uuid')},
        ${column(goals, ({ goal }) => goal.id, 'text')},
        ${column(goals, ({ goal }) => goal.event ?? BY_FILTERS, 'text')},
        ${column(goals, ({ goal }) => goal.windowDays, 'int')},
        ${column(goals, ({ goal }) => goal.countFrom === 'ENTRY', 'boolean')}
      ) as goal (run_id, goal_id, event_type, days, from_entry)
      join automation_run run on run.organization_id = ${call.organization.id} and run.id = goal.run_id
      cross join lateral (select case when from_entry then run.entered_at end as opens) as begun
      on conflict (organization_id, run_id, goal_id) do nothing`,
  )
}

/**
 * Starts to watch the goals of a run in its first turn, unless they are watched already, and catches up on events and
 * changes since the run was entered. Returns the goals that this reaches; for a retried run, also those that it had
 * reached before.
 */
export async function beginGoals(turn: Asking): Promise<SuccessGoal[]> {
  const { call, run, version } = turn
  const goals = version.definition.successGoals
  if (goals.length === 0) return []
  const before = run.failedIn === null ? new Set() : await readReached(turn)
  await watchGoals(call, [{ ...run, version }])
  const found = await catchUp(
    turn,
    goals.filter(({ countFrom }) => countFrom === 'ENTRY'),
  )
  return [...goals.filter(({ id }) => before.has(id)), ...found]
}

/** Returns the ids of the goals that a run has reached. */
async function readReached({ call, run }: Asking): Promise<ReadonlySet<string>> {
  const found = await rows<{ goalId: string }>(
    call.em,
    sql`select goal_id as "goalId" from goal_conversion
      where organization_id = ${call.organization.id} and run_id = ${run.id}`,
  )
  return new Set(found.map(({ goalId }) => goalId))
}

/** Returns the result that ends the run if one of these reached goals has `exitOnReach`, else null. */
export function endOf(goals: readonly SuccessGoal[], result: string): Settled | null {
  const goal = goals.find(({ exitOnReach }) => exitOnReach)
  return goal
    ? { kind: 'ends', exitReason: 'GOAL', outcome: { result, reason: 'GOAL', goalId: goal.id } }
    : null
}

/**
 * Opens the windows that count from the first email, at the moment `at` (epoch ms) at which that email was sent or a
 * holdout took its place. Does nothing if they are open. Returns the goals that are reached by that.
 */
export async function openGoals(turn: Asking, at: number): Promise<SuccessGoal[]> {
  const { call, run, version } = turn
  const goals = version.definition.successGoals.filter(({ countFrom }) => countFrom === 'FIRST_EMAIL')
  if (goals.length === 0) return []
  const opened = await execute(
    call.em,
    sql`update goal_watch set opens_at = to_timestamp(${at / 1000}::float8),
        expires_at = to_timestamp(${at / 1000}::float8) + window_days * interval '24 hours'
      where organization_id = ${call.organization.id} and run_id = ${run.id} and opens_at is null`,
  )
  return opened === 0 ? [] : await catchUp(turn, goals)
}

/**
 * Records conversions for those of these goals whose filters match now and whose window is open, and returns these
 * goals. Evaluates all filters in one query.
 */
export async function reachByFilters(
  { call, run }: Pick<Turn, 'call' | 'run'>,
  goals: readonly SuccessGoal[],
): Promise<SuccessGoal[]> {
  const asked = goals.flatMap((goal) => (goal.filters ? [{ goal, filter: { all: goal.filters } }] : []))
  if (asked.length === 0) return []
  const filters = asked.map(({ filter }) => filter)
  const holding = await eachHolds(call.em, scopeOf(call), run.subscriberId, filters, entryOf(run))
  const reached = asked.flatMap(({ goal }, index) => (holding[index] === true ? [goal] : []))
  const made = await recordConversions(
    call,
    reached.map((goal) => conversionOf(run.id, goal)),
    { onlyOpen: true },
  )
  return goals.filter(({ id }) => made.some(({ goalId }) => goalId === id))
}

/** Reads whether a run has reached a goal, and the goal's window for this run. */
export async function readGoal(
  { call, run }: Pick<Turn, 'call' | 'run'>,
  goal: SuccessGoal,
): Promise<{ reached: boolean; window: GoalWindow | null }> {
  const found = await row<{ reached: boolean; firstEmailAt: number | null }>(
    call.em,
    sql`select exists (select from goal_conversion made where made.organization_id = ${call.organization.id}
          and made.run_id = ${run.id} and made.goal_id = ${goal.id}) as reached,
        extract(epoch from coalesce((select watch.opens_at from goal_watch watch
            where watch.organization_id = ${call.organization.id} and watch.run_id = ${run.id} and watch.goal_id = ${goal.id}),
          (select min(sent_at) from message
            where organization_id = ${call.organization.id} and run_id = ${run.id})))::float8 * 1000 as "firstEmailAt"`,
  )
  const { reached = false, firstEmailAt = null } = found ?? {}
  return { reached, window: windowOf(goal, { enteredAt: run.enteredAt, firstEmailAt }) }
}

type Watched = { runId: string; goalId: string; versionId: string; positions: number[] }

/**
 * Records conversions for the goals that these events reach, and returns the new ones. The number of SQL statements
 * does not depend on the number of goals. With `forRuns`, `events[i]` counts only for the run `forRuns[i]`.
 */
export async function reachByEvents(
  call: Call,
  events: readonly RecordedEvent[],
  forRuns?: readonly string[],
): Promise<Converted[]> {
  const watched = await findWatched(call, events, forRuns)
  if (watched.length === 0) return []
  const versions = await loadVersions(
    call.em,
    call.organization.id,
    watched.map(({ versionId }) => versionId),
  )
  const asked = watched.flatMap((watch) => {
    const goal = goalOf(versions, watch)
    return goal ? [{ ...watch, goal }] : []
  })
  const meant = await eventsMeant(
    call,
    events,
    asked.map(({ goal, positions }) => ({ where: goal.where ?? [], positions })),
  )
  const reached = asked.flatMap(({ runId, goal }, index): Conversion[] => {
    const event = meant[index]
    return event ? [conversionOf(runId, goal, event)] : []
  })
  return await recordConversions(call, reached)
}

/**
 * Writes conversions, at most one per run and goal, and deletes their watches. Returns the new ones. With `onlyOpen`,
 * ignores goals whose window is not open.
 */
export async function recordConversions(
  call: Call,
  reached: readonly Conversion[],
  { onlyOpen = false }: { onlyOpen?: boolean } = {},
): Promise<Converted[]> {
  if (reached.length === 0) return []
  return await rows<Converted>(
    call.em,
    sql`with given as (
        select given.*, run.automation_id, run.subscriber_id, run.version_id, run.status, run.wait_kind, run.current_step_id
        from unnest(
          ${column(reached, ({ runId }) => runId, 'uuid')},
          ${column(reached, ({ goalId }) => goalId, 'text')},
          ${column(reached, ({ eventId }) => eventId, 'uuid')},
          ${column(reached, ({ value }) => (value === null ? null : String(value)), 'text')},
          ${column(reached, ({ currency }) => currency, 'text')}
        ) as given (run_id, goal_id, event_id, value, currency)
        join automation_run run on run.organization_id = ${call.organization.id} and run.id = given.run_id
        where not ${onlyOpen} or exists (select from goal_watch watch where watch.organization_id = ${call.organization.id}
          and watch.run_id = given.run_id and watch.goal_id = given.goal_id and ${IS_OPEN})
      ), made as (
        insert into goal_conversion (organization_id, run_id, goal_id, automation_id, subscriber_id, event_id, value, currency)
        select ${call.organization.id}, run_id, goal_id, automation_id, subscriber_id, event_id, round(value::numeric, 2), currency
        from given order by run_id, goal_id
        on conflict (organization_id, run_id, goal_id) do nothing
        returning run_id, goal_id
      ), dropped as (
        delete from goal_watch watch using given where watch.organization_id = ${call.organization.id}
          and watch.run_id = given.run_id and watch.goal_id = given.goal_id)
      select made.run_id as "runId", made.goal_id as "goalId", given.version_id as "versionId", given.status,
        given.wait_kind as "waitKind", given.current_step_id as "stepId"
      from made join given on given.run_id = made.run_id and given.goal_id = made.goal_id order by 1, 2`,
  )
}

/** Returns the goal of a watch or conversion, from the version that its run is on. */
export function goalOf(
  versions: ReadonlyMap<string, Version>,
  { versionId, goalId }: { versionId: string; goalId: string },
): SuccessGoal | undefined {
  return versions.get(versionId)?.definition.successGoals.find(({ id }) => id === goalId)
}

/** Makes the conversion of a goal that `event` reached, or that its filters reached if there is no event. */
export function conversionOf(runId: string, goal: SuccessGoal, event?: RecordedEvent): Conversion {
  const worth = event ? valueOf(goal, event.data) : { value: null, currency: null }
  return { runId, goalId: goal.id, eventId: event?.id ?? null, ...worth }
}

/**
 * Records conversions for goals whose filters match already, or whose event was recorded since the run was entered and
 * before the watch was written. The event that started the run does not count (`isSinceEntry`).
 */
async function catchUp(turn: Asking, goals: readonly SuccessGoal[]): Promise<SuccessGoal[]> {
  const { call, run } = turn
  const byFilters = await reachByFilters(turn, goals)
  const asked = goals.filter(({ event }) => event !== undefined)
  if (asked.length === 0) return byFilters
  const { id, timezone } = call.organization
  const tests = asked.map(
    ({ event, where = [] }, index) =>
      sql`(${index}::int, event.type = ${event} and ${compileWhere(sql`event.data`, where, timezone)})`,
  )
  const found = await rows<RecordedEvent & { place: number }>(
    call.em,
    sql`select distinct on (asked.place) asked.place, event.id, event.subscriber_id as "subscriberId", event.type, event.data
      from subscriber_event event cross join lateral (values ${sql.join(tests)}) as asked (place, holds)
      join goal_watch watch on watch.organization_id = ${id} and watch.run_id = ${run.id}
        and watch.goal_id = (${column(asked, (goal) => goal.id, 'text')})[asked.place + 1]
      where ${isSinceEntry(turn)} and event.type = any(${array([...new Set(asked.map(({ event }) => event))], 'text')})
        and event.id >= id_floor(watch.opens_at) and event.created_at < watch.expires_at and asked.holds
      order by asked.place, event.id`,
  )
  const conversions = found.flatMap(({ place, ...event }) => {
    const goal = asked[place]
    return goal ? [conversionOf(run.id, goal, event)] : []
  })
  const made = await recordConversions(call, conversions)
  return [...byFilters, ...asked.filter((goal) => made.some(({ goalId }) => goalId === goal.id))]
}

async function findWatched(
  call: Call,
  events: readonly RecordedEvent[],
  forRuns: readonly string[] | undefined,
): Promise<Watched[]> {
  return await rows<Watched>(
    call.em,
    sql`select watch.run_id as "runId", watch.goal_id as "goalId", run.version_id as "versionId",
        array_agg((event.position - 1)::int) as positions
      from unnest(
        ${column(events, ({ subscriberId }) => subscriberId, 'uuid')},
        ${column(events, ({ type }) => type, 'text')}
      ) with ordinality as event (subscriber_id, type, position)
      join goal_watch watch on watch.organization_id = ${call.organization.id}
        and watch.subscriber_id = event.subscriber_id and watch.event_type = event.type
      join automation_run run on run.organization_id = watch.organization_id and run.id = watch.run_id
      where ${IS_OPEN} and ${IS_ENTERED_BEFORE} ${forRuns ? sql`and watch.run_id = (${array(forRuns, 'uuid')})[event.position]` : sql``}
      group by 1, 2, 3 order by 1, 2`,
  )
}
