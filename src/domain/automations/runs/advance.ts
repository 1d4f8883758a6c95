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

/** The most steps of one turn. A valid graph cannot exceed it, because each of its cycles contains a wait. */
const MOST_STEPS = 1_000

type Walk = Turn & {
  visits: Visit[]
  decisions: Decision[]
  refusals: Refusals
  /** Whether `cancelRuns` ended the run because of one of its own steps, and so has recorded the event of its end. */
  isEndTold: boolean
}

/** The refusals of steps in earlier attempts at this turn, by place (`<visit>/<step id>`). */
export type Refusals = ReadonlyMap<string, Failure>

/**
 * Thrown when a step that may have written something is refused. The caller rolls the turn back and repeats it with
 * this refusal in `refusals`. Unlike a savepoint per step, this costs nothing when no step is refused.
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

/** The Temporal workflow that asks; see `RunRequest`. */
export type Asking = Pick<RunRequest, 'execution' | 'attempt'>

/**
 * Executes everything that is due in a run, in the caller's transaction and under the run's lock, until the run waits,
 * is held or ends. The results of steps and the run's new place are stored together, so a repeated call only repeats
 * the answer. The last caller drives the run: Temporal runs one workflow per id at a time, and a reset of an older one
 * ends the newer. A workflow that an operator reset after its run failed retries the run. Throws `StepRefused` if the
 * caller must repeat the turn.
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
    // Do not evaluate a wait that is not due: its filters may match already, and the paused run would go on.
    if (!isDue(run)) return await nextAction(call, run, [])
    // The run has not begun, so the next turn must still be its first.
    if (isFirst) run.execution = null
    return await hold(call, run)
  }
  const walk = await openWalk(call, run, refusals)
  run.dueAt = null
  const before = run.wakeAt
  if (isFirst) await begin(walk)
  if (!isOver(run)) await walkOn(walk)
  if (run.status === 'FAILED') run.failedIn = asking.attempt
  await recordDecisions(call, walk.decisions)
  const isChanged = walk.visits.length > 0 || isFirst || isOver(run) || run.held || run.wakeAt !== before
  if (isChanged) await saveWalk(walk)
  return await nextAction(call, run, walk.visits)
}

async function openWalk(call: Call, run: RunState, refusals: Refusals): Promise<Walk> {
  const version = await loadVersion(call.em, call.organization.id, run.versionId)
  const timezone = version.definition.settings.timezone ?? call.organization.timezone
  return {
    call,
    run,
    version,
    clock: { now: run.now, timezone },
    due: dueOf(run),
    isHeldBack: run.dueAt !== null,
    visits: [],
    decisions: [],
    refusals,
    isEndTold: false,
  }
}

/** Stores the run's place and visits, and tells its end, which frees its place in the group of its automation. */
async function saveWalk({ call, run, visits, isEndTold }: Walk): Promise<void> {
  run.held = false
  const events = isOver(run) && !isEndTold ? [endEvent(run)] : []
  const recorded = await saveRun(call, run, visits, events)
  if (recorded.isAwaited) await endEventWaits(call, recorded.events)
  if (isOver(run) && run.groupId !== null) await freePlaces(call, [{ ...run, groupId: run.groupId }])
}

/** Cancels a run because an operator canceled its workflow in Temporal. */
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

/** Returns whether the run waits for its own email or request. Such a wait cannot be cut short. */
function isUnderWay({ waitKind }: RunState): boolean {
  return waitKind === 'MESSAGE' || waitKind === 'WEBHOOK'
}

/** Returns when the run should have continued (epoch ms): when it was held, else when its wait was over, else now. */
function dueOf(run: RunState): number {
  const isWaiting = run.waitKind !== null && !isUnderWay(run)
  return Math.min(run.now, run.dueAt ?? (isWaiting ? run.wakeAt : null) ?? run.now)
}

