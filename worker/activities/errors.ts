import { ApplicationFailure } from '@temporalio/common'

import { Failure, FAILURES } from '../../src/catalogue/failure.ts'
import { newId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'

/**
 * A refusal will be the same next time; a fault is tried again. Messages of faults may quote data, so only a name for
 * them leaves this process, and the log has the rest.
 */
export function asActivityError(services: Services, error: unknown): Error {
  if (error instanceof Failure) {
    return ApplicationFailure.create({
      message: error.code,
      type: error.code,
      nonRetryable: FAILURES[error.code].status < 500,
    })
  }
  const fault = newId()
  services.log.error({ err: error, fault }, 'an activity failed and will be tried again')
  return ApplicationFailure.create({ message: `fault ${fault}`, type: 'Fault' })
}
