import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { Step } from '../../../../schema/automation.ts'
import type { NextAction, RunRequest } from '../../../../temporal/contract.ts'
import { JUMP_PORT, nextStep, skipPort } from '../../../../temporal/graph.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import type { NewEvent } from '../../event-rows.ts'
import { loadVersion } from '../definition/versions.ts'
import { beginGoals, reachByFilters } from '../goals/goals.ts'
import { failedBy, type Settled, type StepResult, type Turn } from '../steps/step.ts'
import { conditionsHold, enterStep, isWriting, leaveStep, mayEndItsRun } from '../steps/table.ts'
import { type Decision, recordDecisions } from './decisions.ts'
import { hitExitRule, watchExitRules } from './exit-rules.ts'
import { ended, gone, holdAction, nextAction } from './next-action.ts'
import { isReset, reopenRun } from './retry.ts'
import { isOver, lockRun, readEnd, type RunState, saveRun, type Visit } from './run-state.ts'
import { cancelRuns, endEventWaits, freePlaces, runFacts } from './runs.ts'
import { COMPLETED, type End, settlementOf } from './settlement.ts'

/** More steps than a graph has cannot follow each other without a wait. */
const MOST_STEPS = 1_000

type Walk = Turn & {
  visits: Visit[]
  decisions: Decision[]
  refusals: Refusals
  /** One of its own steps had the run ended, by a rule or by an unsubscribe, which told everybody already. */
  isEndTold: boolean
}

/** What a turn knows of earlier attempts at itself: the refusal of each step that was undone, by its place. */
export type Refusals = ReadonlyMap<string, Failure>

/**
 * A writing step was refused. What it had written must go, so the whole turn is rolled back and walked again with the
 * refusal known: that costs nothing where nothing is refused, which a savepoint for each step would.
 */
export class StepRefused extends Error {
  readonly place: string
  readonly failure: Failure

  constructor(place: string, failure: Failure) {
    super(`step refused: ${failure.code}`)
    this.place = place
    this.failure = failure
  }
}

/** The workflow that asks: see RunRequest. */
export type Asking = Pick<RunRequest, 'execution' | 'attempt'>

/**
 * Does all that is due in a run, in the caller's transaction and under the run's lock, until it waits, holds or ends.
 * What a step decided is stored with the run's new place, so asking again only repeats the answer. Who asks last
 * drives the run: of its workflow id Temporal has one at a time, and a reset of an older one ends the newer. One that was
 * reset after its run failed retries it. Throws StepRefused where the turn must be repeated.
 */
export async function advanceRun(
  caller: Call,
  runId: string,
  asking: Asking,
  refusals: Refusals = new Map(),
): Promise<NextAction> {
  const run = await lockRun(caller, runId)
  if (!run) return gone('the run no longer exists')
  const call = { ...caller, actor: { ...caller.actor, depth: run.depth } }
  if (isReset(run, asking)) await reopenRun(call, run)
  if (isOver(run)) return await nextAction(call, run, [])
  const isFirst = run.execution === null
  run.execution = asking.execution
  if (run.automationStatus === 'ARCHIVED') {
    await cancelRuns(call, [runId], 'ARCHIVED')
    return ended({ ...run, status: 'CANCELED', exitReason: 'ARCHIVED' }, [])
  }
  if (run.automationStatus === 'PAUSED') {
    // Nothing is asked of a wait that goes on: what it waits for may hold already, and it would step on.
    if (!isDue(run)) return await nextAction(call, run, [])
    // It has not begun: its first turn is still to come.
    if (isFirst) run.execution = null
    return await hold(call, run)
  }
  const version = await loadVersion(call.em, call.organization.id, run.versionId)
  const timezone = version.definition.settings.timezone ?? call.organization.timezone
  const clock = { now: run.now, timezone }
  const walk: Walk = {
    call,
    run,
    version,
    clock,
    due: dueOf(run),
    isHeldBack: run.dueAt !== null,
    visits: [],
    decisions: [],
    refusals,
    isEndTold: false,
  }
  run.dueAt = null
  const before = run.wakeAt
  if (isFirst) await begin(walk)
  if (!isOver(run)) await walkOn(walk)
  if (run.status === 'FAILED') run.failedIn = asking.attempt
  await recordDecisions(call, walk.decisions)
  if (walk.visits.length > 0 || isFirst || isOver(run) || run.held || run.wakeAt !== before) {
    run.held = false
    const events = isOver(run) && !walk.isEndTold ? [endEvent(run)] : []
    const recorded = await saveRun(call, run, walk.visits, events)
    if (recorded.isAwaited) await endEventWaits(call, recorded.events)
    if (isOver(run) && run.groupId !== null) await freePlaces(call, [{ ...run, groupId: run.groupId }])
  }
  return await nextAction(call, run, walk.visits)
}

