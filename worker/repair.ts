import type { Client } from '@temporalio/client'

import type { Call } from '../src/catalogue/tool.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import type { Services } from '../src/services.ts'

const ACTOR = { kind: 'system' as const, id: 'reconciler', name: 'reconciler' }

/**
 * Repairs something of one organization. Returns whether it succeeded: a failure is logged, holds up no other
 * organization and is tried again in the next round.
 */
export async function tryRepair(
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

/**
 * Asks Temporal about one workflow or schedule. Returns null when Temporal cannot say, which is logged and holds up
 * nothing else. Throws when Temporal cannot be reached at all.
 */
export async function askTemporal<Answer>(
  services: Services,
  about: { workflowId: string } | { schedule: string },
  ask: (client: Client) => Promise<Answer>,
): Promise<Answer | null> {
  const client = await services.temporal.client()
  try {
    return await ask(client)
  } catch (error) {
    if (!(await services.temporal.isReachable())) throw error
    services.log.warn({ err: error, ...about }, 'Temporal does not say what became of something')
    return null
  }
}
