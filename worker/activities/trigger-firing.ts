import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { fire } from '../../src/domain/automations/triggers/firing.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { FiringActivities } from '../../temporal/contract.ts'
import { longWork } from './long-work.ts'

/** The database side of TriggerFiring: a schedule fires nothing while a look is under way. */
export function createFiringActivities(services: Services): FiringActivities {
  return {
    fireTrigger: ({ organizationId, automationId, stepId }) =>
      longWork(services, () => {
        const scope = {
          organizationId: decodeId('org', organizationId),
          actor: { kind: 'system', id: automationId, name: 'schedule' } as const,
        }
        return unitOfWork(services, scope, (call) => fire(call, decodeId('wf', automationId), stepId))
      }),
  }
}
