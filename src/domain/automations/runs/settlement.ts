import type { Step } from '../../../../schema/automation.ts'
import type { ExitReason } from '../../../../schema/values.ts'
import { skipPort } from '../../../../temporal/graph.ts'
import type { Settled } from '../steps/step.ts'

/** How a run ends. */
export type End = {
  status: 'COMPLETED' | 'CANCELED' | 'FAILED'
  exitReason: ExitReason
  error: string | null
}

/** Returns the port by which a step is left, or the end of the run. Shared by the engine and the simulator. */
export function settlementOf(
  step: Step,
  result: Settled,
): { port: string; end: null } | { port: null; end: End } {
  if (result.kind === 'left') return { port: result.port, end: null }
  if (result.kind === 'ends') {
    const status = result.exitReason === 'EXIT_RULE' ? 'CANCELED' : 'COMPLETED'
    return { port: null, end: { status, exitReason: result.exitReason, error: null } }
  }
  if (step.onError === 'CONTINUE') return { port: skipPort(step), end: null }
  if (step.onError === 'EXIT') {
    return { port: null, end: { status: 'COMPLETED', exitReason: 'ERROR', error: null } }
  }
  const error = `Step ${step.id} failed: ${result.reason}`
  return { port: null, end: { status: 'FAILED', exitReason: 'ERROR', error } }
}

/** The end of a run whose last step leads to no other step. */
export const COMPLETED: End = { status: 'COMPLETED', exitReason: 'END', error: null }
