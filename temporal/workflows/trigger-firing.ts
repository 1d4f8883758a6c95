import { proxyActivities, setCurrentDetails, sleep } from '@temporalio/workflow'

import type { Fired, FiringActivities, FiringRequest } from '../contract.ts'
import { firedDetails } from '../timer.ts'

const { fireTrigger } = proxyActivities<FiringActivities>({
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '1 minute' },
})

/** How much the clock of the schedule may be ahead of the database's, whose clock decides what is due. */
const AHEAD_MS = 5_000

/** Fires a timed trigger once: begins an intake of everybody who has become due since the last firing. */
export async function TriggerFiring(request: FiringRequest): Promise<Fired> {
  let fired = await fireTrigger.executeWithOptions({ summary: 'look who is due' }, [request])
  setCurrentDetails(firedDetails(fired))
  if (fired.state === 'NOTHING' && fired.nextMs !== null && fired.nextMs <= AHEAD_MS) {
    await sleep(fired.nextMs, { summary: 'the moment is about to come' })
    fired = await fireTrigger.executeWithOptions({ summary: 'look who is due' }, [request])
    setCurrentDetails(firedDetails(fired))
  }
  return fired
}
