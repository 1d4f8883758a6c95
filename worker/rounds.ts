import { setTimeout as sleep } from 'node:timers/promises'

import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'

/**
 * Repeats a round, which answers how much it took: at once while there was something, else after `pollMs`. A round that
 * throws is logged with the complaint and tried again. `stop` waits for the round under way.
 */
export function startRounds(
  services: Services,
  round: (services: Services) => Promise<number>,
  { pollMs, complaint }: { pollMs: number; complaint: string },
): { stop(): Promise<void> } {
  const halt = new AbortController()
  async function work(): Promise<void> {
    while (!halt.signal.aborted) {
      const taken = await round(services).catch((error: unknown) => {
        services.log.warn({ fault: describeFault(error) }, complaint)
        return 0
      })
      if (taken > 0) continue
      await sleep(pollMs, undefined, { signal: halt.signal }).catch(() => undefined)
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
