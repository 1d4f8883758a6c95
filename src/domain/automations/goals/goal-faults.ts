import { SuccessGoal } from '../../../../schema/automation-goals.ts'
import { AUTOMATION_LIMITS } from '../../../../schema/automation-parts.ts'
import type { Definition } from '../../../../schema/automation.ts'
import { isRecord } from '../../../../schema/json.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import { didYouMean, joinPath, kindOf, schemaFaults, withDefaults } from '../../../catalogue/schema-faults.ts'
import { goalFiltersOf, type PlacedFilter } from '../../audience/check.ts'
import { pathFault, validateFilters, validateWhere } from '../../audience/validate.ts'
import { emailStepIds, idFaults } from '../definition/read-step.ts'

/**
 * The goals that have no fault, with their defaults filled in; the filters of these goals with their paths; and every
 * fault of the input.
 */
export type GoalsReading = { goals: SuccessGoal[]; filters: PlacedFilter[]; faults: Fault[] }

type Raw = Record<string, unknown>

/** Reads raw success goals. Their filters may name the EMAIL steps among `steps`. */
export function readGoals(raw: unknown, steps: readonly unknown[] = []): GoalsReading {
  const path = 'successGoals'
  if (raw === undefined || raw === null) return { goals: [], filters: [], faults: [] }
  if (!Array.isArray(raw)) {
    return { goals: [], filters: [], faults: [{ path, message: `must be a list, not ${kindOf(raw)}` }] }
  }
  const most = AUTOMATION_LIMITS.goals
  const faults: Fault[] =
    raw.length > most ? [{ path, message: `a workflow has at most ${most} goals, this one has more` }] : []
  const emailSteps = emailStepIds(steps)
  const seen = new Set<unknown>()
  const goals: SuccessGoal[] = []
  const filters: PlacedFilter[] = []
  for (const [index, goal] of raw.slice(0, most).entries()) {
    const own = faultsOf(goal, joinPath(path, index), emailSteps)
    if (isRecord(goal) && typeof goal.id === 'string' && seen.size === seen.add(goal.id).size) {
      own.push({
        path: `${joinPath(path, index)}.id`,
        message: 'is the id of another goal already; choose another one',
      })
    }
    faults.push(...own)
    if (own.length > 0) continue
    // The cast is safe: without faults, the schema has accepted the goal.
    const read = withDefaults(SuccessGoal, goal) as SuccessGoal
    goals.push(read)
    filters.push(...goalFiltersOf(read, joinPath(path, index)))
  }
  return { goals, filters, faults }
}

/** Returns a fault for each GOAL step that names a goal which is not in `ids`. Steps in `unreadable` are left out. */
export function goalStepFaults(
  { steps }: Definition,
  unreadable: ReadonlySet<number>,
  ids: readonly string[],
): Fault[] {
  return steps.flatMap((step, position) => {
    if (step.type !== 'GOAL' || unreadable.has(position) || ids.includes(step.config.goalId)) return []
    const none = ids.length === 0 ? 'successGoals has none' : didYouMean(step.config.goalId, ids)
    const message = `there is no goal ${JSON.stringify(step.config.goalId)}; ${none}`
    return [{ stepId: step.id, path: `steps[${position}].config.goalId`, message }]
  })
}

/**
 * Returns a fault for each goal that counts from the first email of a graph without EMAIL steps. For publishing only.
 */
export function windowFaultsOf(goals: readonly SuccessGoal[], { steps }: Definition): Fault[] {
  if (steps.some(({ type }) => type === 'EMAIL')) return []
  return goals.flatMap(({ countFrom }, index) => {
    if (countFrom !== 'FIRST_EMAIL') return []
    const message = 'counts from the first email, and no step sends one; add an EMAIL, or count from ENTRY'
    return [{ path: `successGoals[${index}].countFrom`, message }]
  })
}

/** Returns the ids of raw goals, including goals with faults. */
export function goalIds(raw: unknown): string[] {
  if (!Array.isArray(raw)) return []
  return raw.flatMap((goal: unknown) => (isRecord(goal) && typeof goal.id === 'string' ? [goal.id] : []))
}

function faultsOf(goal: unknown, path: string, emailSteps: ReadonlySet<string>): Fault[] {
  if (!isRecord(goal))
    return [{ path, message: `must be a goal {id, name, event | filters}, not ${kindOf(goal)}` }]
  const shape = [...schemaFaults(SuccessGoal, goal, { path }), ...idFaults(goal.id, path)]
  return [...shape, ...meansFaults(goal, path, emailSteps)]
}

/** Checks that a goal has either an event or filters, and `where` and `valuePath` only with an event. */
function meansFaults(goal: Raw, path: string, emailSteps: ReadonlySet<string>): Fault[] {
  const { event, where, filters, valuePath } = goal
  const faults: Fault[] = []
  const fault = (member: string, message: string) => faults.push({ path: joinPath(path, member), message })
  if (event === undefined && filters === undefined) {
    const message = 'says not when it is reached; give it an event, such as "SUBSCRIBER_PAYMENT", or filters'
    faults.push({ path, message })
  }
  if (event !== undefined && filters !== undefined) fault('filters', 'cannot stand beside event; choose one')
  if (event === undefined && where !== undefined)
    fault('where', 'is about the data of an event; name one, or use filters')
  if (event === undefined && valuePath !== undefined) {
    fault('valuePath', 'is a path into the data of an event; name one, or leave it out')
  }
  const wrong = typeof valuePath === 'string' ? pathFault(valuePath) : null
  if (wrong !== null) fault('valuePath', wrong)
  if (Array.isArray(where)) faults.push(...validateWhere(where, joinPath(path, 'where')))
  if (Array.isArray(filters)) {
    if (filters.length === 0) fault('filters', 'are empty, which holds for everybody; name one at least')
    faults.push(...validateFilters(filters, joinPath(path, 'filters'), { entry: true, emailSteps }))
  }
  return faults
}

/**
 * Returns a warning for each GOAL step that has no effect because its goal has `exitOnReach`: the run ends as soon as
 * it reaches the goal, at whichever step it is.
 */
export function goalWarnings({ steps, edges }: Definition, goals: readonly SuccessGoal[]): string[] {
  const leaving = new Set(goals.filter(({ exitOnReach }) => exitOnReach).map(({ id }) => id))
  return steps.flatMap((step) => {
    if (step.type !== 'GOAL' || !leaving.has(step.config.goalId)) return []
    const { goalId, ifUnmet } = step.config
    const about = `Step ${step.id}: reaching the goal ${goalId} ends a run at once, at whatever step it is (exitOnReach), so`
    const repair = 'give the goal exitOnReach: false to have this step decide.'
    if (ifUnmet === 'CONTINUE')
      return [`${about} whoever comes here has not reached it and passes; ${repair}`]
    const isFollowed = edges.some(({ from }) => from === step.id)
    return isFollowed ? [`${about} nobody goes on from here to the steps behind it; ${repair}`] : []
  })
}
