import type { Failure } from '../../src/catalogue/failure.ts'
import type { Call } from '../../src/catalogue/tool.ts'
import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import {
  advanceRun,
  cancelRunByOperator,
  type Refusals,
  StepRefused,
} from '../../src/domain/automations/runs/advance.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { NextAction, RunActivities, RunRequest } from '../../temporal/contract.ts'
import { asActivityError } from './errors.ts'

type Work = (call: Call, runId: string, refusals: Refusals) => Promise<NextAction>

/** The database side of AutomationRun: each activity is one unit of work. */
export function createRunActivities(services: Services): RunActivities {
  async function within(request: RunRequest, work: Work): Promise<NextAction> {
    const refusals = new Map<string, Failure>()
    for (;;) {
      try {
        const organizationId = decodeId('org', request.organizationId)
        const runId = decodeId('run', request.runId)
        const actor = { kind: 'run' as const, id: request.runId, name: 'workflow run' }
        return await unitOfWork(services, { organizationId, actor }, (call) => work(call, runId, refusals))
      } catch (error) {
        if (!(error instanceof StepRefused)) throw asActivityError(services, error)
        refusals.set(error.place, error.failure)
      }
    }
  }

  return {
    advanceRun: (request) =>
      within(request, (call, runId, refusals) => advanceRun(call, runId, request, refusals)),
    cancelRun: (request) => within(request, cancelRunByOperator),
  }
}
