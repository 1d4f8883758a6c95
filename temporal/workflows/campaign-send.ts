import {
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'

import {
  type CampaignActivities,
  type CampaignSendProgress,
  type CampaignSendRequest,
  type CampaignSendResult,
  NUDGE,
} from '../contract.ts'
import { campaignDetails } from '../timer.ts'

// The stored rows are the checkpoint, so an attempt after a crash continues after them.
const { beginCampaign, freezeAudience, deliverCampaign, cancelCampaign } =
  proxyActivities<CampaignActivities>({
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: '6 seconds',
    retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
  })

const nudge = defineSignal(NUDGE)

/**
 * The shortest wait. The clocks of the database and the workflow differ a little, so looking sooner may be too early.
 */
const SHORTEST_WAIT_MS = 1_000

/**
 * Sends a campaign once: waits until it is due, freezes the audience, and delivers until every recipient has an
 * outcome.
 */
export async function CampaignSend(request: CampaignSendRequest): Promise<CampaignSendResult> {
  let nudged = false
  setHandler(nudge, () => {
    nudged = true
  })
  let progress: CampaignSendProgress | undefined
  try {
    for (;;) {
      nudged = false
      progress = await act(progress)
      setCurrentDetails(campaignDetails(progress))
      if (isEnd(progress)) break
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof CampaignSend>(request)
      if (progress.waitMs === 0) continue
      const waitMs = Math.max(SHORTEST_WAIT_MS, progress.waitMs)
      await condition(() => nudged, waitMs, { summary: progress.label })
    }
  } catch (error) {
    if (!isCancellation(error)) throw error
    progress = await CancellationScope.nonCancellable(() =>
      cancelCampaign.executeWithOptions({ summary: 'canceled by an operator' }, [request]),
    )
    setCurrentDetails(campaignDetails(progress))
  }
  const { stage, total, done, error } = progress
  if (stage === 'FAILED') throw ApplicationFailure.nonRetryable(error ?? 'the send failed', 'CampaignFailed')
  return { stage, total, done }

  function act(before: CampaignSendProgress | undefined): Promise<CampaignSendProgress> {
    if (before?.stage === 'FREEZING') {
      return freezeAudience.executeWithOptions({ summary: 'write down who gets it' }, [request])
    }
    if (before?.stage === 'DELIVERING') {
      return deliverCampaign.executeWithOptions({ summary: `deliver after ${before.done}` }, [request])
    }
    return beginCampaign.executeWithOptions({ summary: 'begin if it is due' }, [request])
  }
}

function isEnd({ stage }: CampaignSendProgress): boolean {
  return stage === 'SENT' || stage === 'FAILED' || stage === 'CANCELED'
}
