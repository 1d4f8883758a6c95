import type { AdminKey, AdminOrganization, NewAdminKey } from '../../schema/admin.ts'
import type { NewToken } from '../../schema/token.ts'
import { PERMISSIONS, type Plan } from '../../schema/values.ts'
import { Failure } from '../../src/catalogue/failure.ts'
import { crossOrganization } from '../../src/catalogue/unit-of-work.ts'
import type { Environment } from '../../src/config.ts'
import { migrate } from '../../src/database.ts'
import * as adminKeys from '../../src/domain/admin-keys.ts'
import { readAnyOrganization } from '../../src/domain/admin-organization.ts'
import * as members from '../../src/domain/members.ts'
import {
  ensureFirstToken,
  ensureOrganization,
  findOrganization,
  listOrganizations as readOrganizations,
  type OrganizationRecord,
} from '../../src/domain/organizations.ts'
import { createToken } from '../../src/domain/tokens.ts'
import { inOrganization, readInstallation, withOrganization, withServices } from './services.ts'

export { examine } from './doctor.ts'

/** An organization that is asked for; without a slug it is called by its name. */
export type Wanted = { name: string; slug?: string | undefined; plan: string }

/** Who is asked to be a member. */
export type WantedMember = { email: string; name?: string | undefined; password?: string | undefined }

/** What an installation begins with; null is what was there already, or was not asked for. */
export type Beginning = {
  organization: OrganizationRecord
  isNew: boolean
  token: NewToken | null
  member: members.Member | null
  isNewMember: boolean
}

/** Brings the database up to date, and makes the first organization with a token and a member as far as they are missing. */
export async function begin(
  env: Environment,
  wanted: Wanted,
  member: WantedMember | undefined,
): Promise<Beginning> {
  const config = readInstallation(env)
  return await withServices(env, async (services) => {
    await migrate(config)
    const em = crossOrganization(services)
    const { organizationId, isNew } = await ensureOrganization(em, described(wanted))
    const made = await inOrganization(services, organizationId, async (call) => ({
      // It also keeps two at once apart, so that the second finds the member of the first.
      token: await ensureFirstToken(call),
      ...(member ? await ensureMember(call, member) : { member: null, isNewMember: false }),
    }))
    const { organization } = await findOrganization(em, described(wanted).slug)
    return { organization, isNew, ...made }
  })
}

/** Makes an organization with its first token; a slug that is taken is refused. */
export async function createOrganization(
  env: Environment,
  wanted: Wanted,
): Promise<{ organization: OrganizationRecord; token: NewToken | null }> {
  return await withServices(env, async (services) => {
    const em = crossOrganization(services)
    const { slug } = described(wanted)
    const { organizationId, isNew } = await ensureOrganization(em, described(wanted))
    if (!isNew) {
      throw new Failure(
        'ALREADY_EXISTS',
        `There is an organization "${slug}" already; choose another --slug.`,
      )
    }
    const token = await inOrganization(services, organizationId, ensureFirstToken)
    return { organization: (await findOrganization(em, slug)).organization, token }
  })
}

/** Every organization of the installation. */
export async function listOrganizations(env: Environment): Promise<OrganizationRecord[]> {
  return await withServices(env, (services) => readOrganizations(crossOrganization(services)))
}

/** One of them, by its id or slug, as the admin API shows it. */
export async function showOrganization(env: Environment, idOrSlug: string): Promise<AdminOrganization> {
  return await withServices(env, async (services) => {
    const em = crossOrganization(services)
    const { organization } = await findOrganization(em, idOrSlug)
    return await readAnyOrganization(em, { id: organization.id })
  })
}

/** A further token that may do everything, for who has lost the first. */
export async function addToken(env: Environment, idOrSlug: string, name: string): Promise<NewToken> {
  return await withOrganization(env, idOrSlug, (call) =>
    createToken(call, { name, permissions: PERMISSIONS }),
  )
}

/** Makes an admin key; only the answer has its text. */
export async function createAdminKey(env: Environment, name: string): Promise<NewAdminKey> {
  return await withServices(env, (services) => adminKeys.createAdminKey(crossOrganization(services), name))
}

/** Every admin key, the revoked ones too. */
export async function listAdminKeys(env: Environment): Promise<AdminKey[]> {
  return await withServices(env, (services) => adminKeys.listAdminKeys(crossOrganization(services)))
}

/** Ends an admin key at once. */
export async function revokeAdminKey(env: Environment, id: string): Promise<AdminKey> {
  return await withServices(env, (services) => adminKeys.revokeAdminKey(crossOrganization(services), id))
}

/** Makes somebody a member of an organization. */
export async function createMember(
  env: Environment,
  organization: string | undefined,
  member: WantedMember,
): Promise<members.Member> {
  return await withOrganization(env, organization, (call) => members.createMember(call, member))
}

/** The members of an organization. */
export async function listMembers(
  env: Environment,
  organization: string | undefined,
): Promise<members.Member[]> {
  return await withOrganization(env, organization, members.listMembers)
}

/** Gives a member another password. */
export async function setPassword(
  env: Environment,
  organization: string | undefined,
  { member, password }: { member: string; password: string },
): Promise<members.Member> {
  return await withOrganization(env, organization, (call) =>
    members.setMemberPassword(call, member, password),
  )
}

/** Takes somebody out of an organization. */
export async function removeMember(
  env: Environment,
  organization: string | undefined,
  member: string,
): Promise<members.Member> {
  return await withOrganization(env, organization, (call) => members.removeMember(call, member))
}

async function ensureMember(
  call: Parameters<typeof members.createMember>[0],
  member: WantedMember,
): Promise<{ member: members.Member; isNewMember: boolean }> {
  const known = (await members.listMembers(call)).find(
    ({ email }) => email.toLowerCase() === member.email.toLowerCase(),
  )
  return known
    ? { member: known, isNewMember: false }
    : { member: await members.createMember(call, member), isNewMember: true }
}

function described({ name, slug, plan }: Wanted): { name: string; slug: string; plan: Plan } {
  // ensureOrganization refuses a plan that is none.
  return { name, slug: slug ?? slugOf(name), plan: plan.toUpperCase() as Plan }
}

/** A name as it stands in commands: small letters, digits, hyphens. */
function slugOf(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^\da-z]+/g, '-')
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, '')
}
