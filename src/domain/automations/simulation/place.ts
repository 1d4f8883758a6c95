import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { Settings, Step } from '../../../../schema/automation.ts'
import type { SimulatedVisit } from '../../../../schema/simulation.ts'
import type { SubscriberStatus } from '../../../../schema/values.ts'
import type { Graph } from '../../../../temporal/graph.ts'
import type { TagRow } from '../../subscribers/tags.ts'
import type { RunState } from '../runs/run-state.ts'
import type { End } from '../runs/settlement.ts'
import type { Settled, StepResult } from '../steps/step.ts'
import type { Moment } from '../steps/timing.ts'
import type { Filtering } from './filters.ts'
import type { Subject } from './simulated-tables.ts'
import { NOBODY, type State } from './state.ts'

/** An email as a simulation shows it. */
export type ShownEmail = {
  campaignId: string | null
  render(state: State): NonNullable<SimulatedVisit['email']>
}

/** The data that all ways of a simulation share. */
export type World = {
  graph: Graph
  settings: Settings
  goals: readonly SuccessGoal[]
  /** When the run is entered (epoch ms). */
  enteredAt: number
  /** The time zone of steps that do not set one. */
  timezone: string
  subject: Subject
  filtering: Filtering
  /** The results of steps that depend on time alone, by moment and step. Ways often share them. */
  timing: Map<string, StepResult | null>
  emails: ReadonlyMap<string, ShownEmail>
  /** The tags that the graph names, by their names as written there. */
  tags: ReadonlyMap<string, TagRow>
  /**
   * The variants of sticky SPLIT steps that the person had in earlier runs, by step id. Null for a sample, or a
   * definition without a workflow.
   */
  earlier: ReadonlyMap<string, string> | null
  /** Returns why the person would get no email with this status, or null. */
  consent(status: SubscriberStatus, marketing: boolean): string | null
}

/** The position of a way: about to enter a step at the moment `at` (epoch ms). */
export type Place = { world: World; state: State; at: number }

/**
 * A possible result of a step. The first of a step's options needs no assumption; `assumed` says what the others need.
 * `result` is null if the run would wait forever.
 */
export type Option = {
  result: Settled | null
  state: State
  /** When the step is left; `until` is the end of its wait, or null without one (both epoch ms). */
  at: number
  until: number | null
  assumed: string | null
  chance: number | null
  email: SimulatedVisit['email']
  /** The end of the run, if an exit rule, a goal or an unsubscribe ends it after this step. */
  end: End | null
}

/** Makes an option without a wait, unless `more` says otherwise. */
export function option({ state, at }: Place, result: Settled | null, more: Partial<Option> = {}): Option {
  return { result, state, at, until: null, assumed: null, chance: null, email: null, end: null, ...more }
}

/** Makes the input of the time decisions of steps. Nothing is late, and a run with the id `NOBODY` has no jitter. */
export function momentOf(
  { world }: Place,
  at: number,
): Moment & { run: Pick<RunState, 'wakeReason'>; due: number } {
  const run = { id: NOBODY, now: at, wakeReason: null }
  return { run, clock: { now: at, timezone: world.timezone }, due: at }
}

/** Caches a result of a step that depends on time alone, because time zone arithmetic is slow. */
export function timed<Result extends StepResult | null>(
  { world: { timing }, at }: Place,
  { id }: Pick<Step, 'id'>,
  decide: () => Result,
): Result {
  const key = `${at} ${id}`
  // The cast is safe: all results of one step come from the same function.
  const known = timing.get(key) as Result | undefined
  const result = known === undefined ? decide() : known
  timing.set(key, result)
  return result
}

/** Returns whether an edge leaves the step by this port. */
export function isConnected({ world }: Place, step: Step, port: string): boolean {
  return world.graph.targets.get(step.id)?.has(port) ?? false
}
