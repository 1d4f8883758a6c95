import { cancelIntake, continueIntake } from '../../src/domain/automations/entry/intake.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { IntakeActivities, IntakeProgress } from '../../temporal/contract.ts'
import { longWork } from './long-work.ts'

/** The database side of AutomationIntake. */
export function createIntakeActivities(services: Services): IntakeActivities {
  return {
    continueIntake: ({ organizationId, intakeId }) =>
      longWork<IntakeProgress, IntakeProgress>(services, (control) =>
        continueIntake(services, decodeId('org', organizationId), intakeId, control),
      ),
    cancelIntake: ({ organizationId, intakeId }) =>
      longWork(services, () => cancelIntake(services, decodeId('org', organizationId), intakeId)),
  }
}
