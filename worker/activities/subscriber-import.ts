import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { readProgress } from '../../src/domain/imports/records.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { ImportActivities, ImportProgress, ImportRequest } from '../../temporal/contract.ts'
import { asActivityError } from './errors.ts'

/** The database side of SubscriberImport. */
export function createImportActivities(services: Services): ImportActivities {
  async function progress(request: ImportRequest): Promise<ImportProgress> {
    try {
      const organizationId = decodeId('org', request.organizationId)
      const actor = { kind: 'system' as const, id: request.importId, name: 'import' }
      return await unitOfWork(
        services,
        { organizationId, actor },
        (call) => readProgress(call, request.importId),
        { readOnly: true },
      )
    } catch (error) {
      throw asActivityError(services, error)
    }
  }

  return { applyImport: progress, cancelImport: progress }
}
