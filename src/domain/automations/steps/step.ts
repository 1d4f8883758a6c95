import type { StepOf, StepType } from '../../../../schema/automation.ts'
import type { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import type { Version } from '../definition/versions.ts'
import type { RunState, Visit, WaitKind } from '../runs/run-state.ts'
import type { Clock } from '../runs/schedule.ts'

/**
 * What a step works with. `clock.now` is when the step before it was over, `due` when the run should have gone on,
 * `isHeldBack` whether it could not because it was held, `visits` are those of this turn so far.
 */
export type Turn = {
  call: Call
  run: RunState
  version: Version
  clock: Clock
  due: number
  isHeldBack: boolean
  visits: readonly Visit[]
}

/** What the timeline keeps of a visit: `result` is a word for programs, the rest says why and with what. */
export type Outcome = { result: string } & Record<string, unknown>
type Left = { kind: 'left'; port: string; outcome: Outcome; endedAt?: number; decision?: string }

/**
 * What a step came to: left by a port, waiting, the end of the run, or its failure. `decision` is why it did not act,
 * and `code` why it failed, for the ledger; null where that has it already.
 */
export type StepResult =
  | Left
  | { kind: 'waits'; waitKind: WaitKind; wakeAt: number | null; outcome: Outcome }
  | { kind: 'ends'; exitReason: 'EXIT_STEP' | 'EXPIRED' | 'EXIT_RULE' | 'GOAL'; outcome: Outcome }
  | { kind: 'failed'; code: string | null; reason: string; outcome: Outcome }

/** What a step that is over came to. */
export type Settled = Exclude<StepResult, { kind: 'waits' }>

/** Does a step that the run has just come to. */
export type Enter<Type extends StepType> = (
  turn: Turn,
  step: StepOf<Type>,
) => StepResult | Promise<StepResult>

/** The result of a step that is left at once. */
export function left(port: string, outcome: Outcome, endedAt?: number): Left {
  return { kind: 'left', port, outcome, ...(endedAt !== undefined && { endedAt }) }
}

/** What a refusal inside a step makes of it. */
export function failedBy({ code, message }: Failure): Extract<StepResult, { kind: 'failed' }> {
  return { kind: 'failed', code, reason: message, outcome: { result: 'FAILED', reason: code } }
}

/** Whose filters are asked. */
export function scopeOf({ organization }: Call): { organizationId: string } {
  return { organizationId: organization.id }
}

/** What the filters of a run's steps may name beside the subscriber. */
export function entryOf(run: RunState) {
  return { entry: run.context, run: { automationId: run.automationId, runId: run.id } }
}
