import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { applyImport, cancelByOperator } from '../../src/domain/imports/run.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { ImportActivities, ImportProgress } from '../../temporal/contract.ts'
import { longWork } from './long-work.ts'

/** The database side of SubscriberImport. */
export function createImportActivities(services: Services): ImportActivities {
  return {
    applyImport: ({ organizationId, importId }) =>
      longWork<ImportProgress, ImportProgress>(services, (control) =>
        applyImport(services, { organizationId: decodeId('org', organizationId), importId }, control),
      ),
    cancelImport: ({ organizationId, importId }) =>
      longWork(services, () => {
        const actor = { kind: 'system' as const, id: importId, name: 'operator' }
        const scope = { organizationId: decodeId('org', organizationId), actor }
        return unitOfWork(services, scope, (call) => cancelByOperator(call, importId))
      }),
  }
}
