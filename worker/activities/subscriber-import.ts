import { Context } from '@temporalio/activity'

import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { applyImport, cancelByOperator } from '../../src/domain/imports/run.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { ImportActivities, ImportProgress } from '../../temporal/contract.ts'
import { asActivityError } from './errors.ts'

const HEARTBEAT_MS = 1_000

/** The database side of SubscriberImport. */
export function createImportActivities(services: Services): ImportActivities {
  async function guarded<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw asActivityError(services, error)
    }
  }

  return {
    applyImport: ({ organizationId, importId }) =>
      guarded(async () => {
        const context = Context.current()
        let latest: ImportProgress | undefined
        // Also in the middle of a slow page; without a sign of life another worker takes over.
        const timer = setInterval(() => context.heartbeat(latest), HEARTBEAT_MS)
        try {
          return await applyImport(
            services,
            { organizationId: decodeId('org', organizationId), importId },
            {
              report: (progress) => (latest = progress),
              isStopping: () => context.cancellationSignal.aborted,
            },
          )
        } finally {
          clearInterval(timer)
        }
      }),
    cancelImport: ({ organizationId, importId }) =>
      guarded(async () => {
        const actor = { kind: 'system' as const, id: importId, name: 'operator' }
        const scope = { organizationId: decodeId('org', organizationId), actor }
        return await unitOfWork(services, scope, (call) => cancelByOperator(call, importId))
      }),
  }
}
