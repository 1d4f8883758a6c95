import type { Actor, Call } from '../src/catalogue/tool.ts'
import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { confirmDeliveries, dueDeliveries } from '../src/domain/deliverability/deliveries.ts'
import { countOutcomes, organizationsToCount } from '../src/domain/deliverability/totals.ts'
import {
  learnFamilies,
  readUnknownDomains,
  settleUnknownDomains,
} from '../src/domain/deliverability/unknown-domains.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'
import { startRounds } from './rounds.ts'

const ACTOR: Actor = { kind: 'system', id: 'deliverability', name: 'Deliverability' }
const COUNT_MS = 1_000
const LEARN_MS = 1_000
const CONFIRM_MS = 5_000
const PAGES = 20

/**
 * Starts to count the outcomes of email, to learn the mail servers of recipients' domains, and to confirm deliveries
 * that nothing came back about. Any number of workers may do so.
 */
export function startDeliverability(services: Services): { stop(): Promise<void> } {
  const counting = startRounds(services, countAll, {
    pollMs: COUNT_MS,
    complaint: 'outcomes of email could not be counted',
  })
  const learning = startRounds(services, learnAll, {
    pollMs: LEARN_MS,
    complaint: 'who receives email could not be learned',
  })
  const confirming = startRounds(services, confirmAll, {
    pollMs: CONFIRM_MS,
    complaint: 'deliveries could not be confirmed',
  })
  return {
    async stop() {
      await Promise.all([counting.stop(), learning.stop(), confirming.stop()])
    },
  }
}

/** Counts some batches of outcomes of every organization. Returns how many batches were counted. */
export async function countAll(services: Services): Promise<number> {
  let taken = 0
  for (const organizationId of await organizationsToCount(crossOrganization(services))) {
    const counted = await unitOfWork(services, { organizationId, actor: ACTOR }, countOutcomes).catch(
      (error: unknown) => {
        services.log.warn({ fault: describeFault(error) }, 'outcomes will be counted again')
        return 0
      },
    )
    taken += counted
  }
  return taken
}

/** Learns the mail servers of some unknown domains of every organization. Returns how many domains were settled. */
export async function learnAll(services: Services): Promise<number> {
  const unknown = await readUnknownDomains(crossOrganization(services))
  const families = await learnFamilies(services, unknown)
  let learned = 0
  for (const { organizationId, domains } of unknown) {
    const settle = (call: Call) => settleUnknownDomains(call, domains, families)
    const settled = await unitOfWork(services, { organizationId, actor: ACTOR }, settle).catch(
      (error: unknown) => {
        services.log.warn({ fault: describeFault(error) }, 'receivers will be counted by family later')
        return 0
      },
    )
    learned += settled
  }
  return learned
}

/** Confirms the pages of deliveries that are due. Returns how many pages it took. */
export async function confirmAll(services: Services): Promise<number> {
  let taken = 0
  for (const { organizationId, id } of await dueDeliveries(crossOrganization(services), PAGES)) {
    const confirm = (call: Call) => confirmDeliveries(call, id)
    const isTaken = await unitOfWork(services, { organizationId, actor: ACTOR }, confirm).catch(
      (error: unknown) => {
        services.log.warn({ fault: describeFault(error) }, 'deliveries will be confirmed again')
        return false
      },
    )
    if (isTaken) taken += 1
  }
  return taken
}
