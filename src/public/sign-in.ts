import type { Principal } from '../catalogue/principal.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { logIn, type Login, type MemberOrganization, readMemberships } from '../domain/members.ts'
import { keepGrant, type NewGrant, recognizeAccessToken } from '../domain/oauth/grants.ts'
import {
  consumeRecord,
  dropRecord,
  dropRecordsOfGrant,
  findRecord,
  findRecordByUid,
  keepRecord,
} from '../domain/oauth/records.ts'
import type { Services } from '../services.ts'

export type { Login }

/** A member who signs in, and where they belong. */
export type Signer = Login & { email: string; organizations: MemberOrganization[] }

/** The member with this address and password, or null; both answers take as long. */
export async function signIn(
  services: Services,
  credentials: { email: string; password: string },
): Promise<Login | null> {
  return await logIn(crossOrganization(services), credentials)
}

/** Who logged in, or null where they belong nowhere any more or have a new password. */
export async function findSigner(services: Services, login: Login): Promise<Signer | null> {
  const found = await readMemberships(crossOrganization(services), login)
  return found && { ...login, ...found }
}

/** Lets a client into an organization of the member. */
export async function letIn(services: Services, grant: NewGrant): Promise<void> {
  await keepGrant(services, grant)
}

/** Whose access token it is, and the scopes that it was given. */
export async function recognizeClient(
  services: Services,
  token: string,
  audience: string,
): Promise<{ principal: Principal; scopes: string[] }> {
  return await recognizeAccessToken(services, token, audience)
}

/** What the OAuth server keeps of one kind of thing, in the shape that it asks for; `refuse` answers who comes second. */
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