/** Ends a run because an operator canceled its workflow. */
export async function cancelRunByOperator(call: Call, runId: string): Promise<NextAction> {
  const run = await lockRun(call, runId)
  if (!run) return gone('the run no longer exists')
  if (isOver(run)) return ended(run, [])
  await cancelRuns(call, [runId], 'MANUAL')
  return ended({ ...run, status: 'CANCELED', exitReason: 'MANUAL' }, [])
}

function isDue(run: RunState): boolean {
  if (run.waitKind === null || isUnderWay(run) || run.wakeReason !== null) return true
  return run.wakeAt !== null && run.wakeAt <= run.now
}

/** Whether it waits for something of its own on its way out, which nobody can cut short. */
function isUnderWay({ waitKind }: RunState): boolean {
  return waitKind === 'MESSAGE' || waitKind === 'WEBHOOK'
}

/** When the run should have gone on: before it was held, or when its wait was over. */
function dueOf(run: RunState): number {
  const isWaiting = run.waitKind !== null && !isUnderWay(run)
  return Math.min(run.now, run.dueAt ?? (isWaiting ? run.wakeAt : null) ?? run.now)
}

/** From its first turn at the latest the run's goals and exit rules hear of events; what they missed is looked for. */
async function begin(walk: Walk): Promise<void> {
  if (endsByGoal(walk, await beginGoals(walk))) return
  await watchExitRules(walk.call, [{ ...walk.run, version: walk.version }])
  const ruleId = await hitExitRule(walk)
  if (ruleId === null) return
  walk.decisions.push({ ...endKeys(walk), reason: 'EXIT_RULE', data: { rule: ruleId } })
  finish(walk, { status: 'CANCELED', exitReason: 'EXIT_RULE', error: null })
}

/** Ends the run where one of the goals that it has reached says so. */
function endsByGoal(walk: Walk, reached: readonly SuccessGoal[]): boolean {
  const goal = reached.find(({ exitOnReach }) => exitOnReach)
  if (!goal) return false
  walk.decisions.push({ ...endKeys(walk), reason: 'GOAL', data: { goalId: goal.id } })
  finish(walk, { status: 'COMPLETED', exitReason: 'GOAL', error: null })
  return true
}

function endKeys({ run }: Walk) {
  const { subscriberId, automationId, id: runId } = run
  return { subscriberId, automationId, runId, action: 'RUN_ENDED' } as const
}

/** Pausing freezes the run where it is; the share lock on the automation makes this final before a resume looks. */
async function hold(call: Call, run: RunState): Promise<NextAction> {
  const { subscriberId, automationId, id: runId, stepId } = run
  // It looks again every now and then; the decision is made once.
  if (!run.held && stepId !== null) {
    const keys = { subscriberId, automationId, runId, stepId }
    await recordDecisions(call, [{ ...keys, action: 'STEP_DEFERRED', reason: 'PAUSED' }])
  }
  run.held = true
  run.dueAt ??= Math.min(run.now, run.wakeAt ?? run.now)
  await saveRun(call, run, [])
  return await holdAction(call, run)
}

async function walkOn(walk: Walk): Promise<void> {
  const { run, version } = walk
  const { graph } = version
  const current = run.stepId === null ? undefined : graph.steps.get(run.stepId)
  if (!current) {
    const error = 'the run stands at a step that its version does not have'
    return finish(walk, { status: 'FAILED', exitReason: 'ERROR', error })
  }
  let next: Step | undefined = current
  if (run.waitKind !== null) {
    const result = await guarded(walk, current, () => leaveStep(walk, current))
    if (result === null) return
    if (result.kind === 'waits') return stay(walk, current, result)
    next = settle(walk, current, result)
    // An email asks by itself.
    if (current.type !== 'EMAIL') await noticeGoals(walk)
  }
  for (let count = 0; next && !isOver(run); count++) {
    if (count > MOST_STEPS) throw new Error('a run goes round without waiting')
    const step: Step = next
    run.stepId = step.id
    run.visit += 1
    const result = await guarded(walk, step, async () =>
      (await conditionsHold(walk, step)) ? await enterStep(walk, step) : skipped(walk, step),
    )
    if (result === null) return
    if (result.kind === 'waits') return stay(walk, step, result)
    next = settle(walk, step, result)
    if (mayEndItsRun(step)) {
      await noticeEnd(walk)
      await noticeGoals(walk)
    }
  }
  if (!isOver(run)) finish(walk, COMPLETED)
}

/** What a step changes may end its own run: the row says so, and the walk stops there. */
async function noticeEnd(walk: Walk): Promise<void> {
  const end = await readEnd(walk.call, walk.run.id)
  if (end === null) return
  Object.assign(walk.run, end, { waitKind: null, wakeAt: null, wakeReason: null })
  walk.isEndTold = true
}

