import { sql } from 'kysely'

import type { AdminOrganization } from '../../../schema/admin.ts'
import type { Plan } from '../../../schema/values.ts'
import { Failure, refuseFaults } from '../../catalogue/failure.ts'
import { type EntityManager, row } from '../../database.ts'
import { encodeId, readId } from '../../ids.ts'
import { presentDomain, readDomains } from '../domains/domains.ts'
import { timestamp, timestampOrNull } from '../text.ts'

/** Names an organization in the admin API: exactly one of the two members. */
type OrganizationChoice = { id?: string | undefined; slug?: string | undefined }

type OrganizationRow = AdminOrganization['organization'] &
  Omit<NonNullable<AdminOrganization['subscription']>, 'plan'> & {
    plan: Plan
    stats: AdminOrganization['stats']
  }

/** Returns any organization with its subscription, statistics and domains. Only the admin API reads across tenants. */
export async function readAnyOrganization(
  em: EntityManager,
  choice: OrganizationChoice,
): Promise<AdminOrganization> {
  const found = await findOrganization(em, choice)
  const { id, name, slug, logo, email, timezone, verified, createdAt, stats } = found
  const domains = await readDomains({ em, organization: { id } })
  return {
    organization: {
      id: encodeId('org', id),
      name,
      slug,
      logo,
      email,
      timezone,
      verified,
      createdAt: timestamp(createdAt),
    },
    subscription: subscriptionOf(found),
    stats: { members: stats.members, subscribers: stats.subscribers, campaigns: stats.campaigns },
    domains: domains.map(presentDomain),
  }
}

async function findOrganization(
  em: EntityManager,
  { id, slug }: OrganizationChoice,
): Promise<OrganizationRow> {
  if (id !== undefined && slug !== undefined) refuseBoth((other) => `is given together with ${other}`)
  if (id === undefined && slug === undefined) refuseBoth((other) => `is missing, as is ${other}`)
  const isAsked = id === undefined ? sql`slug = ${slug}` : sql`id = ${readId('org', id)}::uuid`
  const found = await row<OrganizationRow>(
    em,
    sql`select id, name, slug, logo, email, timezone, verified, plan, created_at as "createdAt",
        subscription_status as status, period_start as "periodStart", period_end as "periodEnd",
        cancel_at_period_end as "cancelAtPeriodEnd", custom_limits as "customLimits",
        jsonb_build_object(
          'members', (select count(*) from membership where organization_id = organization.id),
          'subscribers', (select count(*) from subscriber where organization_id = organization.id),
          'campaigns', (select count(*) from campaign
            where organization_id = organization.id and kind = 'BROADCAST')) as stats
      from organization where ${isAsked}`,
  )
  if (found) return found
  const shown = JSON.stringify((id ?? slug ?? '').slice(0, 80))
  throw new Failure('NOT_FOUND', `There is no organization with the ${id ? 'id' : 'slug'} ${shown}.`)
}

/** Returns null for an organization on the free plan without billing and custom limits. */
function subscriptionOf(found: OrganizationRow): AdminOrganization['subscription'] {
  const { plan, status, periodStart, periodEnd, cancelAtPeriodEnd, customLimits } = found
  if (plan === 'FREE' && status === null && customLimits === null) return null
  return {
    plan,
    status,
    periodStart: timestampOrNull(periodStart),
    periodEnd: timestampOrNull(periodEnd),
    cancelAtPeriodEnd,
    customLimits,
  }
}

function refuseBoth(why: (other: string) => string): never {
  refuseFaults(
    [
      { path: 'id', message: `${why('slug')}; send exactly one of the two` },
      { path: 'slug', message: `${why('id')}; send exactly one of the two` },
    ],
    'The input of get_org',
  )
}
