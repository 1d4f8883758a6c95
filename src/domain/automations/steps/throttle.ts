import { sql } from 'kysely'

import type { StepOf } from '../../../../schema/automation.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import { row } from '../../../database.ts'
import { type Enter, left, type StepResult, type Turn } from './step.ts'
import { leaveWait, waitUntil } from './timing.ts'

/**
 * Takes a place in the window that is being filled, or in the next one if it is full. The counter is one row per step,
 * whose lock gives places in the order of arrival and keeps each window within its limit, however many runs arrive at
 * once.
 */
export const enterThrottle: Enter<'THROTTLE'> = async ({ call, run }, { id, config }) => {
  const { limit, overflow } = config
  const per = sql`make_interval(secs => ${durationMilliseconds(config.per) / 1_000}::float8)`
  const isOver = sql`counter.window_at + ${per} <= clock_timestamp()`
  const hasRoom = sql`counter.taken < ${limit}::int`
  const found = await row<{ windowAt: number; isOpen: boolean }>(
    call.em,
    sql`insert into automation_throttle as counter (organization_id, automation_id, step_id, window_at, taken)
      values (${call.organization.id}, ${run.automationId}, ${id}, clock_timestamp(), 1)
      on conflict (organization_id, automation_id, step_id) do update set
        window_at = case when ${isOver} then clock_timestamp() when ${hasRoom} then counter.window_at
          else counter.window_at + ${per} end,
        taken = case when ${isOver} or not ${hasRoom} then 1 else counter.taken + 1 end
      where ${overflow}::text = 'HOLD' or ${isOver} or (${hasRoom} and counter.window_at <= clock_timestamp())
      returning extract(epoch from window_at)::float8 * 1000 as "windowAt",
        window_at <= clock_timestamp() + interval '1 millisecond' as "isOpen"`,
  )
  if (!found) return { ...left('skipped', { result: 'FULL' }), decision: 'THROTTLE' }
  if (found.isOpen) return left('next', { result: 'PASSED' })
  return waitUntil(found.windowAt, run, { reason: 'THROTTLE' })
}

/**
 * Continues a run that waits for its place. Returns null while it has to wait. If its window passed while a pause held
 * the run, it takes a new place.
 */
export async function leaveThrottle(turn: Turn, step: StepOf<'THROTTLE'>): Promise<StepResult | null> {
  const { run, due, isHeldBack } = turn
  const over = leaveWait(turn)
  const isMissed = isHeldBack && due + durationMilliseconds(step.config.per) <= run.now
  if (over === null || !isMissed || run.wakeReason === 'FAST_FORWARD') return over
  return await enterThrottle(turn, step)
}
