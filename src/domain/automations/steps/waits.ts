import { sql } from 'kysely'

import type { StepOf } from '../../../../schema/automation.ts'
import type { Duration } from '../../../../schema/automation-parts.ts'
import type { WaitUntilConfigs } from '../../../../schema/automation-steps.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import { execute, row } from '../../../database.ts'
import { compileWhere, matches } from '../../audience/match.ts'
import { MAY_WAKE } from '../../event-rows.ts'
import type { RunState } from '../run-state.ts'
import { CONDITION_TYPE } from '../waits.ts'
import { dateDue, fieldDateDue, isCalendarWait, waitDue, windowOpens } from '../schedule.ts'
import { type Enter, entryOf, left, scopeOf, type StepResult, type Turn } from './step.ts'

type EventConfig = WaitUntilConfigs['EVENT']
type FieldDateConfig = WaitUntilConfigs['FIELD_DATE']

/** Calendar waits end within this long of their time, each run at its own moment. */
const JITTER_MS = 120_000

/** For a time. */
export const enterWait: Enter<'WAIT'> = ({ run, clock }, { config }) => {
  const due = waitDue(config, clock)
  return waitUntil(isCalendarWait(config) ? due + jitterOf(run) : due, run)
}

/** For a date, an hour of the day, an event or a condition. */
export const enterWaitUntil: Enter<'WAIT_UNTIL'> = async (turn, step) => {
  const { config } = step
  switch (config.mode) {
    case 'DATE':
      return waitLimited(turn, dateDue(config, turn.clock), config.timeout)
    case 'FIELD_DATE':
      return await enterFieldDate(turn, step.id, config)
    case 'TIME_WINDOW': {
      const opens = windowOpens(config, turn.clock)
      const due = opens > turn.clock.now ? opens + jitterOf(turn.run) : opens
      return waitLimited(turn, due, config.timeout)
    }
    case 'EVENT':
      return await enterEventWait(turn, step.id, config)
    case 'CONDITION':
      return await enterCondition(turn, step.id, config)
  }
}

/** Looks at a wait for a time: null while it goes on. */
export function leaveWait({ run }: Turn): StepResult | null {
  if (run.wakeReason === 'FAST_FORWARD') return left('next', { result: 'FAST_FORWARD' })
  return isElapsed(run) ? left('next', { result: 'ELAPSED' }) : null
}

/** Looks at a WAIT_UNTIL: null while it goes on. */
export async function leaveWaitUntil(turn: Turn, step: StepOf<'WAIT_UNTIL'>): Promise<StepResult | null> {
  const { run } = turn
  const { config } = step
  if (run.wakeReason === 'EVENT' || run.wakeReason === 'CONDITION') {
    // The date of the field has changed, so it is looked at anew.
    if (config.mode === 'FIELD_DATE') return await enterFieldDate(turn, step.id, config)
    return left('next', { result: run.wakeReason })
  }
  const isForced = run.wakeReason === 'FAST_FORWARD'
  if (!isForced && !isElapsed(run)) return await lookAgain(turn, config)
  await dropWait(turn)
  const isOpenEnded = config.mode === 'EVENT' || config.mode === 'CONDITION'
  if (isForced) return left(isOpenEnded ? 'timeout' : 'next', { result: 'FAST_FORWARD' })
  if (!isOpenEnded && run.waitKind !== 'LIMIT') return left('next', { result: 'ELAPSED' })
  if (config.onTimeout === 'EXIT') return expired({ result: 'TIMEOUT' })
  return left('timeout', { result: 'TIMEOUT' })
}

/** Whether the time of a wait has come. */
export function isElapsed(run: RunState): boolean {
  return run.wakeAt !== null && run.wakeAt <= run.now
}

/** A run's own moment within the jitter: the same for every retry, spread evenly by the random end of its id. */
export function jitterOf(run: RunState, most = JITTER_MS): number {
  return (Number.parseInt(run.id.slice(-8), 16) / 2 ** 32) * most
}

/** Waits until a moment, or goes on where it has passed. */
export function waitUntil(
  due: number,
  run: RunState,
  details: { reason?: string; port?: string } = {},
): StepResult {
  const wakeAt = Math.ceil(due)
  const { port = 'next', ...more } = details
  const outcome = { result: 'WAITING', until: new Date(wakeAt).toISOString(), ...more }
  if (wakeAt <= run.now) return left(port, { ...outcome, result: 'ELAPSED' })
  return { kind: 'waits', waitKind: 'TIME', wakeAt, outcome }
}

function expired(outcome: { result: string } & Record<string, unknown>): StepResult {
  return { kind: 'ends', exitReason: 'EXPIRED', outcome }
}

/** As waitUntil, for as long as the time-out lets it. */
function waitLimited({ run, clock }: Turn, due: number, timeout: Duration | undefined): StepResult {
  const limit = limitOf(clock.now, timeout)
  if (limit === null || due <= limit || due <= run.now) return waitUntil(due, run)
  const outcome = {
    result: 'WAITING',
    until: new Date(due).toISOString(),
    atMostUntil: new Date(limit).toISOString(),
  }
  return { kind: 'waits', waitKind: 'LIMIT', wakeAt: limit, outcome }
}

