import { sql } from 'kysely'

import type { WaitUntilConfigs } from '../../../../schema/automation-steps.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import { Failure } from '../../../catalogue/failure.ts'
import { execute, row } from '../../../database.ts'
import { compileWhere, matches } from '../../audience/match.ts'
import { isSinceEntry } from '../runs/since-entry.ts'
import { CONDITION_TYPE } from '../runs/waits.ts'
import { type Enter, entryOf, failedBy, left, scopeOf, type StepResult, type Turn } from './step.ts'
import {
  decideCondition,
  decideDate,
  decideEvent,
  decideFieldDate,
  decideTimeOver,
  decideWait,
  decideWindow,
  isElapsed,
} from './timing.ts'

type EventConfig = WaitUntilConfigs['EVENT']
type FieldDateConfig = WaitUntilConfigs['FIELD_DATE']

/** Waits for a time. */
export const enterWait: Enter<'WAIT'> = (turn, { config }) => decideWait(turn, config)

/** Waits for a date, hours of the day, an event or a condition. */
export const enterWaitUntil: Enter<'WAIT_UNTIL'> = async (turn, step) => {
  const { config } = step
  switch (config.mode) {
    case 'DATE':
      return decideDate(turn, config)
    case 'FIELD_DATE':
      return await enterFieldDate(turn, step.id, config)
    case 'TIME_WINDOW':
      return decideWindow(turn, config)
    case 'EVENT':
      return await enterEventWait(turn, step.id, config)
    case 'CONDITION':
      return await enterCondition(turn, step.id, config)
  }
}

/** Continues a run that waits at a WAIT_UNTIL. Returns null while it has to wait. */
export async function leaveWaitUntil(turn: Turn, step: StepOf<'WAIT_UNTIL'>): Promise<StepResult | null> {
  const { run } = turn
  const { config } = step
  if (run.wakeReason === 'EVENT' || run.wakeReason === 'CONDITION') {
    // The field has changed, so its date is read again.
    if (config.mode === 'FIELD_DATE')
      return await enterFieldDate(turn, step.id, config, await readLimit(turn))
    return left('next', { result: run.wakeReason })
  }
  const isForced = run.wakeReason === 'FAST_FORWARD'
  if (!isForced && !isElapsed(run)) return await lookAgain(turn, config)
  if (!isForced && config.mode === 'TIME_WINDOW' && run.waitKind === 'TIME') {
    // A pause may have held the run until the hours were over again.
    const again = decideWindow(turn, config, await readLimit(turn))
    if (again.kind === 'waits') return again
  }
  await dropWait(turn)
  return decideTimeOver(run, config)
}

async function enterFieldDate(
  turn: Turn,
  stepId: string,
  config: FieldDateConfig,
  limit?: number | null,
): Promise<StepResult> {
  const { call, run } = turn
  const found = await row<{ value: unknown }>(
    call.em,
    sql`select fields -> ${config.field}::text as value from subscriber
      where organization_id = ${call.organization.id} and id = ${run.subscriberId}`,
  )
  const result = decideFieldDate(turn, config, found?.value, limit)
  // A change of the field wakes the run, which then waits for the new date.
  const where = [{ path: 'field', operator: 'equals', value: config.field }]
  if (result.kind === 'waits') await writeWait(turn, 'FIELD_UPDATED', { where, stepId, scope: 'STEP' })
  else await dropWait(turn)
  return result
}

async function enterEventWait(turn: Turn, stepId: string, config: EventConfig): Promise<StepResult> {
  const { eventType, where = [], scope } = config
  if (scope === 'RUN' && (await hasHappened(turn, eventType, where))) {
    return left('next', { result: 'EVENT', eventType })
  }
  await writeWait(turn, eventType, { where, stepId, scope })
  return decideEvent(turn, config)
}

async function enterCondition(
  turn: Turn,
  stepId: string,
  config: WaitUntilConfigs['CONDITION'],
): Promise<StepResult> {
  if (await holds(turn, config.filters)) return left('next', { result: 'CONDITION' })
  await writeWait(turn, CONDITION_TYPE, { where: [], stepId, scope: 'STEP' })
  return decideCondition(turn, config)
}

/**
 * Evaluates the filters of a wait for a condition whenever the run looks. Usually the run is woken when they start to
 * match. The step fails if a filter names something that was deleted.
 */
async function lookAgain(turn: Turn, config: StepOf<'WAIT_UNTIL'>['config']): Promise<StepResult | null> {
  if (config.mode !== 'CONDITION') return null
  try {
    if (!(await holds(turn, config.filters))) return null
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    // The run may go on after the failure, so no later change may find this wait.
    await dropWait(turn)
    return failedBy(error)
  }
  await dropWait(turn)
  return left('next', { result: 'CONDITION' })
}

async function holds(
  { call, run }: Turn,
  filters: WaitUntilConfigs['CONDITION']['filters'],
): Promise<boolean> {
  return await matches(call.em, scopeOf(call), run.subscriberId, filters, entryOf(run))
}

/** Returns whether a matching event was recorded since the run was entered. */
async function hasHappened(
  turn: Turn,
  eventType: string,
  where: EventConfig['where'] = [],
): Promise<boolean> {
  const { call } = turn
  const isSo = compileWhere(sql`event.data`, where, call.organization.timezone)
  const found = await row(
    call.em,
    sql`select 1 from subscriber_event event where ${isSinceEntry(turn)} and event.type = ${eventType} and ${isSo} limit 1`,
  )
  return found !== null
}

/** Reads the limit of the current wait (epoch ms), which was stored when it began; null without a timeout. */
async function readLimit({ call, run }: Turn): Promise<number | null> {
  const found = await row<{ limit: number | null }>(
    call.em,
    sql`select extract(epoch from (outcome ->> 'atMostUntil')::timestamptz)::float8 * 1000 as "limit" from run_step
      where organization_id = ${call.organization.id} and run_id = ${run.id} and visit = ${run.visit}`,
  )
  return found?.limit ?? null
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
