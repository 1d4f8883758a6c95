import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { fire } from '../../src/domain/automations/triggers/firing.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { FiringActivities } from '../../temporal/contract.ts'
import { asActivityError } from './errors.ts'

/** The database side of TriggerFiring. */
export function createFiringActivities(services: Services): FiringActivities {
  return {
    fireTrigger: async ({ organizationId, automationId, stepId }) => {
      const scope = {
        organizationId: decodeId('org', organizationId),
        actor: { kind: 'system', id: automationId, name: 'schedule' } as const,
      }
      try {
        return await unitOfWork(services, scope, (call) => fire(call, decodeId('wf', automationId), stepId))
      } catch (error) {
        throw asActivityError(services, error)
      }
    },
  }
}
