import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { fireEchoes, organizationsWithEchoes } from '../src/domain/automations/triggers/echoes.ts'
import type { Services } from '../src/services.ts'
import { startRounds, takeEach } from './rounds.ts'

const POLL_MS = 500
const ACTOR = { kind: 'system' as const, id: 'workflows', name: 'workflows' }

/** Checks twice a second for events of runs that may start other automations; needs no Temporal. */
export function startEchoWatch(services: Services): { stop(): Promise<void> } {
  return startRounds(services, watchEchoes, {
    pollMs: POLL_MS,
    complaint: 'events of workflows could not be looked at',
  })
}

/** Does one round over all organizations. Returns how many events it took; what fails is left for the next round. */
export async function watchEchoes(services: Services): Promise<number> {
  const waiting = await organizationsWithEchoes(crossOrganization(services))
  return await takeEach(services, waiting, 'events of workflows will be looked at again', (organizationId) =>
    unitOfWork(services, { organizationId, actor: ACTOR }, fireEchoes),
  )
}
