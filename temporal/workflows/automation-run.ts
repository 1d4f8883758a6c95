import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  defineUpdate,
  isCancellation,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'

import {
  type AutomationRunInput,
  FAST_FORWARD,
  type FastForward,
  type FastForwarded,
  type NextAction,
  NUDGE,
  type RunActivities,
  type RunResult,
  SEARCH,
} from '../contract.ts'
import { currentDetails } from '../timer.ts'

// These activities only use the database. As local activities they run inside the workflow task, which is cheaper for
// the server. After a crash they run again, and the run's row says what is done already.
const { advanceRun, cancelRun } = proxyLocalActivities<RunActivities>({
  startToCloseTimeout: '20 seconds',
  // A longer retry interval becomes a timer, so that a long outage does not keep a workflow task open.
  localRetryThreshold: '5 seconds',
  retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '1 minute' },
})

const nudge = defineSignal(NUDGE)
const fastForward = defineUpdate<FastForwarded, [FastForward]>(FAST_FORWARD)

/**
 * The shortest wait. The clocks of the database and the workflow differ a little, so looking sooner may be too early.
 */
const SHORTEST_WAIT_MS = 1_000

/**
 * Drives one subscriber's run of an automation. The database decides everything; this workflow only keeps the time, in
 * a loop: advance, wait, advance. Signals and updates only make it look sooner.
 */
export async function AutomationRun(input: AutomationRunInput): Promise<RunResult> {
  let begun = 0
  let finished = 0
  let nudged = false
  let shown = ''
  let action: NextAction | undefined

  setHandler(nudge, () => {
    nudged = true
  })
  setHandler(
    fastForward,
    async () => {
      const enough = begun + 1
      nudged = true
      await condition(() => finished >= enough || action?.kind === 'end')
      return { stepId: action?.stepId ?? null, visit: action?.visit ?? 0, state: action?.state ?? 'QUEUED' }
    },
    { validator: checkFastForward },
  )

  const request = {
    organizationId: input.organizationId,
    runId: input.runId,
    execution: workflowInfo().firstExecutionRunId,
    attempt: workflowInfo().runId,
  }
  try {
    for (;;) {
      nudged = false
      begun += 1
      const summary = action?.stepId ? `advance from ${action.stepId}` : 'advance from the start'
      action = await advanceRun.executeWithOptions({ summary: summary.slice(0, 200) }, [request])
      finished += 1
      if (action.kind === 'end') break
      show(action)
      if (workflowInfo().continueAsNewSuggested) {
        // An update that arrived during this turn is answered by the next turn, which must run before continue-as-new.
        await condition(() => nudged || allHandlersFinished())
        if (allHandlersFinished()) await continueAsNew<typeof AutomationRun>(input)
      }
      await condition(() => nudged, Math.max(SHORTEST_WAIT_MS, action.waitMs), { summary: action.label })
    }
  } catch (error) {
    if (!isCancellation(error)) throw error
    action = await CancellationScope.nonCancellable(() =>
      cancelRun.executeWithOptions({ summary: 'canceled by an operator' }, [request]),
    )
  }
  setCurrentDetails(currentDetails(action))
  await condition(allHandlersFinished)
  if (action.state === 'FAILED') {
    // Operators search for failed runs by step, to reset them.
    show(action)
    const failure = ApplicationFailure.nonRetryable(action.error ?? 'the run failed', 'RunFailed')
    // The message says which step failed. A stack trace of this file would only distract from it.
    failure.stack = ''
    throw failure
  }
  return { state: action.state, exitReason: action.exitReason }

  function show(next: NextAction): void {
    setCurrentDetails(currentDetails(next))
    const key = `${next.state}/${next.visit}`
    if (!input.searchable || key === shown) return
    shown = key
    upsertSearchAttributes([
      { key: SEARCH.state, value: next.state },
      { key: SEARCH.step, value: next.stepId },
      { key: SEARCH.nextAt, value: next.nextAt === null ? null : new Date(next.nextAt) },
    ])
  }
}

function checkFastForward({ stepId, visit }: FastForward): void {
  if (!stepId || !Number.isInteger(visit) || visit < 1) {
    throw new Error('fastForward needs {stepId, visit} of the wait to leave')
  }
}
