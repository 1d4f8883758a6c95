import { setTimeout as sleep } from 'node:timers/promises'

import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { fireEchoes, organizationsWithEchoes } from '../src/domain/automations/echoes.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'

const POLL_MS = 500
const ACTOR = { kind: 'system' as const, id: 'workflows', name: 'workflows' }

/** Looks twice a second for what happened to runs and starts other automations; needs no Temporal. */
export function startEchoWatch(services: Services): { stop(): Promise<void> } {
  const halt = new AbortController()
  async function work(): Promise<void> {
    while (!halt.signal.aborted) {
      if ((await watchEchoes(services)) > 0) continue
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

/** One round over all organizations. Answers how many events it took; what fails stays for the next round. */
export async function watchEchoes(services: Services): Promise<number> {
  const warn = (error: unknown) => {
    services.log.warn({ fault: describeFault(error) }, 'events of workflows will be looked at again')
    return 0
  }
  let taken = 0
  const organizations = await organizationsWithEchoes(crossOrganization(services)).catch((error: unknown) => {
    warn(error)
    return []
  })
  for (const organizationId of organizations) {
    taken += await unitOfWork(services, { organizationId, actor: ACTOR }, fireEchoes).catch(warn)
  }
  return taken
}
