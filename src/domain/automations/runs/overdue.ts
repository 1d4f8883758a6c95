import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { type EntityManager, execute, rows } from '../../../database.ts'
import type { RecordedEvent } from '../../event-rows.ts'
import { startPayload } from '../entry/run-starts.ts'
import { IS_OPEN, OPENS } from '../goals/goals.ts'
import { IS_ACTIVE } from './active.ts'
import { readHeld } from './hold-people.ts'
import { workflowIdOf, writeNudges } from './nudge.ts'
import { cancelRuns, endEventWaits } from './runs.ts'
import { IS_SINCE_ENTRY } from './since-entry.ts'

/** A run that should have moved by now. Ids are UUIDs. */
export type OverdueRun = {
  id: string
  organizationId: string
  automationId: string
  automationName: string
  versionNumber: number
  subscriberId: string
  number: number
  /** The id of the Temporal run in which it failed last, before it was retried. */
  failedIn: string | null
}

/**
 * The state of an overdue run's workflow in Temporal, and the Temporal run that has this state. ASLEEP is one that
 * waits for a later time than the database does.
 */
export type WorkflowState = {
  state: 'MISSING' | 'ASLEEP' | 'COMPLETED' | 'CANCELED' | 'TERMINATED' | 'FAILED' | 'TIMED_OUT'
  temporalRunId: string | null
}

/**
 * Finds runs of all organizations that were due over `lateSeconds` ago, in random order so that none blocks the others.
 */
export async function findOverdueRuns(
  em: EntityManager,
  lateSeconds: number,
  limit: number,
): Promise<OverdueRun[]> {
  return await rows<OverdueRun>(
    em,
    sql`select run.id, run.organization_id as "organizationId", run.automation_id as "automationId",
        automation.name as "automationName", version.number as "versionNumber",
        run.subscriber_id as "subscriberId", run.number, run.failed_in as "failedIn"
      from (select * from automation_run
        where ${IS_ACTIVE} and not held
          and wake_at < now() - make_interval(secs => ${lateSeconds}) order by random() limit ${limit}) as run
      join automation on automation.organization_id = run.organization_id and automation.id = run.automation_id
      join automation_version version on version.organization_id = run.organization_id and version.id = run.version_id`,
  )
}

/**
 * Repairs a run whose workflow does not drive it. One that is ASLEEP is nudged: the database was restored from a time
 * before the workflow's last turns. If an operator ended the workflow, or it failed, the run ends too;
 * otherwise it gets a new workflow, which continues where the run stands. A workflow in which the run failed before it
 * was retried does not count as ended. The workflow may have begun since the run was found: a run that it moved on to
 * another wait is left alone, because that wait would end at once.
 */
export async function repairRun(
  call: Call,
  run: OverdueRun,
  { state, temporalRunId }: WorkflowState,
): Promise<void> {
  if (state === 'ASLEEP') return await writeNudges(call.em, call.organization.id, [run])
  const isOfBefore = temporalRunId !== null && temporalRunId === run.failedIn
  if (!isOfBefore && (state === 'TERMINATED' || state === 'CANCELED')) {
    await cancelRuns(call, [run.id], 'MANUAL')
    return
  }
  if (!isOfBefore && (state === 'FAILED' || state === 'TIMED_OUT')) {
    await cancelRuns(call, [run.id], 'ERROR', { status: 'FAILED', error: 'The workflow of this run failed.' })
    return
  }
  const count = await execute(
    call.em,
    sql`update automation_run set temporal_run_id = null, wake_at = now(), due_at = coalesce(due_at,
        case when wait_kind not in ('MESSAGE', 'WEBHOOK') then wake_at end)
      where organization_id = ${call.organization.id} and id = ${run.id} and ${IS_ACTIVE} and wake_at <= now()`,
  )
  if (count === 0) return
  call.emit({
    kind: 'start',
    workflowId: workflowIdOf(run),
    payload: { ...startPayload(call.organization.id, run), restart: true },
  })
}

/** Returns the ids of organizations with waits or goal watches that began in the last `seconds`. */
export async function organizationsWithFreshWaits(em: EntityManager, seconds: number): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`select distinct organization_id as id from run_wait
      where began_at > now() - make_interval(secs => ${seconds})
      union select organization_id from goal_watch where began_at > now() - make_interval(secs => ${seconds})`,
  )
  return found.map(({ id }) => id)
}

/**
 * Compares waits and goal watches that began in the last `seconds` with events once more. Delivery writes EMAIL_SENT
 * without the subscriber's lock, so the event and a wait for it may commit at the same time and not see each other.
 * Events count from the entry of the run (`scope` RUN) or from the beginning of the wait. The latter excludes events of
 * the same millisecond, because the run itself may have caused them before it waited.
 */
export async function catchMissedEvents(call: Call, seconds: number): Promise<void> {
  const events = await readHeld(
    call,
    () => findMissed(call, seconds),
    ({ runId }) => [runId],
  )
  // An event may be too early for another run of the same subscriber, so each counts only for the run it was found for.
  await endEventWaits(
    call,
    events,
    events.map(({ runId }) => runId),
  )
}

async function findMissed(call: Call, seconds: number): Promise<(RecordedEvent & { runId: string })[]> {
  return await rows<RecordedEvent & { runId: string }>(
    call.em,
    sql`select wait.run_id as "runId", event.id, event.subscriber_id as "subscriberId", event.type, event.data
      from run_wait wait
      join automation_run run on run.organization_id = wait.organization_id and run.id = wait.run_id
      join subscriber_event event on event.organization_id = wait.organization_id
        and event.subscriber_id = wait.subscriber_id and event.type = wait.event_type
        and ${IS_SINCE_ENTRY}
        and (wait.conditions ->> 'scope' = 'RUN' or event.id >= id_floor(wait.began_at + interval '1 millisecond'))
      where wait.organization_id = ${call.organization.id}
        and wait.began_at > now() - make_interval(secs => ${seconds})
      union all
      select watch.run_id, event.id, event.subscriber_id, event.type, event.data from goal_watch watch
      join automation_run run on run.organization_id = watch.organization_id and run.id = watch.run_id
      join subscriber_event event on event.organization_id = watch.organization_id
        and event.subscriber_id = watch.subscriber_id and event.type = watch.event_type
        and ${IS_SINCE_ENTRY}
      where watch.organization_id = ${call.organization.id} and ${IS_OPEN} and event.id >= id_floor(${OPENS})
        and watch.began_at > now() - make_interval(secs => ${seconds})`,
  )
}
