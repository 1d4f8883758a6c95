import {
  ApplicationFailure,
  CancellationScope,
  continueAsNew,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow'

import type { ImportActivities, ImportProgress, ImportRequest, ImportResult } from '../contract.ts'
import { importDetails } from '../timer.ts'

// The row of the import holds the checkpoint, so an attempt after a crash continues after the last page.
const { applyImport, cancelImport } = proxyActivities<ImportActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '6 seconds',
  retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
})

/**
 * Imports an uploaded list of subscribers by repeated activities, each of which imports pages of rows for some seconds.
 */
export async function SubscriberImport(request: ImportRequest): Promise<ImportResult> {
  let progress: ImportProgress
  try {
    progress = await applyImport.executeWithOptions({ summary: 'apply the first rows' }, [request])
    while (progress.state === 'RUNNING') {
      setCurrentDetails(importDetails(progress))
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof SubscriberImport>(request)
      const summary = `apply rows after ${progress.rows}`
      progress = await applyImport.executeWithOptions({ summary }, [request])
    }
  } catch (error) {
    if (!isCancellation(error)) throw error
    progress = await CancellationScope.nonCancellable(() =>
      cancelImport.executeWithOptions({ summary: 'canceled by an operator' }, [request]),
    )
  }
  setCurrentDetails(importDetails(progress))
  if (progress.state === 'FAILED') {
    throw ApplicationFailure.nonRetryable(progress.error ?? 'the import failed', 'ImportFailed')
  }
  return { state: progress.state, rows: progress.rows, rejected: progress.rejected }
}
