import type { Principal } from '../catalogue/principal.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { keepGrant, type NewGrant, recognizeAccessToken } from '../domain/oauth/grants.ts'
import {
  consumeRecord,
  dropRecord,
  dropRecordsOfGrant,
  findRecord,
  findRecordByUid,
  keepRecord,
} from '../domain/oauth/records.ts'
import {
  logIn,
  type Login,
  type MemberOrganization,
  readMemberships,
} from '../domain/organizations/members.ts'
import type { Services } from '../services.ts'

export type { Login }

/** A member who signs in, with their organizations. */
export type SignedInMember = Login & { email: string; organizations: MemberOrganization[] }

/** Returns the member with this address and password, or null; both take equally long. */
export async function signIn(
  services: Services,
  credentials: { email: string; password: string },
): Promise<Login | null> {
  return await logIn(crossOrganization(services), credentials)
}

/** Returns the member of a login, or null if they have no organization any more or their password has changed. */
export async function findMember(services: Services, login: Login): Promise<SignedInMember | null> {
  const found = await readMemberships(crossOrganization(services), login)
  return found && { ...login, ...found }
}

/** Grants a client access to an organization of the member. */
export async function grantAccess(services: Services, grant: NewGrant): Promise<void> {
  await keepGrant(services, grant)
}

/** Returns the principal of an access token, and the scopes it was given. */
export async function recognizeClient(
  services: Services,
  token: string,
  audience: string,
): Promise<{ principal: Principal; scopes: string[] }> {
  return await recognizeAccessToken(services, token, audience)
}

/**
 * Returns the storage adapter of the OAuth server for one model. `refuse` is called when a record is consumed a second
 * time.
 */
export function keepInDatabase(services: Services, model: string, refuse: () => never) {
  return {
    upsert: (id: string, payload: Record<string, unknown>, seconds?: number) =>
      keepRecord(services, { model, id }, payload, seconds),
    find: (id: string) => findRecord(services, { model, id }),
    findByUid: (uid: string) => findRecordByUid(services, model, uid),
    findByUserCode: async () => undefined,
    async consume(id: string) {
      if (!(await consumeRecord(services, { model, id }))) refuse()
    },
    destroy: (id: string) => dropRecord(services, { model, id }),
    revokeByGrantId: (grantId: string) => dropRecordsOfGrant(services, model, grantId),
  }
}
