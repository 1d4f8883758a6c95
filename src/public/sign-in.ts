import { isDatabaseAway } from '../catalogue/database-error.ts'
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

/** Throws the errors by which the OAuth server knows what happened in its storage. */
export type StorageFaults = {
  /** A record that can be used once was used again. */
  usedAgain(): never
  /** The database cannot be reached. */
  away(cause: unknown): never
}

/** Returns the storage adapter of the OAuth server for one model. */
export function keepInDatabase(services: Services, model: string, faults: StorageFaults) {
  async function reach<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return await answer.catch((error: unknown) => {
      if (isDatabaseAway(error)) faults.away(error)
      throw error
    })
  }

  return {
    upsert: (id: string, payload: Record<string, unknown>, seconds?: number) =>
      reach(keepRecord(services, { model, id }, payload, seconds)),
    find: (id: string) => reach(findRecord(services, { model, id })),
    findByUid: (uid: string) => reach(findRecordByUid(services, model, uid)),
    findByUserCode: async () => undefined,
    async consume(id: string) {
      if (!(await reach(consumeRecord(services, { model, id })))) faults.usedAgain()
    },
    destroy: (id: string) => reach(dropRecord(services, { model, id })),
    revokeByGrantId: (grantId: string) => reach(dropRecordsOfGrant(services, model, grantId)),
  }
}
