import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import { valueAt } from '../../../../schema/json.ts'

const DAY_MS = 86_400_000
/** Values from this size on are ignored: they do not fit the column, and no real amount is that large. */
const MOST_VALUE = 1e15

/** The time in which a goal can be reached, in epoch milliseconds. */
export type GoalWindow = { opensAt: number; expiresAt: number }

/**
 * Returns the window of a goal, or null if it counts from the first email and `firstEmailAt` is null. For a run in a
 * holdout, `firstEmailAt` is the time of the split.
 */
export function windowOf(
  goal: Pick<SuccessGoal, 'countFrom' | 'windowDays'>,
  { enteredAt, firstEmailAt }: { enteredAt: number; firstEmailAt: number | null },
): GoalWindow | null {
  const opensAt = goal.countFrom === 'ENTRY' ? enteredAt : firstEmailAt
  return opensAt === null ? null : { opensAt, expiresAt: opensAt + goal.windowDays * DAY_MS }
}

/**
 * Returns the value of a conversion: the number, or numeric string, at the goal's `valuePath` in the event data, and
 * the event's `currency`. Both are null if there is no such number.
 */
export function valueOf(
  { valuePath }: Pick<SuccessGoal, 'valuePath'>,
  data: Record<string, unknown>,
): { value: number | null; currency: string | null } {
  if (valuePath === undefined) return { value: null, currency: null }
  const found = valueAt(data, valuePath)
  const value = typeof found === 'string' && found.trim() !== '' ? Number(found) : found
  if (typeof value !== 'number' || !(Math.abs(value) < MOST_VALUE)) return { value: null, currency: null }
  const { currency } = data
  return { value, currency: typeof currency === 'string' ? currency.slice(0, 3) : null }
}
