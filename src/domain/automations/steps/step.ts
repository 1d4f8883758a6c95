import type { StepOf, StepType } from '../../../../schema/automation.ts'
import type { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import type { AudienceScope } from '../../audience/references.ts'
import type { Version } from '../definition/versions.ts'
import type { RunState, Visit, WaitKind } from '../runs/run-state.ts'
import type { Clock } from '../runs/schedule.ts'

/**
 * The input of a step. `clock.now` is when the previous step was over, `due` is when the run should have continued
 * (both epoch ms), `isHeldBack` is whether a pause had held it, and `visits` are the visits of this turn so far.
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

/** The outcome of a visit in the timeline: `result` is a code; other members give reasons and details. */
export type Outcome = { result: string } & Record<string, unknown>
type Left = { kind: 'left'; port: string; outcome: Outcome; endedAt?: number; decision?: string }

/**
 * The result of a step: it is left by a port, waits, ends the run, or failed. `decision` is why it did not act and
 * `code` why it failed, for the decision ledger; a null `code` means that the ledger has the failure already.
 */
export type StepResult =
  | Left
  | { kind: 'waits'; waitKind: WaitKind; wakeAt: number | null; outcome: Outcome }
  | { kind: 'ends'; exitReason: 'EXIT_STEP' | 'EXPIRED' | 'EXIT_RULE' | 'GOAL'; outcome: Outcome }
  | { kind: 'failed'; code: string | null; reason: string; outcome: Outcome }

/** The result of a step that is over. */
export type Settled = Exclude<StepResult, { kind: 'waits' }>

/** Executes a step when a run arrives at it. */
export type Enter<Type extends StepType> = (
  turn: Turn,
  step: StepOf<Type>,
) => StepResult | Promise<StepResult>

/** Makes the result of a step that is left by a port. `endedAt` (epoch ms) is when it was over, if not now. */
export function left(port: string, outcome: Outcome, endedAt?: number): Left {
  return { kind: 'left', port, outcome, ...(endedAt !== undefined && { endedAt }) }
}

/** Makes the result of a step in which a `Failure` was thrown. */
export function failedBy({ code, message }: Failure): Extract<StepResult, { kind: 'failed' }> {
  return { kind: 'failed', code, reason: message, outcome: { result: 'FAILED', reason: code } }
}

/** Returns the scope in which a step's filters are evaluated. */
export function scopeOf({ organization }: Call): AudienceScope {
  return { organizationId: organization.id }
}

/** Returns the data that the filters of a run's steps can name besides the subscriber. */
export function entryOf(run: RunState) {
  return { entry: run.context, run: { automationId: run.automationId, runId: run.id } }
}
