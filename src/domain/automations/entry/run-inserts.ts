import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { column, execute } from '../../../database.ts'
import type { RecordedEvent } from '../../event-rows.ts'
import { noteSegmentChanges } from '../../segments/notes.ts'
import type { Version } from '../definition/versions.ts'
import { watchGoals } from '../goals/goals.ts'
import { watchExitRules } from '../runs/exit-rules.ts'
import { startRuns } from './run-starts.ts'

/** A subscriber whom a trigger or call lets in if re-entry and the group allow it. Ids are UUIDs. */
export type Candidate = {
  automationId: string
  automationName: string
  version: Version
  subscriberId: string
  /** The step at which the run begins: a TRIGGER, or any step that a call names. */
  stepId: string
  /** The cause of the run, which is stored with it. */
  trigger: Record<string, unknown>
  /** The entry data, which filters and variables read as `entry.<path>`. */
  context: Record<string, unknown>
}

/** A run that is to be inserted. */
export type NewRun = {
  id: string
  number: number
  entryKey: string
  groupId: string | null
  /** Whether the run begins now, waits in the queue of its group, or never begins. */
  turn: 'HOLDS' | 'QUEUES' | 'SKIPPED'
  /** How long it may wait in the queue of its group, in ms; null or undefined: without limit. */
  maxQueueMs?: number | null
  candidate: Candidate
}

/**
 * Inserts runs and starts those whose turn is `HOLDS`. Queued runs are watched at once for goals and exit rules, which
 * can end them before they begin. The caller holds the locks of the entries and places, and passes the returned events
 * to `endEventWaits`.
 */
export async function insertRuns(
  call: Call,
  runs: readonly NewRun[],
  priority: number,
): Promise<RecordedEvent[]> {
  if (runs.length === 0) return []
  await writeRuns(call, runs)
  const queueing = runs.flatMap(({ id, turn, candidate: { subscriberId, version } }) =>
    turn === 'QUEUES' ? [{ id, subscriberId, version }] : [],
  )
  await watchGoals(call, queueing)
  await watchExitRules(call, queueing)
  await noteSegmentChanges(
    call,
    queueing.map(({ subscriberId }) => subscriberId),
  )
  const starting = runs.filter(({ turn }) => turn === 'HOLDS')
  if (starting.length === 0) return []
  return await startRuns(
    call,
    starting.map(({ id, number, candidate: { automationId, automationName, version, subscriberId } }) => ({
      id,
      number,
      automationId,
      automationName,
      versionNumber: version.number,
      subscriberId,
    })),
    priority,
  )
}

async function writeRuns({ em, organization, actor }: Call, runs: readonly NewRun[]): Promise<void> {
  await execute(
    em,
    sql`with given as (
        select * from unnest(
          ${column(runs, ({ id }) => id, 'uuid')},
          ${column(runs, ({ candidate }) => candidate.automationId, 'uuid')},
          ${column(runs, ({ candidate }) => candidate.version.id, 'uuid')},
          ${column(runs, ({ candidate }) => candidate.subscriberId, 'uuid')},
          ${column(runs, ({ number }) => number, 'int')},
          ${column(runs, ({ entryKey }) => entryKey, 'text')},
          ${column(runs, ({ groupId }) => groupId, 'uuid')},
          ${column(runs, ({ turn }) => turn, 'text')},
          ${column(runs, ({ maxQueueMs }) => maxQueueMs ?? null, 'text')},
          ${column(runs, ({ candidate }) => candidate.stepId, 'text')},
          ${column(
            runs,
            ({ candidate }) => ({
              stepId: candidate.stepId,
              ...(actor.depth !== undefined && { depth: actor.depth + 1 }),
              ...candidate.trigger,
            }),
            'jsonb',
          )},
          ${column(runs, ({ candidate }) => candidate.context, 'jsonb')}
        ) as run (id, automation_id, version_id, subscriber_id, number, entry_key, group_id, turn, max_queue_ms,
          step_id, trigger, context)
      ), made as (
        insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number, entry_key,
          group_id, queued_at, queue_expires_at, status, exit_reason, ended_at, current_step_id, wake_at, trigger, context)
        select id, ${organization.id}, automation_id, version_id, subscriber_id, number, entry_key, group_id,
          case turn when 'QUEUES' then clock_timestamp() end,
          case turn when 'QUEUES' then now() + make_interval(secs => max_queue_ms::float8 / 1000) end,
          case turn when 'SKIPPED' then 'SKIPPED' else 'QUEUED' end,
          case turn when 'SKIPPED' then 'GROUP_CONFLICT' end,
          case turn when 'SKIPPED' then now() end,
          step_id, case turn when 'HOLDS' then now() end, trigger, context
        from given)
      update automation_entry entry set runs = made.number, entered = entry.entered + made.entered,
        last_entered_at = case when made.entered > 0 then now() else last_entered_at end
      from (select automation_id, subscriber_id, max(number) as number,
          (count(*) filter (where turn <> 'SKIPPED'))::int as entered
        from given group by 1, 2) as made
      where entry.organization_id = ${organization.id} and entry.automation_id = made.automation_id
        and entry.subscriber_id = made.subscriber_id`,
  )
}
