import {
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow'

import type { IntakeActivities, IntakeProgress, IntakeRequest } from '../contract.ts'
import { intakeDetails } from '../timer.ts'

// The row of the intake holds the checkpoint, so an attempt after a crash continues after the last page.
const { continueIntake, cancelIntake } = proxyActivities<IntakeActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
})

/** How often to look whether a paused automation is active again. */
const PAUSED_LOOK_MS = 15_000

/**
 * Lets many people into an automation by repeated activities, each of which lets in pages of people for some seconds.
 */
export async function AutomationIntake(request: IntakeRequest): Promise<IntakeProgress> {
  let progress: IntakeProgress
  try {
    progress = await continueIntake.executeWithOptions({ summary: 'let the first people in' }, [request])
    while (progress.state === 'RUNNING' || progress.state === 'PAUSED') {
      setCurrentDetails(intakeDetails(progress))
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof AutomationIntake>(request)
      if (progress.state === 'PAUSED') {
        await condition(() => false, PAUSED_LOOK_MS, { summary: 'waits because the workflow is paused' })
      }
      const summary = `let people in after ${progress.looked}`
      progress = await continueIntake.executeWithOptions({ summary }, [request])
    }
  } catch (error) {
    if (!isCancellation(error)) throw error
    progress = await CancellationScope.nonCancellable(() =>
      cancelIntake.executeWithOptions({ summary: 'canceled by an operator' }, [request]),
    )
  }
  setCurrentDetails(intakeDetails(progress))
  if (progress.state === 'FAILED') {
    throw ApplicationFailure.nonRetryable(progress.error ?? 'the intake failed', 'IntakeFailed')
  }
  return progress
}
