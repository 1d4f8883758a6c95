import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import type { Actor, Call } from '../src/catalogue/tool.ts'
import { confirmDeliveries, dueDeliveries } from '../src/domain/deliverability/deliveries.ts'
import { askReceivers } from '../src/domain/deliverability/receivers.ts'
import { countOutcomes, organizationsToCount } from '../src/domain/deliverability/totals.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'
import { startRounds } from './rounds.ts'

const ACTOR: Actor = { kind: 'system', id: 'deliverability', name: 'Deliverability' }
const COUNT_MS = 1_000
const CONFIRM_MS = 5_000
const PAGES = 20

/** Counts how email fares, and takes for delivered what nothing came back about; any number of workers may. */
export function startDeliverability(services: Services): { stop(): Promise<void> } {
  const counting = startRounds(services, countAll, {
    pollMs: COUNT_MS,
    complaint: 'outcomes of email could not be counted',
  })
  const confirming = startRounds(services, confirmAll, {
    pollMs: CONFIRM_MS,
    complaint: 'deliveries could not be confirmed',
  })
  return {
    async stop() {
      await Promise.all([counting.stop(), confirming.stop()])
    },
  }
}

/** One round: some batches of every organization. Answers how many it counted. */
export async function countAll(services: Services): Promise<number> {
  let taken = 0
  for (const organizationId of await organizationsToCount(crossOrganization(services))) {
    taken += await countSome(services, organizationId).catch((error: unknown) => {
      services.log.warn({ fault: describeFault(error) }, 'outcomes will be counted again')
      return 0
    })
  }
  return taken
}

async function countSome(services: Services, organizationId: string): Promise<number> {
  const count = () => unitOfWork(services, { organizationId, actor: ACTOR }, (call) => countOutcomes(call))
  const { taken, strangers } = await count()
  if (strangers.length === 0) return taken
  await askReceivers(services, strangers)
  return (await count()).taken
}

/** One round: the pages that are due. Answers how many it took. */
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
