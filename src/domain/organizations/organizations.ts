import { sql } from 'kysely'

import { ORGANIZATION_LIMITS } from '../../../schema/organization.ts'
import type { NewToken } from '../../../schema/token.ts'
import { PERMISSIONS, PLANS, type Plan } from '../../../schema/values.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { type EntityManager, execute, row, rows } from '../../database.ts'
import { encodeId, newId, readId } from '../../ids.ts'
import { oneLine, timestamp } from '../text.ts'
import { createToken } from './tokens.ts'

/** An organization as the operator of the installation sees it. */
export type OrganizationRecord = {
  id: string
  name: string
  slug: string
  plan: Plan
  timezone: string
  subscribers: number
  tokens: number
  createdAt: string
}

/** The properties of a new organization; commands name it by its slug. */
export type NewOrganization = {
  name: string
  slug: string
  plan: Plan
  email?: string | undefined
  timezone?: string | undefined
  verified?: boolean | undefined
}

const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

const COLUMNS = sql`organization.id, organization.name, organization.slug, organization.plan, organization.timezone,
  (select count(*)::int from subscriber where subscriber.organization_id = organization.id) as subscribers,
  (select count(*)::int from api_token token where token.organization_id = organization.id
    and token.revoked_at is null and (token.expires_at is null or token.expires_at > now())) as tokens,
  organization.created_at as "createdAt"`

/** Creates an organization unless its slug is taken. Returns the uuid and whether it is new. */
export async function ensureOrganization(
  em: EntityManager,
  { name, slug, plan, email, timezone, verified = false }: NewOrganization,
): Promise<{ organizationId: string; isNew: boolean }> {
  if (!SLUG.test(slug)) {
    refuse(
      'slug',
      'must have 1 to 63 small letters, digits and hyphens, and neither begin nor end with a hyphen.',
    )
  }
  if (!PLANS.includes(plan)) refuse('plan', `is not one of ${PLANS.join(', ')}.`)
  if (name.trim() === '') refuse('name', 'is empty; give the organization a name.')
  const organizationId = newId()
  const made = await execute(
    em,
    sql`insert into organization (id, name, slug, email, plan, verified, timezone)
      values (${organizationId}, ${oneLine(name, 'name', ORGANIZATION_LIMITS.name)}, ${slug}, ${email ?? null},
        ${plan}, ${verified}, coalesce(${timezone ?? null}, 'Europe/Paris'))
      on conflict (slug) do nothing`,
  )
  if (made > 0) return { organizationId, isNew: true }
  const found = await row<{ id: string }>(em, sql`select id from organization where slug = ${slug}`)
  if (!found) throw new Error('an organization was neither made nor found')
  return { organizationId: found.id, isNew: false }
}

/** Lists all organizations of the installation, oldest first. */
export async function listOrganizations(em: EntityManager): Promise<OrganizationRecord[]> {
  const found = await rows<OrganizationRecord>(em, sql`select ${COLUMNS} from organization order by id`)
  return found.map(present)
}

/** Returns an organization by id (org_…) or slug, with its uuid. Throws `NOT_FOUND` when there is none. */
export async function findOrganization(
  em: EntityManager,
  idOrSlug: string,
): Promise<{ organizationId: string; organization: OrganizationRecord }> {
  const found = await row<OrganizationRecord>(
    em,
    sql`select ${COLUMNS} from organization
      where slug = ${idOrSlug} or id = ${readId('org', idOrSlug)}`,
  )
  if (found) return { organizationId: found.id, organization: present(found) }
  throw new Failure(
    'NOT_FOUND',
    `There is no organization ${JSON.stringify(idOrSlug.slice(0, 80))}; "postloom org list" shows the existing ones.`,
  )
}

/** Creates the first token of an organization, with all permissions; returns null when a valid token exists. */
export async function ensureFirstToken(call: Call): Promise<NewToken | null> {
  const { em, organization } = call
  // Of two concurrent calls, the second waits here and then finds the token of the first.
  await execute(em, sql`select from organization where id = ${organization.id} for update`)
  const { organization: found } = await findOrganization(em, organization.slug)
  return found.tokens > 0 ? null : await createToken(call, { name: 'First token', permissions: PERMISSIONS })
}

function present(found: OrganizationRecord): OrganizationRecord {
  return { ...found, id: encodeId('org', found.id), createdAt: timestamp(found.createdAt) }
}
