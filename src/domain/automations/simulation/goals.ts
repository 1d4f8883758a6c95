import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import { type GoalWindow, windowOf } from '../goals/goal-window.ts'
import type { End } from '../runs/settlement.ts'
import { decideGoal } from '../steps/goal.ts'
import { type Option, option, type Place } from './place.ts'
import type { SimulatedEvent, State } from './state.ts'

/**
 * Simulates a GOAL step: first the option that follows from the events of the way and the passing of time, then the one
 * in which the goal is reached, or not, instead.
 */
export async function simulateGoal(place: Place, { config }: StepOf<'GOAL'>): Promise<Option[]> {
  const { world, state, at } = place
  const goal = world.goals.find(({ id }) => id === config.goalId)
  if (!goal) return []
  const window = windowIn(place, goal)
  const known = state.goals.has(goal.id) || (await holds(place, goal))
  const met = decideGoal(config, goal, { reached: true, window, now: at })
  if (met.kind === 'waits') return []
  if (known) return [option(place, met)]
  const assuming = { ...state, goals: new Set([...state.goals, goal.id]) }
  const assumed =
    config.ifUnmet === 'WAIT'
      ? `The goal ${goal.name} is reached as soon as they wait for it.`
      : `The goal ${goal.name} has been reached by now.`
  const other = option(place, met, { state: assuming, assumed })
  const unmet = decideGoal(config, goal, { reached: false, window, now: at })
  if (unmet.kind !== 'waits') return [option(place, unmet), other]
  // The wait is over when the window closes.
  const until = unmet.wakeAt ?? at
  const closed = decideGoal(config, goal, { reached: false, window, now: until })
  const over = option({ ...place, at: until }, closed.kind === 'waits' ? null : closed, { until })
  // A goal with `exitOnReach` ends the run during any wait, which `passTime` does.
  const reachedAt = goal.exitOnReach ? null : await comesToHold(place, goal, until)
  if (reachedAt === null) return [over, other]
  return [
    option({ ...place, at: reachedAt }, met, { state: assuming, until: reachedAt }),
    { ...over, assumed: `The goal ${goal.name} is not reached before its window closes.` },
  ]
}

/** The end of a run that has reached a goal with `exitOnReach`. */
export const BY_GOAL: End = { status: 'COMPLETED', exitReason: 'GOAL', error: null }

/** The state with the goals reached so far; `goalId` is a newly reached goal that ends the run, or null. */
type Reaching = { state: State; goalId: string | null }

/** Adds the goals whose filters match at a place. */
export async function reachByFilters(place: Place): Promise<Reaching> {
  return await reachWhere(place, (goal) => holds(place, goal))
}

/** Adds the goals that one of these new events reaches. */
export async function reachByEvents(place: Place, events: readonly SimulatedEvent[]): Promise<Reaching> {
  return await reachWhere(place, async (goal) => {
    for (const { type, data } of events) {
      if (type !== goal.event || !isOpen(windowIn(place, goal), place.at)) continue
      if (await place.world.filtering.fulfils(data, goal.where ?? [])) return true
    }
    return false
  })
}

/**
 * Adds the goals whose filters start to match during a wait just because time passes, as the engine checks them during
 * any wait. A goal with `exitOnReach` ends the run at that moment.
 */
export async function passTime(place: Place, each: Option): Promise<Option> {
  const end = each.result === null ? Infinity : each.at
  if (end === place.at) return each
  const reached: { goal: SuccessGoal; at: number }[] = []
  for (const goal of place.world.goals) {
    const at = place.state.goals.has(goal.id) ? null : await comesToHold(place, goal, end)
    if (at !== null) reached.push({ goal, at })
  }
  reached.sort((one, other) => one.at - other.at)
  const last = reached.find(({ goal }) => goal.exitOnReach)
  const noted = reached.filter(({ at }) => last === undefined || at <= last.at).map(({ goal }) => goal.id)
  const state = noted.length === 0 ? each.state : withGoals(last ? place.state : each.state, noted)
  if (!last) return { ...each, state }
  const { at } = last
  const outcome = { result: 'CANCELED', reason: 'GOAL', goalId: last.goal.id }
  return { ...each, result: { kind: 'ends', exitReason: 'GOAL', outcome }, state, at, until: at, email: null }
}

async function reachWhere(
  { world, state }: Place,
  isReached: (goal: SuccessGoal) => Promise<boolean>,
): Promise<Reaching> {
  const reached: SuccessGoal[] = []
  for (const goal of world.goals) if (!state.goals.has(goal.id) && (await isReached(goal))) reached.push(goal)
  const ids = reached.map(({ id }) => id)
  const goalId = reached.find(({ exitOnReach }) => exitOnReach)?.id ?? null
  return { state: ids.length === 0 ? state : withGoals(state, ids), goalId }
}

function withGoals(state: State, ids: readonly string[]): State {
  return { ...state, goals: new Set([...state.goals, ...ids]) }
}

async function holds(place: Place, goal: SuccessGoal): Promise<boolean> {
  const { world, state, at } = place
  if (!goal.filters || !isOpen(windowIn(place, goal), at)) return false
  return (await world.filtering.firstHolding([{ id: goal.id, filters: goal.filters }], state, at)) !== null
}

/** Returns when the filters of a goal start to match just because time passes, within its window and before `end`. */
async function comesToHold(place: Place, goal: SuccessGoal, end: number): Promise<number | null> {
  const window = windowIn(place, goal)
  if (!goal.filters || window === null) return null
  const between = { after: place.at, before: Math.min(end, window.expiresAt) }
  return await place.world.filtering.firstMoment(goal.filters, place.state, between)
}

function isOpen(window: GoalWindow | null, at: number): boolean {
  return window !== null && at >= window.opensAt && at < window.expiresAt
}

function windowIn({ world, state }: Place, goal: SuccessGoal): GoalWindow | null {
  const opened = [state.emails[0]?.at, state.heldOutAt].filter((at) => typeof at === 'number')
  const firstEmailAt = opened.length === 0 ? null : Math.min(...opened)
  return windowOf(goal, { enteredAt: world.enteredAt, firstEmailAt })
}
