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
 * What waits decide from what they are told, without a look at anything: the engine and the simulator ask the same. A
 * moment is the run's own now, and when the step before it was over.
 */
export type Moment = { run: Pick<RunState, 'id' | 'now'>; clock: Clock }

/** Calendar waits end within this long of their time, each run at its own moment. */
const JITTER_MS = 120_000

/** Years have four digits on the wire and in Temporal: whoever would wait longer waits until the last of them is over. */
const LAST_MOMENT = Date.UTC(9999, 11, 31, 23, 59, 59)

/** A wait for a time. */
export function decideWait({ run, clock }: Moment, config: StepConfigs['WAIT']): StepResult {
  const due = waitDue(config, clock)
  return waitUntil(isCalendarWait(config) ? due + jitterOf(run) : due, run)
}

/** A wait for a date. */
export function decideDate(moment: Moment, config: WaitUntilConfigs['DATE']): StepResult {
  return waitLimited(moment, dateDue(config, moment.clock), limitOf(moment.clock.now, config.timeout))
}

/** A wait for hours of the day; `limit` is until when one that goes on may last. */
export function decideWindow(
  moment: Moment,
  config: WaitUntilConfigs['TIME_WINDOW'],
  limit = limitOf(moment.clock.now, config.timeout),
): StepResult {
  const { run, clock } = moment
  const opens = windowOpens(config, clock)
  return waitLimited(moment, opens > clock.now ? opens + windowJitter(run, config) : opens, limit)
}

/** A wait for the date that a field has; `limit` is until when one that goes on may last. */
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

/** A wait for an event that has not come yet. */
export function decideEvent(
  { clock }: Moment,
  { eventType, timeout }: WaitUntilConfigs['EVENT'],
): StepResult {
  const outcome = { result: 'WAITING', eventType }
  return { kind: 'waits', waitKind: 'EVENT', wakeAt: limitOf(clock.now, timeout), outcome }
}

/** A wait for filters that do not hold yet. */
export function decideCondition({ clock }: Moment, { timeout }: WaitUntilConfigs['CONDITION']): StepResult {
  const outcome = { result: 'WAITING' }
  return { kind: 'waits', waitKind: 'CONDITION', wakeAt: limitOf(clock.now, timeout), outcome }
}

/** How a WAIT_UNTIL is left whose time is over, or which somebody has cut short. */
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

/** Looks at a wait for a time: null while it goes on. */
export function leaveWait({ run }: { run: Pick<RunState, 'wakeReason' | 'wakeAt' | 'now'> }): Settled | null {
  if (run.wakeReason === 'FAST_FORWARD') return left('next', { result: 'FAST_FORWARD' })
  return isElapsed(run) ? left('next', { result: 'ELAPSED' }) : null
}

/** Whether the time of a wait has come. */
export function isElapsed(run: Pick<RunState, 'wakeAt' | 'now'>): boolean {
  return run.wakeAt !== null && run.wakeAt <= run.now
}

/** A run's own moment within the jitter: the same for every retry, spread evenly by the random end of its id. */
function jitterOf(run: Pick<RunState, 'id'>, most = JITTER_MS): number {
  return (Number.parseInt(run.id.slice(-8), 16) / 2 ** 32) * most
}

/** The same for hours that open for many at once: each still finds them open. */
export function windowJitter(run: Pick<RunState, 'id'>, window: SendWindow): number {
  return jitterOf(run, Math.min(JITTER_MS, windowLength(window) / 2))
}

/** Waits until a moment, or goes on where it has passed. */
export function waitUntil(
  due: number,
  run: Pick<RunState, 'now'>,
  details: { reason?: string; port?: string; atMostUntil?: string } = {},
): StepResult {
  const wakeAt = Math.min(Math.ceil(due), LAST_MOMENT)
  const { port = 'next', ...more } = details
  const outcome = { result: 'WAITING', until: new Date(wakeAt).toISOString(), ...more }
  // Not by the next whole millisecond: hours that are open now begin at this very moment, a part of one into it.
  if (due <= run.now) return left(port, { ...outcome, result: 'ELAPSED' })
  return { kind: 'waits', waitKind: 'TIME', wakeAt, outcome }
}

/** As waitUntil, for as long as the time-out lets it; the outcome says how long, for who looks at the wait again. */
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
