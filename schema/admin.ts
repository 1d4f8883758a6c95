import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { Domain } from './domain.ts'
import { PLANS } from './values.ts'

/** An admin key without its text, which is shown only once and never stored (contract, "Authentication"). */
export type AdminKey = {
  /** Begins with `adm_`. */
  id: string
  name: string
  /** The last four characters of the key's text, by which its owner recognizes it. */
  lastFour: string
  createdAt: string
  lastUsedAt: string | null
  revokedAt: string | null
}

/** An admin key together with its text. Only the call that creates the key returns this. */
export type NewAdminKey = AdminKey & { key: string }

/** An organization as the operators of the service see it (contract, "Organization (admin view)"). */
export const AdminOrganization = closed({
  organization: closed({
    id: Type.String({ description: 'The id of the organization (`org_…`).' }),
    name: Type.String(),
    slug: Type.String(),
    logo: nullable(Type.String()),
    email: nullable(Type.String()),
    timezone: Type.String(),
    verified: Type.Boolean(),
    createdAt: Type.String(),
  }),
  subscription: nullable(
    closed({
      plan: oneOf(PLANS),
      status: nullable(
        Type.String({ description: 'The billing status. Null if the organization is not billed.' }),
      ),
      periodStart: nullable(Type.String()),
      periodEnd: nullable(Type.String()),
      cancelAtPeriodEnd: Type.Boolean(),
      customLimits: nullable(
        Type.Object({
          requestsPerMinute: Type.Optional(
            Type.Integer({ description: 'The maximum number of requests per minute; 0 means no limit.' }),
          ),
          emailsPerMonth: Type.Optional(
            Type.Integer({ description: 'The maximum number of emails per month; 0 means no limit.' }),
          ),
        }),
      ),
    }),
  ),
  stats: closed({
    members: Type.Integer(),
    subscribers: Type.Integer(),
    campaigns: Type.Integer({
      description: 'The number of campaigns, without the internal emails of workflows.',
    }),
  }),
  domains: Type.Array(Domain),
})
export type AdminOrganization = Static<typeof AdminOrganization>
