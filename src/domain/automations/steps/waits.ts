import { sql } from 'kysely'

import type { StepOf } from '../../../../schema/automation.ts'
import type { WaitUntilConfigs } from '../../../../schema/automation-steps.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import { execute, row } from '../../../database.ts'
import { compileWhere } from '../../audience/match.ts'
import { MAY_WAKE } from '../../event-rows.ts'
import type { RunState } from '../run-state.ts'
import { dateDue, isCalendarWait, waitDue } from '../schedule.ts'
import { type Enter, left, type StepResult, type Turn } from './step.ts'

type EventConfig = WaitUntilConfigs['EVENT']

/** Calendar waits end within this long of their time, each run at its own moment. */
const JITTER_MS = 120_000

/** For a time. */
export const enterWait: Enter<'WAIT'> = ({ run, clock }, { config }) => {
  const due = waitDue(config, clock)
  return waitUntil(isCalendarWait(config) ? due + jitterOf(run) : due, run)
}

/** For a date or an event. */
export const enterWaitUntil: Enter<'WAIT_UNTIL'> = async (turn, step) => {
  const { config } = step
  switch (config.mode) {
    case 'DATE':
      return waitUntil(dateDue(config, turn.clock), turn.run)
    case 'EVENT':
      return await enterEventWait(turn, step.id, config)
  }
}

/** Looks at a wait for a time: null while it goes on. */
export function leaveTimeWait({ run }: Turn): StepResult | null {
  if (run.wakeReason === 'FAST_FORWARD') return left('next', { result: 'FAST_FORWARD' })
  return isElapsed(run) ? left('next', { result: 'ELAPSED' }) : null
}

/** Looks at a wait for an event: null while it goes on. */
export async function leaveEventWait(turn: Turn, step: StepOf<'WAIT_UNTIL'>): Promise<StepResult | null> {
  const { run } = turn
  if (run.wakeReason === 'EVENT') return left('next', { result: 'EVENT' })
  const isForced = run.wakeReason === 'FAST_FORWARD'
  if (!isForced && !isElapsed(run)) return null
  await dropEventWait(turn)
  if (isForced) return left('timeout', { result: 'FAST_FORWARD' })
  const exits = step.config.mode === 'EVENT' && step.config.onTimeout === 'EXIT'
  if (exits) return { kind: 'ends', exitReason: 'EXPIRED', outcome: { result: 'TIMEOUT' } }
  return left('timeout', { result: 'TIMEOUT' })
}

/** Whether the time of a wait has come. */
function isElapsed(run: RunState): boolean {
  return run.wakeAt !== null && run.wakeAt <= run.now
}

/** A run's own moment within the jitter: the same for every retry, spread evenly by the random end of its id. */
function jitterOf(run: RunState): number {
  return (Number.parseInt(run.id.slice(-8), 16) / 2 ** 32) * JITTER_MS
}

function waitUntil(due: number, run: RunState): StepResult {
  const wakeAt = Math.ceil(due)
  const outcome = { result: 'WAITING', until: new Date(wakeAt).toISOString() }
  if (wakeAt <= run.now) return left('next', { ...outcome, result: 'ELAPSED' })
  return { kind: 'waits', waitKind: 'TIME', wakeAt, outcome }
}

async function enterEventWait(turn: Turn, stepId: string, config: EventConfig): Promise<StepResult> {
  const { call, run, clock } = turn
  const { eventType, where = [], timeout } = config
  if (config.scope === 'RUN' && (await hasHappened(turn, eventType, where))) {
    return left('next', { result: 'EVENT', eventType })
  }
  await execute(
    call.em,
    sql`insert into run_wait (organization_id, subscriber_id, event_type, run_id, visit, conditions)
      values (${call.organization.id}, ${run.subscriberId}, ${eventType}, ${run.id}, ${run.visit},
        ${JSON.stringify({ where, stepId, scope: config.scope })}::jsonb)
      on conflict (organization_id, subscriber_id, event_type, run_id)
      do update set visit = excluded.visit, conditions = excluded.conditions, began_at = excluded.began_at`,
  )
  const wakeAt = timeout ? Math.ceil(clock.now + durationMilliseconds(timeout)) : null
  return { kind: 'waits', waitKind: 'EVENT', wakeAt, outcome: { result: 'WAITING', eventType } }
}

/** Whether the event came since the run was entered. */
async function hasHappened(
  { call, run }: Turn,
  eventType: string,
  where: EventConfig['where'] = [],
): Promise<boolean> {
  const holds = compileWhere(sql`event.data`, where, call.organization.timezone)
  const found = await row(
    call.em,
    sql`select 1 from subscriber_event event where event.organization_id = ${call.organization.id}
      and event.subscriber_id = ${run.subscriberId} and event.type = ${eventType}
      and event.id >= id_floor(to_timestamp(${run.enteredAt / 1000}::float8)) and ${MAY_WAKE} and ${holds} limit 1`,
  )
  return found !== null
}

async function dropEventWait({ call, run }: Turn): Promise<void> {
  await execute(
    call.em,
    sql`delete from run_wait where organization_id = ${call.organization.id}
      and subscriber_id = ${run.subscriberId} and run_id = ${run.id}`,
  )
}
