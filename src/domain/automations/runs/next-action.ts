import type { NextAction } from '../../../../temporal/contract.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { encodeId } from '../../../ids.ts'
import { isOver, lastVisits, type RunState, type Visit } from './run-state.ts'

/** How often a held run looks again, in case it missed its resume. */
const HOLD_MS = 15 * 60_000
/** How often a wait without a time limit looks again. */
const IDLE_LOOK_MS = 24 * 3_600_000
const RECENT = 5

/** Tells the workflow to wait or end, after the visits of a turn. Labels are texts for operators in the Temporal UI. */
export async function nextAction(call: Call, run: RunState, visits: readonly Visit[]): Promise<NextAction> {
  const recent = await recentVisits(call, run, visits)
  if (isOver(run)) return ended(run, recent)
  const waitMs = run.wakeAt === null ? IDLE_LOOK_MS : Math.max(0, Math.ceil(run.wakeAt - run.now))
  return {
    ...place(run),
    kind: 'wait',
    waitMs,
    label: labelOf(run),
    state: run.status,
    nextAt: run.wakeAt,
    recentSteps: recent.map(inWords),
  }
}

/** Tells the workflow to hold while the automation is paused. */
export async function holdAction(call: Call, run: RunState): Promise<NextAction> {
  return {
    ...place(run),
    kind: 'hold',
    waitMs: HOLD_MS,
    label: `held at ${run.stepId ?? 'the start'} because the workflow is paused`,
    state: 'HELD',
    nextAt: null,
    recentSteps: (await recentVisits(call, run, [])).map(inWords),
  }
}

/** Tells the workflow to end because the run is over. `recent` are its last visits, newest first. */
export function ended(run: RunState, recent: readonly Visit[]): NextAction {
  return {
    ...place(run),
    kind: 'end',
    waitMs: 0,
    label: `ended at ${run.stepId ?? 'the start'}`,
    state: run.status,
    nextAt: null,
    recentSteps: recent.map(inWords),
    error: run.status === 'FAILED' ? failureOf(run, recent[0]) : null,
  }
}

/**
 * Says which step failed, why, and what to do. The text is stored in workflow histories, so of the reason it has only
 * codes and numbers, never text that may contain personal data.
 */
function failureOf(run: RunState, last: Visit | undefined): string {
  const id = encodeId('run', run.id)
  if (last?.outcome.result !== 'FAILED') {
    return `failed at step ${run.stepId ?? ''}; get_workflow_run of ${id} says why`
  }
  const { reason, fault, status, attempts } = last.outcome
  const facts = [
    ...[reason, fault].filter((code) => typeof code === 'string' && /^[A-Z][A-Z_]*$/.test(code)),
    ...(typeof status === 'number' ? [`answered ${status}`] : []),
    ...(typeof attempts === 'number' && attempts > 1 ? [`after ${attempts} attempts`] : []),
  ]
  const why = facts.length > 0 ? ` (${facts.join(', ')})` : ''
  return [
    `step ${last.stepId} (${last.type}) failed${why}; get_workflow_run of ${id} tells the whole reason.`,
    'Put it right and retry: with retry_workflow_run, or by a reset of this workflow to its last workflow task.',
    'The step is done once more, and nothing before it.',
  ].join(' ')
}

/** Tells the workflow to end because its run does not exist. */
export function gone(label: string): NextAction {
  return {
    kind: 'end',
    waitMs: 0,
    label,
    state: 'CANCELED',
    stepId: null,
    visit: 0,
    nextAt: null,
    recentSteps: [],
    exitReason: null,
    error: null,
  }
}

function labelOf(run: RunState): string {
  const until = run.wakeAt === null ? 'without a time limit' : `until ${new Date(run.wakeAt).toISOString()}`
  if (run.waitKind === 'MESSAGE') return `${run.stepId}: waits for the outcome of its email`
  if (run.waitKind === 'WEBHOOK') return `${run.stepId}: waits for what comes of its request`
  if (run.waitKind === 'EVENT') return `${run.stepId}: waits for an event ${until}`
  if (run.waitKind === 'CONDITION') return `${run.stepId}: waits for its filters to hold ${until}`
  if (run.waitKind === 'GOAL') return `${run.stepId}: waits for its goal ${until}`
  return `${run.stepId}: waits ${until}`
}

function place(run: RunState) {
  return { stepId: run.stepId, visit: run.visit, exitReason: run.exitReason, error: null }
}

async function recentVisits(call: Call, run: RunState, visits: readonly Visit[]): Promise<Visit[]> {
  const newest = visits.toReversed().slice(0, RECENT)
  const first = visits[0]?.visit ?? run.visit + 1
  const missing = RECENT - newest.length
  const older = missing > 0 && first > 1 ? await lastVisits(call, run.id, first, missing) : []
  return [...newest, ...older]
}

function inWords({ stepId, type, port, outcome }: Visit): string {
  const way = port === null ? '' : ` → ${port}`
  return `${stepId} (${type}) ${outcome.result}${way}`
}