function limitOf(now: number, timeout: Duration | undefined): number | null {
  return timeout ? Math.ceil(now + durationMilliseconds(timeout)) : null
}

async function enterFieldDate(turn: Turn, stepId: string, config: FieldDateConfig): Promise<StepResult> {
  const { call, run, clock } = turn
  const found = await row<{ value: unknown }>(
    call.em,
    sql`select fields -> ${config.field}::text as value from subscriber
      where organization_id = ${call.organization.id} and id = ${run.subscriberId}`,
  )
  const due = fieldDateDue(found?.value, config, clock)
  const isPast = due !== null && due < clock.now
  if (due === null || isPast) {
    await dropWait(turn)
    return undated(isPast ? 'PAST' : 'MISSING', isPast ? config.ifPast : config.ifMissing)
  }
  const result = waitLimited(turn, due + jitterOf(run), config.timeout)
  // Who moves the date moves the wait.
  const where = [{ path: 'field', operator: 'equals', value: config.field }]
  if (result.kind === 'waits') await writeWait(turn, 'FIELD_UPDATED', { where, stepId, scope: 'STEP' })
  return result
}

function undated(reason: string, action: FieldDateConfig['ifMissing']): StepResult {
  if (action === 'EXIT') return expired({ result: 'EXIT', reason })
  return left(action === 'TIMEOUT' ? 'timeout' : 'next', { result: 'SKIPPED', reason })
}

async function enterEventWait(turn: Turn, stepId: string, config: EventConfig): Promise<StepResult> {
  const { clock } = turn
  const { eventType, where = [], scope, timeout } = config
  if (scope === 'RUN' && (await hasHappened(turn, eventType, where))) {
    return left('next', { result: 'EVENT', eventType })
  }
  await writeWait(turn, eventType, { where, stepId, scope })
  const outcome = { result: 'WAITING', eventType }
  return { kind: 'waits', waitKind: 'EVENT', wakeAt: limitOf(clock.now, timeout), outcome }
}

async function enterCondition(
  turn: Turn,
  stepId: string,
  config: WaitUntilConfigs['CONDITION'],
): Promise<StepResult> {
  if (await holds(turn, config.filters)) return left('next', { result: 'CONDITION' })
  await writeWait(turn, CONDITION_TYPE, { where: [], stepId, scope: 'STEP' })
  const wakeAt = limitOf(turn.clock.now, config.timeout)
  return { kind: 'waits', waitKind: 'CONDITION', wakeAt, outcome: { result: 'WAITING' } }
}

/** A condition is told to a run when it begins to hold; whenever the run looks for itself, it is asked as well. */
async function lookAgain(turn: Turn, config: StepOf<'WAIT_UNTIL'>['config']): Promise<StepResult | null> {
  if (config.mode !== 'CONDITION' || !(await holds(turn, config.filters))) return null
  await dropWait(turn)
  return left('next', { result: 'CONDITION' })
}

async function holds(
  { call, run }: Turn,
  filters: WaitUntilConfigs['CONDITION']['filters'],
): Promise<boolean> {
  return await matches(call.em, scopeOf(call), run.subscriberId, filters, entryOf(run))
}

/** Whether the event came since the run was entered. */
async function hasHappened(
  { call, run }: Turn,
  eventType: string,
  where: EventConfig['where'] = [],
): Promise<boolean> {
  const isSo = compileWhere(sql`event.data`, where, call.organization.timezone)
  const found = await row(
    call.em,
    sql`select 1 from subscriber_event event where event.organization_id = ${call.organization.id}
      and event.subscriber_id = ${run.subscriberId} and event.type = ${eventType}
      and event.id >= id_floor(to_timestamp(${run.enteredAt / 1000}::float8)) and ${MAY_WAKE} and ${isSo} limit 1`,
  )
  return found !== null
}

async function writeWait(
  { call, run }: Turn,
  eventType: string,
  conditions: { where: unknown[]; stepId: string; scope: string },
): Promise<void> {
  await execute(
    call.em,
    sql`insert into run_wait (organization_id, subscriber_id, event_type, run_id, visit, conditions)
      values (${call.organization.id}, ${run.subscriberId}, ${eventType}, ${run.id}, ${run.visit},
        ${JSON.stringify(conditions)}::jsonb)
      on conflict (organization_id, subscriber_id, event_type, run_id, rule_id)
      do update set visit = excluded.visit, conditions = excluded.conditions, began_at = excluded.began_at`,
  )
}

async function dropWait({ call, run }: Turn): Promise<void> {
  await execute(
    call.em,
    sql`delete from run_wait where organization_id = ${call.organization.id}
      and subscriber_id = ${run.subscriberId} and run_id = ${run.id} and rule_id = ''`,
  )
}
