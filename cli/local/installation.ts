import type { AdminKey, AdminOrganization, NewAdminKey } from '../../schema/admin.ts'
import type { NewToken } from '../../schema/token.ts'
import { PERMISSIONS, type Plan } from '../../schema/values.ts'
import { Failure } from '../../src/catalogue/failure.ts'
import { crossOrganization } from '../../src/catalogue/unit-of-work.ts'
import type { Environment } from '../../src/config.ts'
import { migrate } from '../../src/database.ts'
import * as adminKeys from '../../src/domain/organizations/admin-keys.ts'
import { readAnyOrganization } from '../../src/domain/organizations/admin-organization.ts'
import * as members from '../../src/domain/organizations/members.ts'
import {
  ensureFirstToken,
  ensureOrganization,
  findOrganization,
  listOrganizations as readOrganizations,
  type OrganizationRecord,
} from '../../src/domain/organizations/organizations.ts'
import { createToken } from '../../src/domain/organizations/tokens.ts'
import { inOrganization, readInstallation, withOrganization, withServices } from './services.ts'

export { examine } from './doctor.ts'

/** An organization to create. Without a slug, it is derived from the name. */
export type Wanted = { name: string; slug?: string | undefined; plan: string }

/** A member to create. */
export type WantedMember = { email: string; name?: string | undefined; password?: string | undefined }

/** The result of `begin`. A null token or member was not created: it already existed or was not requested. */
export type Beginning = {
  organization: OrganizationRecord
  isNew: boolean
  token: NewToken | null
  member: members.Member | null
  isNewMember: boolean
}

/** Migrates the database and creates the first organization, its token and its member unless they exist. */
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
      // This also locks out a concurrent call, so that the second one finds the member created by the first.
      token: await ensureFirstToken(call),
      ...(member ? await ensureMember(call, member) : { member: null, isNewMember: false }),
    }))
    const { organization } = await findOrganization(em, described(wanted).slug)
    return { organization, isNew, ...made }
  })
}

/** Creates an organization with its first token. Throws `ALREADY_EXISTS` when the slug is taken. */
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

/** Returns all organizations of the installation. */
export async function listOrganizations(env: Environment): Promise<OrganizationRecord[]> {
  return await withServices(env, (services) => readOrganizations(crossOrganization(services)))
}

/** Returns one organization, by its id or slug, as the admin API shows it. */
export async function showOrganization(env: Environment, idOrSlug: string): Promise<AdminOrganization> {
  return await withServices(env, async (services) => {
    const em = crossOrganization(services)
    const { organization } = await findOrganization(em, idOrSlug)
    return await readAnyOrganization(em, { id: organization.id })
  })
}

/** Creates another token with all permissions, for an owner who has lost the first one. */
export async function addToken(env: Environment, idOrSlug: string, name: string): Promise<NewToken> {
  return await withOrganization(env, idOrSlug, (call) =>
    createToken(call, { name, permissions: PERMISSIONS }),
  )
}

/** Creates an admin key. Only this result contains its text. */
export async function createAdminKey(env: Environment, name: string): Promise<NewAdminKey> {
  return await withServices(env, (services) => adminKeys.createAdminKey(crossOrganization(services), name))
}

/** Returns all admin keys, including revoked ones. */
export async function listAdminKeys(env: Environment): Promise<AdminKey[]> {
  return await withServices(env, (services) => adminKeys.listAdminKeys(crossOrganization(services)))
}

/** Revokes an admin key with immediate effect. */
export async function revokeAdminKey(env: Environment, id: string): Promise<AdminKey> {
  return await withServices(env, (services) => adminKeys.revokeAdminKey(crossOrganization(services), id))
}

/** Adds a member to an organization. */
export async function createMember(
  env: Environment,
  organization: string | undefined,
  member: WantedMember,
): Promise<members.Member> {
  return await withOrganization(env, organization, (call) => members.createMember(call, member))
}

/** Returns the members of an organization. */
export async function listMembers(
  env: Environment,
  organization: string | undefined,
): Promise<members.Member[]> {
  return await withOrganization(env, organization, members.listMembers)
}

/** Sets a new password for a member. */
export async function setPassword(
  env: Environment,
  organization: string | undefined,
  { member, password }: { member: string; password: string },
): Promise<members.Member> {
  return await withOrganization(env, organization, (call) =>
    members.setMemberPassword(call, member, password),
  )
}

/** Removes a member from an organization. */
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
  // `ensureOrganization` refuses unknown plans.
  return { name, slug: slug ?? slugOf(name), plan: plan.toUpperCase() as Plan }
}

/** Returns the slug of a name: lower-case letters, digits and hyphens. */
function slugOf(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^\da-z]+/g, '-')
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, '')
}
