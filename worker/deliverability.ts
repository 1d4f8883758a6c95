import type { Actor } from '../src/catalogue/tool.ts'
import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { confirmDeliveries, dueDeliveries } from '../src/domain/deliverability/deliveries.ts'
import { countOutcomes, organizationsToCount } from '../src/domain/deliverability/totals.ts'
import {
  learnFamilies,
  readUnknownDomains,
  settleUnknownDomains,
} from '../src/domain/deliverability/unknown-domains.ts'
import type { Services } from '../src/services.ts'
import { startRounds, takeEach } from './rounds.ts'

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
  const waiting = await organizationsToCount(crossOrganization(services))
  return await takeEach(services, waiting, 'outcomes will be counted again', (organizationId) =>
    unitOfWork(services, { organizationId, actor: ACTOR }, countOutcomes),
  )
}

/** Learns the mail servers of some unknown domains of every organization. Returns how many domains were settled. */
export async function learnAll(services: Services): Promise<number> {
  const unknown = await readUnknownDomains(crossOrganization(services))
  const families = await learnFamilies(services, unknown)
  return await takeEach(services, unknown, 'receivers will be counted by family later', (each) =>
    unitOfWork(services, { organizationId: each.organizationId, actor: ACTOR }, (call) =>
      settleUnknownDomains(call, each.domains, families),
    ),
  )
}

/** Confirms the pages of deliveries that are due. Returns how many pages it took. */
export async function confirmAll(services: Services): Promise<number> {
  const due = await dueDeliveries(crossOrganization(services), PAGES)
  return await takeEach(
    services,
    due,
    'deliveries will be confirmed again',
    async ({ organizationId, id }) => {
      const scope = { organizationId, actor: ACTOR }
      return (await unitOfWork(services, scope, (call) => confirmDeliveries(call, id))) ? 1 : 0
    },
  )
}
