import type { Step } from '../../../../schema/automation.ts'
import { nextStep } from '../../../../temporal/graph.ts'
import { COMPLETED, type End, settlementOf } from '../runs/settlement.ts'
import type { Begun } from './firing.ts'
import { BY_GOAL, reachByFilters } from './goals.ts'
import type { Option, Place, World } from './place.ts'
import { endOf, simulateStep } from './steps.ts'

/** A step on a way, when it was reached (epoch ms), and the option that was taken. */
export type WayVisit = { step: Step; at: number; option: Option }

/** One way: it begins at a trigger, or where it branches off an earlier way (`branchOf`). */
export type Way = {
  number: number
  branchOf: { way: number; visit: number } | null
  visits: WayVisit[]
  at: number
  /** The end of the run, or why the way stops although the run goes on. */
  end: End | 'WAITS_FOREVER' | 'TOO_LONG' | 'AS_BEFORE'
}

type Start = { branchOf: Way['branchOf']; step: Step; place: Place; option?: Option }

/** The most visits of one way, because a cycle with a wait in it never ends by itself. */
const MOST_VISITS = 500
/** Once all ways together have more visits than this, further ways end where they meet a step that was shown before. */
const AMPLE_VISITS = 500

/**
 * Walks all ways. Each entry begins a way on which nothing is assumed. Wherever something else can happen, and no way
 * has left the step by that port yet, another way branches off. So each possible port and end of a step is taken once.
 */
export async function walkAll(world: World, entries: readonly Begun[], from: number): Promise<Way[]> {
  const starts: Start[] = entries.map(({ step, state }) => ({
    branchOf: null,
    step,
    place: { world, state, at: from },
  }))
  const ways: Way[] = []
  const taken = new Set<string>()
  const shown = new Set<Step>()
  let count = 0
  // The loop also visits starts that `branch` adds while it runs.
  for (const start of starts) {
    const way: Way = {
      number: ways.length + 1,
      branchOf: start.branchOf,
      visits: [],
      at: start.place.at,
      end: 'TOO_LONG',
    }
    ways.push(way)
    await walk(start, way)
    count += way.visits.length
    for (const { step } of way.visits) shown.add(step)
  }
  return ways

  async function walk({ step: first, place: begin, option: given }: Start, way: Way): Promise<void> {
    let step = first
    const begun = given ? null : await reachByFilters(begin)
    if (begun?.goalId) {
      way.end = BY_GOAL
      return
    }
    let place = { ...begin, state: begun?.state ?? begin.state }
    while (way.visits.length < MOST_VISITS) {
      const isFirst = way.visits.length === 0
      const [option, ...others] = isFirst && given ? [given] : await simulateStep(place, step)
      if (!option) return
      taken.add(portOf(step, option))
      for (const other of others) branch(other, step, place, way)
      way.visits.push({ step, at: place.at, option })
      way.at = option.at
      const end = endOf(step, option) ?? (option.result === null ? 'WAITS_FOREVER' : null)
      const port = leavesBy(step, option)
      const next = port === null ? undefined : nextStep(world.graph, step.id, port)
      if (end !== null || next === undefined) {
        way.end = end ?? COMPLETED
        return
      }
      if (count > AMPLE_VISITS && shown.has(next)) {
        way.end = 'AS_BEFORE'
        return
      }
      step = next
      place = { ...place, state: option.state, at: option.at }
    }
  }

  function branch(option: Option, step: Step, place: Place, { number, visits }: Way): void {
    const port = portOf(step, option)
    if (taken.has(port)) return
    taken.add(port)
    starts.push({ branchOf: { way: number, visit: visits.length }, step, place, option })
  }
}

/** Returns the port by which an option leaves its step, or null if the way ends. */
export function leavesBy(step: Step, { result }: Option): string | null {
  return result === null ? null : settlementOf(step, result).port
}

/**
 * Returns a key that distinguishes the ways out of a step: its ports, and the reasons for which the run may end there.
 */
function portOf(step: Step, option: Option): string {
  return JSON.stringify([step.id, leavesBy(step, option) ?? endOf(step, option)?.exitReason ?? 'stays'])
}
