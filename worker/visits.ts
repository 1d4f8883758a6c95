import { isOwnFault } from '../src/catalogue/database-error.ts'
import type { Call } from '../src/catalogue/tool.ts'
import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import {
  findDueVisit,
  organizationsWithVisits,
  READER,
  setVisitApart,
  settleVisits,
} from '../src/domain/emails/visits.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'
import { startRounds, takeEach } from './rounds.ts'

const POLL_MS = 250
const MOST_AT_ONCE = 2_000

/** Settles opens and clicks as they come in. Any number of workers may do so, each with one organization at a time. */
export function startVisits(services: Services): { stop(): Promise<void> } {
  return startRounds(services, settleAll, {
    pollMs: POLL_MS,
    complaint: 'opens and clicks could not be looked at',
  })
}

/** Does one round: a batch of every organization. Returns how many visits it settled. */
export async function settleAll(services: Services): Promise<number> {
  const visited = await organizationsWithVisits(crossOrganization(services))
  return await takeEach(services, visited, 'opens and clicks will be settled again', (organizationId) =>
    settleBatch(services, organizationId, MOST_AT_ONCE),
  )
}

/** Settles a batch. When one of its visits is at fault, tries half as many; a visit that fails alone is set apart. */
async function settleBatch(services: Services, organizationId: string, most: number): Promise<number> {
  const within = <Result>(work: (call: Call) => Promise<Result>) =>
    unitOfWork(services, { organizationId, actor: READER }, work)
  let alone: string | null = null
  try {
    return await within(async (call) => {
      if (most === 1) alone = await findDueVisit(call)
      return await settleVisits(call, most)
    })
  } catch (error) {
    if (!isOwnFault(error)) throw error
    if (most > 1) return await settleBatch(services, organizationId, most >> 1)
    services.log.error({ fault: describeFault(error), visit: alone }, 'a visit cannot be settled')
    const id = alone
    if (id !== null) await within((call) => setVisitApart(call, id))
    return 1
  }
}
