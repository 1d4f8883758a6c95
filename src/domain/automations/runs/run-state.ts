import { sql } from 'kysely'

import type { ExitReason, RunStatus, WorkflowStatus } from '../../../../schema/values.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { column, row, rows } from '../../../database.ts'
import { type NewEvent, type Recorded, writingEvents, type WrittenRow } from '../../event-rows.ts'

/**
 * The thing that a run waits for: a moment (TIME), the timeout of a wait for a later moment (LIMIT), an event, filters
 * (CONDITION), a goal, or the outcome of its own email (MESSAGE) or request (WEBHOOK).
 */
export type WaitKind = 'TIME' | 'LIMIT' | 'EVENT' | 'CONDITION' | 'GOAL' | 'MESSAGE' | 'WEBHOOK'

/** A run as read under its lock. Times are epoch milliseconds, ids are UUIDs. */
export type RunState = {
  id: string
  automationId: string
  automationStatus: WorkflowStatus
  versionId: string
  subscriberId: string
  groupId: string | null
  number: number
  status: RunStatus
  exitReason: ExitReason | null
  error: string | null
  held: boolean
  stepId: string | null
  visit: number
  waitKind: WaitKind | null
  wakeAt: number | null
  wakeReason: 'EVENT' | 'CONDITION' | 'GOAL' | 'FAST_FORWARD' | null
  /** When a held run should have continued. */
  dueAt: number | null
  context: Record<string, unknown>
  /** How many runs led to this one, each to the next; 0 for a run that no other run caused. */
  depth: number
  enteredAt: number
  /** The first Temporal run id of the workflow that drives the run; null before its first turn. */
  execution: string | null
  /** The id of the Temporal run in which the run failed last. */
  failedIn: string | null
  /** The database's time when the lock was held. */
  now: number
}

/** One visit of a step, as stored in `run_step`. It is open while the run waits in it. */
export type Visit = {
  visit: number
  stepId: string
  type: string
  port: string | null
  outcome: { result: string } & Record<string, unknown>
  open: boolean
  /** When the visit ended (epoch ms), if that is not now. */
  endedAt?: number
}

const ENDED: ReadonlySet<RunStatus> = new Set(['COMPLETED', 'CANCELED', 'FAILED', 'SKIPPED'])

/** Returns whether the run has ended. */
export function isOver(run: RunState): boolean {
  return ENDED.has(run.status)
}

/**
 * Reads a run and locks, in the common lock order, its automation (shared, so that its status cannot change), its
 * subscriber and the run. Returns null if the run does not exist.
 */
export async function lockRun({ em, organization }: Call, runId: string): Promise<RunState | null> {
  return await row<RunState>(
    em,
    sql`select run.id, run.automation_id as "automationId", automation.status as "automationStatus",
        run.version_id as "versionId", run.subscriber_id as "subscriberId", run.group_id as "groupId", run.number,
        run.status,
        run.exit_reason as "exitReason", run.error, run.held, run.current_step_id as "stepId", run.visit,
        run.wait_kind as "waitKind", extract(epoch from run.wake_at)::float8 * 1000 as "wakeAt",
        run.wake_reason as "wakeReason", extract(epoch from run.due_at)::float8 * 1000 as "dueAt", run.context, coalesce((run.trigger ->> 'depth')::int, 0) as depth, extract(epoch from run.entered_at)::float8 * 1000 as "enteredAt",
        run.temporal_run_id as execution, run.failed_in as "failedIn", extract(epoch from clock_timestamp())::float8 * 1000 as now
      from automation_run run
      join automation on automation.organization_id = run.organization_id and automation.id = run.automation_id
      join subscriber on subscriber.organization_id = run.organization_id and subscriber.id = run.subscriber_id
      where run.organization_id = ${organization.id} and run.id = ${runId}
      for share of automation for no key update of subscriber for no key update of run`,
  )
}

/** Reads whether a change by one of the run's own steps has ended it in this transaction; null if not. */
export async function readEnd(
  { em, organization }: Call,
  runId: string,
): Promise<Pick<RunState, 'status' | 'exitReason' | 'error'> | null> {
  const found = await row<Pick<RunState, 'status' | 'exitReason' | 'error'>>(
    em,
    sql`select status, exit_reason as "exitReason", error from automation_run
      where organization_id = ${organization.id} and id = ${runId}`,
  )
  return found && ENDED.has(found.status) ? found : null
}

/**
 * Stores a run and the visits and events of this turn in one statement. A stored visit that was open is updated; if a
 * later step of this turn ended the run, `cancelRuns` closed it with the reason of that end, which is taken back. The
 * waits of a run that is over are deleted, so events no longer find it.
 */
export async function saveRun(
  call: Call,
  run: RunState,
  visits: readonly Visit[],
  events: readonly NewEvent[] = [],
): Promise<Recorded> {
  const { em, organization } = call
  const { statement, read } = writingEvents(call, events)
  const time = (value: number | null | undefined) =>
    value === null || value === undefined ? null : value / 1000
  const written = await row<WrittenRow>(
    em,
    sql`with visits as (
        insert into run_step (organization_id, run_id, visit, step_id, type, port, outcome, ended_at)
        select ${organization.id}, ${run.id}, visit, step_id, type, port, outcome,
          case when open then null else coalesce(to_timestamp(ended::float8), now()) end
        from unnest(
          ${column(visits, ({ visit }) => visit, 'int')},
          ${column(visits, ({ stepId }) => stepId, 'text')},
          ${column(visits, ({ type }) => type, 'text')},
          ${column(visits, ({ port }) => port, 'text')},
          ${column(visits, ({ outcome }) => outcome, 'jsonb')},
          ${column(visits, ({ open }) => open, 'boolean')},
          ${column(visits, ({ endedAt }) => (endedAt === undefined ? null : String(time(endedAt))), 'text')}
        ) as made (visit, step_id, type, port, outcome, open, ended)
        on conflict (organization_id, run_id, visit) do update set port = excluded.port,
          outcome = case when run_step.ended_at is null then run_step.outcome else run_step.outcome - 'reason' end
            || excluded.outcome, ended_at = excluded.ended_at
      ), saved as (update automation_run set status = ${run.status}, exit_reason = ${run.exitReason}, error = ${run.error},
        held = ${run.held}, current_step_id = ${run.stepId}, visit = ${run.visit}, wait_kind = ${run.waitKind},
        wake_at = to_timestamp(${time(run.wakeAt)}::float8), wake_reason = ${run.wakeReason}, due_at = to_timestamp(${time(run.dueAt)}::float8),
        temporal_run_id = ${run.execution}, failed_in = ${run.failedIn},
        ended_at = case when ${isOver(run)} then now() else null end
      where organization_id = ${organization.id} and id = ${run.id}),
      unwatched as (delete from run_wait
        where ${isOver(run)} and organization_id = ${organization.id} and run_id = ${run.id})
      ${statement}`,
  )
  return read(written)
}

/** Reads the last `count` visits before the visit `before`, newest first. */
export async function lastVisits(
  { em, organization }: Call,
  runId: string,
  before: number,
  count: number,
): Promise<Visit[]> {
  return await rows<Visit>(
    em,
    sql`select visit, step_id as "stepId", type, port, outcome, ended_at is null as open from run_step
      where organization_id = ${organization.id} and run_id = ${runId} and visit < ${before}
      order by visit desc limit ${count}`,
  )
}
