import type { Call } from '../src/catalogue/tool.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import type { Services } from '../src/services.ts'

const ACTOR = { kind: 'system' as const, id: 'reconciler', name: 'reconciler' }

/**
 * Puts something of one organization right; answers whether it succeeded. What fails for one organization is tried in the
 * next round, and keeps no other waiting.
 */
export async function putRight(
  services: Services,
  organizationId: string,
  work: (call: Call) => Promise<void> | void,
): Promise<boolean> {
  try {
    await unitOfWork(services, { organizationId, actor: ACTOR }, async (call) => await work(call))
    return true
  } catch (error) {
    services.log.warn({ err: error, organizationId }, 'an organization could not be put right')
    return false
  }
}
