import type { Services } from '../../src/services.ts'
import type { Tenant } from '../../test/helpers/automation.ts'

/** The environment in which scenes are played. */
export type Studio = { services: Services; tenant: Tenant }
