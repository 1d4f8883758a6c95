import { sql } from 'kysely'

import type { Permission } from '../../schema/values.ts'
import { execute, row } from '../database.ts'
import { hashToken, isWellFormedToken } from './tokens.ts'
import { encodeId } from '../ids.ts'
import type { Services } from '../services.ts'
import { Failure } from './failure.ts'
import { REQUESTS_PER_MINUTE } from './rate-limit.ts'
import type { Actor, Organization } from './tool.ts'
import { crossOrganization } from './unit-of-work.ts'

/** Who calls: a token's organization, what it may do, and how often. */
export type Principal = {
  organization: Organization
  actor: Actor
  permissions: readonly Permission[]
  /** Requests per minute; 0 is unlimited. */
  requestLimit: number
  /** The database's time when the call began. */
  now: Date
}

type TokenRow = {
  tokenId: string
  tokenName: string
  permissions: Permission[]
  organization: Organization
  customLimits: { requestsPerMinute?: number } | null
  isStale: boolean
  now: Date
}

/**
 * The principal behind `Authorization: Bearer <token>`; one query. A missing, malformed, unknown, expired or revoked
 * token is UNAUTHENTICATED, and the sentence says which header to send.
 */
export async function authenticate(
  services: Services,
  authorization: string | undefined,
): Promise<Principal> {
  const token = bearerToken(authorization)
  if (!isWellFormedToken(token)) refuseToken()
  const hash = hashToken(token)
  const em = crossOrganization(services)
  const found = await row<TokenRow>(
    em,
    sql`select token_id as "tokenId", token_name as "tokenName", permissions, is_stale as "isStale", organization,
        custom_limits as "customLimits", at as now
      from token_principal(${hash})`,
  )
  if (!found) refuseToken()
  if (found.isStale) noteUse(services, hash)
  return {
    organization: found.organization,
    actor: { kind: 'token', id: encodeId('tok', found.tokenId), name: found.tokenName },
    permissions: found.permissions,
    requestLimit: found.customLimits?.requestsPerMinute ?? REQUESTS_PER_MINUTE[found.organization.plan],
    now: new Date(found.now),
  }
}

/** Refuses a principal whose token lacks a permission. */
export function requirePermission(principal: Principal, permission: Permission): void {
  if (principal.permissions.includes(permission)) return
  throw new Failure(
    'FORBIDDEN',
    `This token lacks the permission "${permission}"; use a token that has it (it has ${principal.permissions.join(', ') || 'none'}).`,
    { details: { permission } },
  )
}

function bearerToken(authorization: string | undefined): string {
  const match = /^Bearer ([^\s]{1,200})$/i.exec(authorization ?? '')
  if (match?.[1]) return match[1]
  throw new Failure(
    authorization ? 'UNAUTHENTICATED' : 'MISSING_TOKEN',
    'No API token was sent; send the header "Authorization: Bearer pl_…".',
    {
      details: { reason: authorization ? 'malformed' : 'missing' },
    },
  )
}

function refuseToken(): never {
  throw new Failure(
    'UNAUTHENTICATED',
    'This API token is not valid: it is mistyped, revoked or expired; make a new one and send it as "Authorization: Bearer pl_…".',
    { details: { reason: 'invalid' } },
  )
}

function noteUse(services: Services, hash: Buffer): void {
  execute(
    crossOrganization(services),
    sql`update api_token set last_used_at = now() where token_hash = ${hash}
      and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
  ).catch((error: unknown) => services.log.warn({ err: error }, 'the time of last use was not written'))
}
