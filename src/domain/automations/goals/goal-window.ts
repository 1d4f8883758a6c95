import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import { isRecord } from '../../../../schema/json.ts'

const DAY_MS = 86_400_000
/** Beyond this a value does not fit its column, and is no amount of money either. */
const MOST_VALUE = 1e15

/** From when and until when a goal counts, in epoch milliseconds. */
export type GoalWindow = { opensAt: number; expiresAt: number }

/** The window of a goal; null while it has not begun, because no email has gone. A holdout stands for the first email. */
export function windowOf(
  goal: Pick<SuccessGoal, 'countFrom' | 'windowDays'>,
  { enteredAt, firstEmailAt }: { enteredAt: number; firstEmailAt: number | null },
): GoalWindow | null {
  const opensAt = goal.countFrom === 'ENTRY' ? enteredAt : firstEmailAt
  return opensAt === null ? null : { opensAt, expiresAt: opensAt + goal.windowDays * DAY_MS }
}

/** What a conversion is worth: the number at the goal's path in the event, in its currency; text that is a number counts. */
export function valueOf(
  { valuePath }: Pick<SuccessGoal, 'valuePath'>,
  data: Record<string, unknown>,
): { value: number | null; currency: string | null } {
  if (valuePath === undefined) return { value: null, currency: null }
  let found: unknown = data
  for (const part of valuePath.split('.')) {
    if (Array.isArray(found)) found = found[Number(part)]
    else found = isRecord(found) && Object.hasOwn(found, part) ? found[part] : undefined
  }
  const value = typeof found === 'string' && found.trim() !== '' ? Number(found) : found
  if (typeof value !== 'number' || !(Math.abs(value) < MOST_VALUE)) return { value: null, currency: null }
  const { currency } = data
  return { value, currency: typeof currency === 'string' ? currency.slice(0, 3) : null }
}
