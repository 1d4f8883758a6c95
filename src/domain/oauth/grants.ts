import { sql } from 'kysely'

import { PERMISSIONS } from '../../../schema/values.ts'
import { audit } from '../../catalogue/audit.ts'
import { Failure } from '../../catalogue/failure.ts'
import { noteUse, type Principal } from '../../catalogue/principal.ts'
import { REQUESTS_PER_MINUTE } from '../../catalogue/rate-limit.ts'
import { hashToken } from '../../catalogue/tokens.ts'
import type { Organization } from '../../catalogue/tool.ts'
import { crossOrganization, unitOfWork } from '../../catalogue/unit-of-work.ts'
import { execute, row } from '../../database.ts'
import { decodeId, encodeId, missing } from '../../ids.ts'
import type { Services } from '../../services.ts'
import { isLogin, type Login } from '../organizations/members.ts'
import { openRecord } from './records.ts'

/** The access that a member grants a client to one of their organizations. */
export type NewGrant = {
  grantId: string
  client: { id: string; name: string }
  member: Login & { email: string }
  organizationId: string
  seconds: number
}

type GrantRow = Organization & {
  hash: Buffer
  payload: Buffer
  grantHash: Buffer
  memberId: string
  email: string
  clientName: string
  customLimits: { requestsPerMinute?: number } | null
  isStale: boolean
  now: Date
}

/**
 * Stores a grant. Throws `NOT_FOUND` when the member does not belong to the organization, or their password has changed
 * since they logged in.
 */
export async function keepGrant(services: Services, grant: NewGrant): Promise<void> {
  const { grantId, client, member, seconds } = grant
  const scope = {
    organizationId: decodeId('org', grant.organizationId),
    actor: { kind: 'member', id: member.id, name: member.email },
  } as const
  await unitOfWork(services, scope, async (call) => {
    const kept = await execute(
      call.em,
      sql`insert into oauth_grant (grant_hash, organization_id, member_id, client_hash, client_name, expires_at)
        select ${hashToken(grantId)}, organization_id, member_id, ${hashToken(client.id)}, ${client.name},
          now() + make_interval(secs => ${seconds})
        from membership join member on member.id = membership.member_id
        where organization_id = ${call.organization.id} and ${isLogin(member)} for share of member, membership`,
    )
    if (kept === 0) missing('org', grant.organizationId)
    await audit(call, 'client.let_in', member.id, { client: client.name })
  })
}

/**
 * Returns the principal and scopes of an access token, in one query. Throws `UNAUTHENTICATED` for a token that is
 * unknown, expired, revoked or for another audience, or whose member has left.
 */
export async function recognizeAccessToken(
  services: Services,
  token: string,
  audience: string,
): Promise<{ principal: Principal; scopes: string[] }> {
  const em = crossOrganization(services)
  const found = await row<GrantRow>(
    em,
    sql`select record.id_hash as hash, record.payload, held.grant_hash as "grantHash", member.id as "memberId",
        member.email, held.client_name as "clientName",
        coalesce(held.last_used_at < now() - interval '1 minute', true) as "isStale",
        organization.id, organization.name, organization.slug, organization.timezone, organization.plan,
        organization.double_opt_in as "doubleOptIn", organization.custom_limits as "customLimits", now() as now
      from oauth_record record
      join oauth_grant held on held.grant_hash = record.grant_hash and held.expires_at > now()
      join member on member.id = held.member_id
      join organization on organization.id = held.organization_id
      where record.model = 'AccessToken' and record.id_hash = ${hashToken(token)} and record.expires_at > now()`,
  )
  if (!found) refuseAccess()
  const {
    hash,
    payload,
    grantHash,
    memberId,
    email,
    clientName,
    customLimits,
    isStale,
    now,
    ...organization
  } = found
  const { aud, scope } = openRecord(services, 'AccessToken', { hash, payload }) ?? {}
  if (aud !== audience) refuseAccess()
  if (isStale) noteUse(services, 'oauth_grant', 'grant_hash', grantHash)
  const principal: Principal = {
    organization,
    actor: {
      kind: 'member',
      id: encodeId('usr', memberId),
      name: `${email} by ${clientName}`,
      isAgent: true,
    },
    permissions: PERMISSIONS,
    requestLimit: customLimits?.requestsPerMinute ?? REQUESTS_PER_MINUTE[organization.plan],
    now: new Date(now),
  }
  return { principal, scopes: typeof scope === 'string' ? scope.split(' ') : [] }
}

function refuseAccess(): never {
  throw new Failure(
    'UNAUTHENTICATED',
    'This access token is not valid here: it is unknown, expired or revoked, or was given for another address; refresh it or sign in again.',
    { details: { reason: 'invalid' } },
  )
}
