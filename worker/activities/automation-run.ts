import { ApplicationFailure } from '@temporalio/common'

import { Failure } from '../../src/catalogue/failure.ts'
import type { Call } from '../../src/catalogue/tool.ts'
import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { advanceRun, cancelRunByOperator } from '../../src/domain/automations/advance.ts'
import { decodeId, newId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { NextAction, RunActivities, RunRequest } from '../../temporal/contract.ts'

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

/**
 * A refusal will be the same next time; a fault is tried again. Messages of faults may quote data, so only a name for
 * them leaves this process, and the log has the rest.
 */
function asActivityError(services: Services, error: unknown): Error {
  if (error instanceof Failure) {
    return ApplicationFailure.create({ message: error.code, type: error.code, nonRetryable: true })
  }
  const fault = newId()
  services.log.error({ err: error, fault }, 'an activity failed and will be tried again')
  return ApplicationFailure.create({ message: `fault ${fault}`, type: 'Fault' })
}