/** Filters are heard of a moment after a change: what a step or a wait made true ends the run before its next step. */
async function noticeGoals(walk: Walk): Promise<void> {
  if (!isOver(walk.run)) endsByGoal(walk, await reachByFilters(walk, walk.version.definition.successGoals))
}

function skipped(walk: Walk, step: Step): StepResult {
  walk.decisions.push({ ...ledgerKeys(walk, step), action: 'STEP_SKIPPED', reason: 'CONDITIONS' })
  return { kind: 'left', port: skipPort(step), outcome: { result: 'SKIPPED', reason: 'CONDITIONS' } }
}

/** A refusal inside a step is the step's failure; a fault of ours is not caught: the activity is tried again. */
async function guarded(
  walk: Walk,
  step: Step,
  work: () => Promise<StepResult | null>,
): Promise<StepResult | null> {
  const place = `${walk.run.visit}/${step.id}`
  const known = walk.refusals.get(place)
  try {
    if (known) throw known
    return await work()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    if (!known && isWriting(step)) throw new StepRefused(place, error)
    return failedBy(error)
  }
}

function ledgerKeys({ run }: Walk, step: Step) {
  return { subscriberId: run.subscriberId, automationId: run.automationId, runId: run.id, stepId: step.id }
}

/** Notes how a step was left and answers where the run goes; the run is over where that says so. */
function settle(walk: Walk, step: Step, result: StepResult): Step | undefined {
  const { run, version } = walk
  if (result.kind === 'waits') return undefined
  run.waitKind = null
  run.wakeAt = null
  run.wakeReason = null
  run.status = 'ACTIVE'
  const { port, end } = settlementOf(step, result)
  const own = ledgerKeys(walk, step)
  walk.decisions.push(...decisionsIn(result, end).map((decision) => ({ ...own, ...decision })))
  note(walk, step, {
    port: port === JUMP_PORT ? 'jump' : port,
    outcome: result.outcome,
    open: false,
    ...endOf(result),
  })
  // A wait counts from when the step before it was over, also where we hear of that late.
  walk.clock = { ...walk.clock, now: endOf(result).endedAt ?? run.now }
  if (end) finish(walk, end)
  return port === null ? undefined : nextStep(version.graph, step.id, port)
}

/** What a step that is over decided not to do. */
function decisionsIn(result: Settled, end: End | null): Pick<Decision, 'action' | 'reason' | 'data'>[] {
  if (result.kind === 'left') {
    return result.decision === undefined ? [] : [{ action: 'STEP_SKIPPED', reason: result.decision }]
  }
  if (result.kind === 'failed') {
    const { code, reason } = result
    return [
      ...(code === null ? [] : [{ action: 'STEP_FAILED' as const, reason: code, data: { reason } }]),
      // A run that FAILED says so itself, and may be retried.
      ...(end?.status === 'COMPLETED' ? [{ action: 'RUN_ENDED' as const, reason: 'ERROR' }] : []),
    ]
  }
  // An EXIT is what the author meant; every other end of a step is a decision.
  if (result.exitReason === 'EXIT_STEP') return []
  const { reason = result.exitReason, ruleId, goalId } = result.outcome
  const data = { ...(ruleId !== undefined && { rule: ruleId }), ...(goalId !== undefined && { goalId }) }
  return [{ action: 'RUN_ENDED', reason: String(reason), data }]
}

function endOf(result: StepResult): { endedAt?: number } {
  return result.kind === 'left' && result.endedAt !== undefined ? { endedAt: result.endedAt } : {}
}

function stay(walk: Walk, step: Step, result: Extract<StepResult, { kind: 'waits' }>): void {
  const { run } = walk
  run.waitKind = result.waitKind
  run.wakeAt = result.wakeAt
  run.wakeReason = null
  const { reason, until } = result.outcome
  if (typeof reason === 'string') {
    walk.decisions.push({ ...ledgerKeys(walk, step), action: 'STEP_DEFERRED', reason, data: { until } })
  }
  // Only waits that somebody may cut short count as waiting.
  run.status = isUnderWay(run) ? 'ACTIVE' : 'WAITING'
  note(walk, step, { port: null, outcome: result.outcome, open: true })
}

function note(walk: Walk, step: Step, visit: Omit<Visit, 'visit' | 'stepId' | 'type'>): void {
  walk.visits.push({ visit: walk.run.visit, stepId: step.id, type: step.type, ...visit })
}

function finish({ run }: Walk, end: End): void {
  Object.assign(run, { ...end, waitKind: null, wakeAt: null, wakeReason: null })
}

function endEvent(run: RunState): NewEvent {
  const type = run.status === 'COMPLETED' ? 'WORKFLOW_COMPLETED' : 'WORKFLOW_CANCELED'
  return { subscriberId: run.subscriberId, type, data: { ...runFacts(run), exitReason: run.exitReason } }
}
