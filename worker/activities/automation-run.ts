import type { Call } from '../../src/catalogue/tool.ts'
import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { advanceRun, cancelRunByOperator } from '../../src/domain/automations/advance.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { NextAction, RunActivities, RunRequest } from '../../temporal/contract.ts'
import { asActivityError } from './errors.ts'

/** The database side of AutomationRun: each activity is one unit of work. */
export function createRunActivities(services: Services): RunActivities {
  async function within(request: RunRequest, work: (call: Call, runId: string) => Promise<NextAction>) {
    try {
      const organizationId = decodeId('org', request.organizationId)
      const runId = decodeId('run', request.runId)
      const actor = { kind: 'run' as const, id: request.runId, name: 'workflow run' }
      return await unitOfWork(services, { organizationId, actor }, (call) => work(call, runId))
    } catch (error) {
      throw asActivityError(services, error)
    }
  }

  return {
    advanceRun: (request) => within(request, (call, runId) => advanceRun(call, runId, request.execution)),
    cancelRun: (request) => within(request, cancelRunByOperator),
  }
}
