import { setTimeout as sleep } from 'node:timers/promises'

import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { organizationsWithVisits, READER, settleVisits } from '../src/domain/visits.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'

const POLL_MS = 250

/** Settles opens and clicks as they come in; any number of workers may, one organization at a time each. */
export function startVisits(services: Services): { stop(): Promise<void> } {
  const halt = new AbortController()
  async function work(): Promise<void> {
    while (!halt.signal.aborted) {
      const taken = await settleAll(services).catch((error: unknown) => {
        services.log.warn({ fault: describeFault(error) }, 'opens and clicks could not be looked at')
        return 0
      })
      if (taken > 0) continue
      await sleep(POLL_MS, undefined, { signal: halt.signal }).catch(() => undefined)
    }
  }
  const working = work()
  return {
    async stop() {
      halt.abort()
      await working
    },
  }
}

/** One round: a batch of every organization. Answers how many visits it settled. */
export async function settleAll(services: Services): Promise<number> {
  let taken = 0
  for (const organizationId of await organizationsWithVisits(crossOrganization(services))) {
    taken += await unitOfWork(services, { organizationId, actor: READER }, settleVisits).catch(
      (error: unknown) => {
        services.log.warn({ fault: describeFault(error) }, 'opens and clicks will be settled again')
        return 0
      },
    )
  }
  return taken
}
