import type { Duration, SendWindow } from '../../../../schema/automation-parts.ts'
import type { StepConfigs, WaitUntilConfigs } from '../../../../schema/automation-steps.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import type { RunState } from '../runs/run-state.ts'
import {
  type Clock,
  dateDue,
  fieldDateDue,
  isCalendarWait,
  waitDue,
  windowLength,
  windowOpens,
} from '../runs/schedule.ts'
import { left, type Settled, type StepResult } from './step.ts'

/**
 * The time at which a wait is decided: `run.now` is the current time, `clock.now` is when the previous step was over.
 * The functions of this file decide waits without reading the database, so the engine and the simulator share them.
 */
export type Moment = { run: Pick<RunState, 'id' | 'now'>; clock: Clock }

/** Calendar waits end up to this much later, in ms, each run at its own moment. */
const JITTER_MS = 120_000

/** The latest moment of any wait (epoch ms), because years have four digits in the API and in Temporal. */
const LAST_MOMENT = Date.UTC(9999, 11, 31, 23, 59, 59)

/** Decides a WAIT. */
export function decideWait({ run, clock }: Moment, config: StepConfigs['WAIT']): StepResult {
  const due = waitDue(config, clock)
  return waitUntil(isCalendarWait(config) ? due + jitterOf(run) : due, run)
}

/** Decides a wait for a date. */
export function decideDate(moment: Moment, config: WaitUntilConfigs['DATE']): StepResult {
  return waitLimited(moment, dateDue(config, moment.clock), limitOf(moment.clock.now, config.timeout))
}

/**
 * Decides a wait for hours of the day. `limit` (epoch ms) is when it times out; pass it when the wait has begun
 * already.
 */
export function decideWindow(
  moment: Moment,
  config: WaitUntilConfigs['TIME_WINDOW'],
  limit = limitOf(moment.clock.now, config.timeout),
): StepResult {
  const { run, clock } = moment
  const opens = windowOpens(config, clock)
  return waitLimited(moment, opens > clock.now ? opens + windowJitter(run, config) : opens, limit)
}

/** Decides a wait for the date in a field, whose value is `value`. `limit` is as in `decideWindow`. */
export function decideFieldDate(
  moment: Moment,
  config: WaitUntilConfigs['FIELD_DATE'],
  value: unknown,
  limit = limitOf(moment.clock.now, config.timeout),
): StepResult {
  const due = fieldDateDue(value, config, moment.clock)
  if (due === null) return undated('MISSING', config.ifMissing)
  if (due < moment.clock.now) return undated('PAST', config.ifPast)
  return waitLimited(moment, due + jitterOf(moment.run), limit)
}

/** Decides a wait for an event that has not happened yet. */
export function decideEvent(
  { clock }: Moment,
  { eventType, timeout }: WaitUntilConfigs['EVENT'],
): StepResult {
  const outcome = { result: 'WAITING', eventType }
  return { kind: 'waits', waitKind: 'EVENT', wakeAt: limitOf(clock.now, timeout), outcome }
}

/** Decides a wait for filters that do not match yet. */
export function decideCondition({ clock }: Moment, { timeout }: WaitUntilConfigs['CONDITION']): StepResult {
  const outcome = { result: 'WAITING' }
  return { kind: 'waits', waitKind: 'CONDITION', wakeAt: limitOf(clock.now, timeout), outcome }
}

/** Decides how a WAIT_UNTIL is left when its time is over or it is fast-forwarded. */
export function decideTimeOver(
  { waitKind, wakeReason }: Pick<RunState, 'waitKind' | 'wakeReason'>,
  config: WaitUntilConfigs[keyof WaitUntilConfigs],
): Settled {
  const isOpenEnded = config.mode === 'EVENT' || config.mode === 'CONDITION'
  if (wakeReason === 'FAST_FORWARD') return left(isOpenEnded ? 'timeout' : 'next', { result: 'FAST_FORWARD' })
  if (!isOpenEnded && waitKind !== 'LIMIT') return left('next', { result: 'ELAPSED' })
  if (config.onTimeout === 'EXIT') return expired({ result: 'TIMEOUT' })
  return left('timeout', { result: 'TIMEOUT' })
}

/** Decides how a wait for a time is left, or returns null while it lasts. */
export function leaveWait({ run }: { run: Pick<RunState, 'wakeReason' | 'wakeAt' | 'now'> }): Settled | null {
  if (run.wakeReason === 'FAST_FORWARD') return left('next', { result: 'FAST_FORWARD' })
  return isElapsed(run) ? left('next', { result: 'ELAPSED' }) : null
}

/** Returns whether the time of a wait has come. */
export function isElapsed(run: Pick<RunState, 'wakeAt' | 'now'>): boolean {
  return run.wakeAt !== null && run.wakeAt <= run.now
}

/**
 * Returns the jitter of a run in ms: the same at every retry, and spread evenly because the end of a run id is random.
 */
function jitterOf(run: Pick<RunState, 'id'>, most = JITTER_MS): number {
  return (Number.parseInt(run.id.slice(-8), 16) / 2 ** 32) * most
}

/** Returns the jitter of a run for a window, at most half the window's length, so that the window is still open. */
export function windowJitter(run: Pick<RunState, 'id'>, window: SendWindow): number {
  return jitterOf(run, Math.min(JITTER_MS, windowLength(window) / 2))
}

/** Returns the result that waits until `due` (epoch ms), or that leaves the step if `due` has passed. */
export function waitUntil(
  due: number,
  run: Pick<RunState, 'now'>,
  details: { reason?: string; port?: string; atMostUntil?: string } = {},
): StepResult {
  const wakeAt = Math.min(Math.ceil(due), LAST_MOMENT)
  const { port = 'next', ...more } = details
  const outcome = { result: 'WAITING', until: new Date(wakeAt).toISOString(), ...more }
  // Compare `due`, not the rounded `wakeAt`: an open window is due exactly now, and rounding up would make the run
  // wait.
  if (due <= run.now) return left(port, { ...outcome, result: 'ELAPSED' })
  return { kind: 'waits', waitKind: 'TIME', wakeAt, outcome }
}

/**
 * Does the same as `waitUntil`, but at most until `limit`. The outcome keeps the limit, because `readLimit` needs it
 * later.
 */
function waitLimited({ run }: Moment, due: number, limit: number | null): StepResult {
  if (limit === null) return waitUntil(due, run)
  const atMostUntil = new Date(limit).toISOString()
  if (due <= limit || due <= run.now) return waitUntil(due, run, { atMostUntil })
  const outcome = {
    result: 'WAITING',
    until: new Date(Math.min(due, LAST_MOMENT)).toISOString(),
    atMostUntil,
  }
  return { kind: 'waits', waitKind: 'LIMIT', wakeAt: limit, outcome }
}

function limitOf(now: number, timeout: Duration | undefined): number | null {
  return timeout ? Math.ceil(now + durationMilliseconds(timeout)) : null
}

function undated(reason: 'MISSING' | 'PAST', action: WaitUntilConfigs['FIELD_DATE']['ifMissing']): Settled {
  if (action === 'EXIT') return expired({ result: 'EXIT', reason })
  return {
    ...left(action === 'TIMEOUT' ? 'timeout' : 'next', { result: 'SKIPPED', reason }),
    decision: reason,
  }
}

function expired(outcome: { result: string } & Record<string, unknown>): Settled {
  return { kind: 'ends', exitReason: 'EXPIRED', outcome }
}
