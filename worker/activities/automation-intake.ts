import { Context } from '@temporalio/activity'

import { cancelIntake, continueIntake } from '../../src/domain/automations/intake.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { IntakeActivities, IntakeProgress } from '../../temporal/contract.ts'
import { asActivityError } from './errors.ts'

const HEARTBEAT_MS = 2_000

/** The database side of AutomationIntake. */
export function createIntakeActivities(services: Services): IntakeActivities {
  async function guarded<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw asActivityError(services, error)
    }
  }

  return {
    continueIntake: ({ organizationId, intakeId }) =>
      guarded(async () => {
        const context = Context.current()
        let latest: IntakeProgress | undefined
        // Also in the middle of a slow page; without a sign of life another worker takes over.
        const timer = setInterval(() => context.heartbeat(latest), HEARTBEAT_MS)
        try {
          return await continueIntake(services, decodeId('org', organizationId), intakeId, {
            report: (progress) => (latest = progress),
            isStopping: () => context.cancellationSignal.aborted,
          })
        } finally {
          clearInterval(timer)
        }
      }),
    cancelIntake: ({ organizationId, intakeId }) =>
      guarded(() => cancelIntake(services, decodeId('org', organizationId), intakeId)),
  }
}
