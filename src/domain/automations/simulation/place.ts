import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { Settings, Step } from '../../../../schema/automation.ts'
import type { SimulatedVisit } from '../../../../schema/simulation.ts'
import type { SubscriberStatus } from '../../../../schema/values.ts'
import type { Graph } from '../../../../temporal/graph.ts'
import type { TagRow } from '../../tags.ts'
import type { RunState } from '../runs/run-state.ts'
import type { End } from '../runs/settlement.ts'
import type { Settled, StepResult } from '../steps/step.ts'
import type { Moment } from '../steps/timing.ts'
import type { Filtering, Subject } from './filters.ts'
import { NOBODY, type State } from './state.ts'

/** An email as a simulation shows it. */
export type ShownEmail = {
  campaignId: string | null
  render(state: State): NonNullable<SimulatedVisit['email']>
}

/** What all ways of a simulation share. */
export type World = {
  graph: Graph
  settings: Settings
  goals: readonly SuccessGoal[]
  /** When the run is entered. */
  enteredAt: number
  /** Of steps that name none. */
  timezone: string
  subject: Subject
  filtering: Filtering
  /** What time decides of a step, by the step and the moment: ways that part come to the same ones. */
  timing: Map<string, StepResult | null>
  emails: ReadonlyMap<string, ShownEmail>
  /** The tags that the graph names, by their names as it writes them. */
  tags: ReadonlyMap<string, TagRow>
  /** The variants that the person had in earlier runs; null where nobody real is simulated in a real workflow. */
  earlier: ReadonlyMap<string, string> | null
  /** Why somebody of this status gets no email, or null. */
  consent(status: SubscriberStatus, marketing: boolean): string | null
}

/** Where a way stands: about to enter a step at a moment. */
export type Place = { world: World; state: State; at: number }

/**
 * What a step may come to. The first of its options is what would happen by itself; the others need what they assume.
 * `result` is null where the run would wait for ever.
 */
export type Option = {
  result: Settled | null
  state: State
  /** When it is left, and until when it waited. */
  at: number
  until: number | null
  assumed: string | null
  chance: number | null
  email: SimulatedVisit['email']
  /** The end of the run, where its own rules or the person's leave end it. */
  end: End | null
}

/** An option that is taken at once. */
export function option({ state, at }: Place, result: Settled | null, more: Partial<Option> = {}): Option {
  return { result, state, at, until: null, assumed: null, chance: null, email: null, end: null, ...more }
}

/** The same moment for what decides about time: nothing is late, and a run of nobody has no jitter. */
export function momentOf(
  { world }: Place,
  at: number,
): Moment & { run: Pick<RunState, 'wakeReason'>; due: number } {
  const run = { id: NOBODY, now: at, wakeReason: null }
  return { run, clock: { now: at, timezone: world.timezone }, due: at }
}

/** What a step comes to at a place by the time alone; time zones are slow. */
export function timed<Result extends StepResult | null>(
  { world: { timing }, at }: Place,
  { id }: Pick<Step, 'id'>,
  decide: () => Result,
): Result {
  const key = `${at} ${id}`
  // One step has one decider, whose result this is.
  const known = timing.get(key) as Result | undefined
  const result = known === undefined ? decide() : known
  timing.set(key, result)
  return result
}

/** Whether an edge leaves the step by this port. */
export function isConnected({ world }: Place, step: Step, port: string): boolean {
  return world.graph.targets.get(step.id)?.has(port) ?? false
}