/** Starts to watch the run's goals and exit rules, and applies those that were met since the run was entered. */
async function begin(walk: Walk): Promise<void> {
  if (endsByGoal(walk, await beginGoals(walk))) return
  await watchExitRules(walk.call, [{ ...walk.run, version: walk.version }])
  const ruleId = await hitExitRule(walk)
  if (ruleId === null) return
  walk.decisions.push({ ...endKeys(walk), reason: 'EXIT_RULE', data: { rule: ruleId } })
  finish(walk, { status: 'CANCELED', exitReason: 'EXIT_RULE', error: null })
}

/** Ends the run if one of the reached goals has `exitOnReach`, and returns whether it did. */
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

/**
 * Marks the run as held because the workflow is paused. The transaction holds a share lock on the automation, so a
 * resume cannot run before this is committed and miss the run.
 */
async function hold(call: Call, run: RunState): Promise<NextAction> {
  const { subscriberId, automationId, id: runId, stepId } = run
  // A held run comes here again and again, but the decision is recorded once.
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
    const error = 'the run is at a step that its version does not have'
    return finish(walk, { status: 'FAILED', exitReason: 'ERROR', error })
  }
  let next: Step | undefined = current
  if (run.waitKind !== null) {
    const result = await guarded(walk, current, () => leaveStep(walk, current))
    if (result === null) return
    if (result.kind === 'waits') return stay(walk, current, result)
    next = settle(walk, current, result)
    // EMAIL steps check the goals themselves.
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

/** Stops the walk if a change that the step made has ended the run; that is already stored in its row. */
async function noticeEnd(walk: Walk): Promise<void> {
  const end = await readEnd(walk.call, walk.run.id)
  if (end === null) return
  Object.assign(walk.run, end, { waitKind: null, wakeAt: null, wakeReason: null })
  walk.isEndTold = true
}

/**
 * Checks goals by filters now. Changes are compared with goals a moment later, and no further step may run until then.
 */
async function noticeGoals(walk: Walk): Promise<void> {
  if (!isOver(walk.run)) endsByGoal(walk, await reachByFilters(walk, walk.version.definition.successGoals))
}

function skipped(walk: Walk, step: Step): StepResult {
  walk.decisions.push({ ...ledgerKeys(walk, step), action: 'STEP_SKIPPED', reason: 'CONDITIONS' })
  return { kind: 'left', port: skipPort(step), outcome: { result: 'SKIPPED', reason: 'CONDITIONS' } }
}

/**
 * Turns a `Failure` inside a step into the step's failure. Other errors are rethrown, so that the activity is retried.
 */
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

/**
 * Records the result of a step that is over, ends the run if the result says so, and returns the next step if there is
 * one.
 */
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
  // A wait counts from when the previous step was over, even if the run learns of that late.
  walk.clock = { ...walk.clock, now: endOf(result).endedAt ?? run.now }
  // If the wait was over before the run came to it, the run should have continued then.
  const { result: code, until } = result.outcome
  const over = code === 'ELAPSED' && typeof until === 'string' ? Date.parse(until) : run.now
  if (over < run.now) walk.due = Math.max(walk.due, over)
  if (end) finish(walk, end)
  return port === null ? undefined : nextStep(version.graph, step.id, port)
}

/** Returns the ledger entries for a result: a step that did not act or failed, or an early end of the run. */
function decisionsIn(result: Settled, end: End | null): Pick<Decision, 'action' | 'reason' | 'data'>[] {
  if (result.kind === 'left') {
    return result.decision === undefined ? [] : [{ action: 'STEP_SKIPPED', reason: result.decision }]
  }
  if (result.kind === 'failed') {
    const { code, reason } = result
    return [
      ...(code === null ? [] : [{ action: 'STEP_FAILED' as const, reason: code, data: { reason } }]),
      // A FAILED run needs no entry: its status and error say so, and it may be retried.
      ...(end?.status === 'COMPLETED' ? [{ action: 'RUN_ENDED' as const, reason: 'ERROR' }] : []),
    ]
  }
  // An EXIT step is the planned end, so it is no decision. All other ends are.
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
  // Only waits that can be fast-forwarded have the status WAITING.
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
