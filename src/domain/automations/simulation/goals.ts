import type { StepOf } from '../../../../schema/automation.ts'
import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import { type GoalWindow, windowOf } from '../goals/goal-window.ts'
import type { End } from '../runs/settlement.ts'
import type { State } from './state.ts'
import { type Option, option, type Place } from './place.ts'
import { decideGoal } from '../steps/goal.ts'

/** A GOAL step, by what has happened on the way; and as it goes where that is the other way round. */
export async function simulateGoal(place: Place, { config }: StepOf<'GOAL'>): Promise<Option[]> {
  const { world, state, at } = place
  const goal = world.goals.find(({ id }) => id === config.goalId)
  if (!goal) return []
  const window = windowIn(place, goal)
  const known = state.goals.has(goal.id) || (await isReached(place, goal, state.events.length))
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
  const over = decideGoal(config, goal, { reached: false, window, now: unmet.wakeAt ?? at })
  const until = unmet.wakeAt ?? at
  return [option({ ...place, at: until }, over.kind === 'waits' ? null : over, { until }), other]
}

/** The end of a run that has reached a goal with exitOnReach. */
export const BY_GOAL: End = { status: 'COMPLETED', exitReason: 'GOAL', error: null }

/** Whether a step took time or changed something: then the engine asks for goals. */
export function mayReach(place: Place, { state, at }: Pick<Option, 'state' | 'at'>): boolean {
  return at > place.at || state.events.length > place.state.events.length
}

/**
 * Notes the goals that are reached at a place, by its events from the given one on or by filters that hold there.
 * `goalId` is one that ends the run.
 */
export async function reachGoals(
  place: Place,
  from = place.state.events.length,
): Promise<{ state: State; goalId: string | null }> {
  const goals = new Set(place.state.goals)
  let goalId: string | null = null
  for (const goal of place.world.goals) {
    if (goals.has(goal.id) || !(await isReached(place, goal, from))) continue
    goals.add(goal.id)
    if (goal.exitOnReach) goalId ??= goal.id
  }
  const isSame = goals.size === place.state.goals.size
  return { state: isSame ? place.state : { ...place.state, goals }, goalId }
}

/** By an event of the way from the given place on, or by filters that hold; both within the window. */
async function isReached(place: Place, goal: SuccessGoal, from: number): Promise<boolean> {
  const { world, state, at } = place
  const window = windowIn(place, goal)
  if (window === null) return false
  const isOpen = (moment: number) => moment >= window.opensAt && moment < window.expiresAt
  if (goal.filters) {
    if (!isOpen(at)) return false
    return (await world.filtering.firstHolding([{ id: goal.id, filters: goal.filters }], state, at)) !== null
  }
  for (const event of state.events.slice(from)) {
    if (event.type !== goal.event || !isOpen(event.at)) continue
    if (await world.filtering.fulfils(event.data, goal.where ?? [])) return true
  }
  return false
}

function windowIn({ world, state }: Place, goal: SuccessGoal): GoalWindow | null {
  return windowOf(goal, { enteredAt: world.enteredAt, firstEmailAt: state.emails[0]?.at ?? null })
}
