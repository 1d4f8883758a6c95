import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { StepConfigs } from '../../../../schema/automation-steps.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import type { GoalWindow } from '../goals/goal-window.ts'
import { readGoal, reachByFilters } from '../goals/goals.ts'
import type { RunState } from '../runs/run-state.ts'
import { type Enter, left, type Outcome, type StepResult, type Turn } from './step.ts'

/** The input of a GOAL step: whether the run has reached the goal, and the goal's window (null before it begins). */
export type GoalFacts = { reached: boolean; window: GoalWindow | null; now: number }

/** Decides by whether the run has reached the goal. Its filters are evaluated now as well. */
export const enterGoal: Enter<'GOAL'> = async (turn, { config }) => {
  const goal = goalOf(turn, config)
  return decideGoal(config, goal, await factsOf(turn, goal))
}

/** Continues a run that waits for its goal. Returns null while it has to wait. */
export async function leaveGoal(turn: Turn, { config }: StepOf<'GOAL'>): Promise<StepResult | null> {
  const { run } = turn
  if (run.wakeReason === 'FAST_FORWARD') return left('next', { result: 'FAST_FORWARD' })
  const goal = goalOf(turn, config)
  const result = decideGoal(config, goal, await factsOf(turn, goal))
  return result.kind === 'waits' ? null : result
}

/** Decides the result of a GOAL step. Pure. */
export function decideGoal(
  { goalId, ifUnmet }: StepConfigs['GOAL'],
  { exitOnReach }: Pick<SuccessGoal, 'exitOnReach'>,
  { reached, window, now }: GoalFacts,
): StepResult {
  if (reached) {
    const outcome = { result: 'REACHED', goalId }
    return exitOnReach ? { kind: 'ends', exitReason: 'GOAL', outcome } : left('next', outcome)
  }
  const unmet: Outcome = { result: 'UNMET', goalId }
  if (ifUnmet === 'CONTINUE') return left('next', unmet)
  if (ifUnmet === 'EXIT') return { kind: 'ends', exitReason: 'EXIT_STEP', outcome: unmet }
  if (window === null)
    return { kind: 'ends', exitReason: 'EXPIRED', outcome: { ...unmet, reason: 'NO_EMAIL' } }
  if (window.expiresAt <= now) {
    return { kind: 'ends', exitReason: 'EXPIRED', outcome: { ...unmet, reason: 'WINDOW_CLOSED' } }
  }
  const wakeAt = Math.ceil(window.expiresAt)
  const outcome = { result: 'WAITING', goalId, until: new Date(wakeAt).toISOString() }
  return { kind: 'waits', waitKind: 'GOAL', wakeAt, outcome }
}

function goalOf({ version }: Turn, { goalId }: StepConfigs['GOAL']): SuccessGoal {
  const goal = version.definition.successGoals.find(({ id }) => id === goalId)
  if (!goal) throw new Error('a published GOAL step names a goal that its version does not have')
  return goal
}

async function factsOf(turn: Turn, goal: SuccessGoal): Promise<GoalFacts> {
  const { now }: RunState = turn.run
  const known = await readGoal(turn, goal)
  if (known.reached || !goal.filters) return { ...known, now }
  const reached = await reachByFilters(turn, [goal])
  return { ...known, reached: reached.length > 0, now }
}
