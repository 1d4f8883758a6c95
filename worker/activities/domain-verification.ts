import { checkDomain } from '../../src/domain/domains/check.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { DomainActivities } from '../../temporal/contract.ts'
import { asActivityError } from './errors.ts'

/** The database and DNS side of DomainVerification. */
export function createDomainActivities(services: Services): DomainActivities {
  return {
    async checkDomain({ organizationId, domainId }) {
      try {
        return await checkDomain(services, {
          organizationId: decodeId('org', organizationId),
          domainId: decodeId('dom', domainId),
        })
      } catch (error) {
        throw asActivityError(services, error)
      }
    },
  }
}
