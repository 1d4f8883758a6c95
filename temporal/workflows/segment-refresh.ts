import { proxyActivities, setCurrentDetails } from '@temporalio/workflow'

import type { SegmentActivities, SegmentRefreshed } from '../contract.ts'

const { refreshSegments } = proxyActivities<SegmentActivities>({
  startToCloseTimeout: '30 minutes',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
})

/** Re-evaluates, once per round of the schedule, the segments whose members change just because time passes. */
export async function SegmentRefresh(): Promise<SegmentRefreshed> {
  const done = await refreshSegments.executeWithOptions({ summary: 'compare segments that time changes' }, [])
  setCurrentDetails(`${done.segments} segments of ${done.organizations} organizations`)
  return done
}
