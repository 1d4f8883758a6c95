import { sql } from 'kysely'

import type { Step, WaitStep, WaitUntilStep } from '../../../schema/automation.ts'
import { ELSE_PORT } from '../../../schema/automation.ts'
import { durationMilliseconds } from '../../../temporal/graph.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, row } from '../../database.ts'
import { compileWhere, firstMatching, matches } from '../audience/match.ts'
import { MAY_WAKE } from '../event-rows.ts'
import { addTags, removeTags } from '../tags.ts'
import { messageOutcome, sendStepEmail } from './run-email.ts'
import type { RunState, WaitKind } from './run-state.ts'
import { type Clock, dateDue, isCalendarWait, waitDue } from './schedule.ts'
import type { Version } from './versions.ts'

/** What a step works with. `clock.now` is when the step before it was over. */
export type Turn = { call: Call; run: RunState; version: Version; clock: Clock }

type Outcome = { result: string } & Record<string, unknown>

/** What a step came to: left by a port, waiting, or the end of the run. */
export type StepResult =
  | { kind: 'left'; port: string; outcome: Outcome; endedAt?: number }
  | { kind: 'waits'; waitKind: WaitKind; wakeAt: number | null; outcome: Outcome }
  | { kind: 'ends'; exitReason: 'EXIT_STEP' | 'EXPIRED'; outcome: Outcome }
  | { kind: 'failed'; reason: string; outcome: Outcome }

/** Calendar waits end within this long of their time, each run at its own moment. */
const JITTER_MS = 120_000
const FIRST_LOOK_MS = 30_000
const LAST_LOOK_MS = 15 * 60_000

/** Does a step that the run has just come to. */
export async function enterStep(turn: Turn, step: Step): Promise<StepResult> {
  const { call, run, clock } = turn
  switch (step.type) {
    case 'TRIGGER':
      return left('next', { result: 'ENTERED' })
    case 'EMAIL':
      return await enterEmail(turn, step.id, step.config.transactional)
    case 'WAIT':
      return waitUntil(dueOf(turn, step), run)
    case 'WAIT_UNTIL':
      if (step.config.mode === 'DATE') return waitUntil(dateDue(step.config, clock), run)
      return await enterEventWait(turn, step, step.config)
    case 'BRANCH': {
      const path = await firstMatching(
        call.em,
        scopeOf(call),
        run.subscriberId,
        step.config.paths,
        entryOf(run),
      )
      return left(path ?? ELSE_PORT, { result: 'DECIDED' })
    }
    case 'ADD_TAG':
    case 'REMOVE_TAG': {
      const change = step.type === 'ADD_TAG' ? addTags : removeTags
      const changes = await change(call, [run.subscriberId], step.config.tagNames)
      return left('next', { result: 'DONE', changed: changes.map(({ tag }) => tag.name) })
    }
    case 'EXIT':
      return {
        kind: 'ends',
        exitReason: 'EXIT_STEP',
        outcome: { result: 'EXIT', ...(step.config.reason !== undefined && { reason: step.config.reason }) },
      }
  }
}

/** Looks at the step that the run waits in: null while there is nothing to do. */
export async function leaveStep(turn: Turn, step: Step): Promise<StepResult | null> {
  const { run } = turn
  if (run.waitKind === 'MESSAGE') return await leaveEmail(turn)
  if (run.wakeReason === 'EVENT') return left('next', { result: 'EVENT' })
  const isEvent = run.waitKind === 'EVENT'
  if (run.wakeReason === 'FAST_FORWARD') {
    await dropEventWait(turn)
    return left(isEvent ? 'timeout' : 'next', { result: 'FAST_FORWARD' })
  }
  if (run.wakeAt === null || run.wakeAt > run.now) return null
  if (!isEvent) return left('next', { result: 'ELAPSED' })
  await dropEventWait(turn)
  const exits = step.type === 'WAIT_UNTIL' && step.config.mode === 'EVENT' && step.config.onTimeout === 'EXIT'
  if (exits) return { kind: 'ends', exitReason: 'EXPIRED', outcome: { result: 'TIMEOUT' } }
  return left('timeout', { result: 'TIMEOUT' })
}

/** Whether the conditions of a step hold; without any they do. */
export async function conditionsHold({ call, run }: Turn, step: Step): Promise<boolean> {
  if (!step.conditions?.length) return true
  return await matches(call.em, scopeOf(call), run.subscriberId, step.conditions, entryOf(run))
}

function left(port: string, outcome: Outcome, endedAt?: number): StepResult {
  return { kind: 'left', port, outcome, ...(endedAt !== undefined && { endedAt }) }
}

function scopeOf({ organization }: Call) {
  return { organizationId: organization.id }
}

function entryOf(run: RunState) {
  return { entry: run.context, run: { automationId: run.automationId, runId: run.id } }
}

function dueOf({ run, clock }: Turn, step: WaitStep): number {
  const due = waitDue(step.config, clock)
  return isCalendarWait(step.config) ? due + jitterOf(run) : due
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

type EventConfig = Extract<WaitUntilStep['config'], { mode: 'EVENT' }>

async function enterEventWait(turn: Turn, step: WaitUntilStep, config: EventConfig): Promise<StepResult> {
  const { call, run, clock } = turn
  const { eventType, where = [], timeout } = config
  if (config.scope === 'RUN' && (await hasHappened(turn, eventType, where))) {
    return left('next', { result: 'EVENT', eventType })
  }
  await execute(
    call.em,
    sql`insert into run_wait (organization_id, subscriber_id, event_type, run_id, visit, conditions)
      values (${call.organization.id}, ${run.subscriberId}, ${eventType}, ${run.id}, ${run.visit},
        ${JSON.stringify({ where, stepId: step.id, scope: config.scope })}::jsonb)
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
  if (run.waitKind !== 'EVENT') return
  await execute(
    call.em,
    sql`delete from run_wait where organization_id = ${call.organization.id}
      and subscriber_id = ${run.subscriberId} and run_id = ${run.id}`,
  )
}

async function enterEmail(turn: Turn, stepId: string, transactional: boolean): Promise<StepResult> {
  const messageId = await sendStepEmail(turn, stepId, transactional)
  const outcome = { result: 'QUEUED', messageId }
  return { kind: 'waits', waitKind: 'MESSAGE', wakeAt: turn.run.now + FIRST_LOOK_MS, outcome }
}

/** Null while the email has no outcome; the next look is later the longer it takes, because delivery nudges. */
async function leaveEmail(turn: Turn): Promise<StepResult | null> {
  const { run } = turn
  const message = await messageOutcome(turn)
  if (!message)
    return { kind: 'failed', reason: 'the email of this step is gone', outcome: { result: 'FAILED' } }
  const { status, reason } = message
  if (status === 'QUEUED' || status === 'SUBMITTING' || status === 'DELAYED') {
    const age = run.now - message.createdAt
    run.wakeAt = run.now + Math.min(LAST_LOOK_MS, Math.max(FIRST_LOOK_MS, age / 2))
    return null
  }
  const outcome = { result: status, ...(reason !== null && { reason }) }
  if (status === 'FAILED') return { kind: 'failed', reason: reason ?? 'the email failed', outcome }
  return left('next', outcome, message.sentAt ?? undefined)
}
