import { sql } from 'kysely'

import type { Permission } from '../../schema/values.ts'
import { execute, prepared, row } from '../database.ts'
import { encodeId } from '../ids.ts'
import type { Services } from '../services.ts'
import { Failure } from './failure.ts'
import { REQUESTS_PER_MINUTE } from './rate-limit.ts'
import { hashToken, isWellFormedToken } from './tokens.ts'
import type { Actor, Organization } from './tool.ts'
import { crossOrganization } from './unit-of-work.ts'

/** The caller: a token's organization, its permissions, and its rate limit. */
export type Principal = {
  organization: Organization
  actor: Actor
  permissions: readonly Permission[]
  /** Requests per minute; 0 is unlimited. */
  requestLimit: number
  /** The database's time when the call began. */
  now: Date
  /** Set if it comes from memory and may be up to 10 seconds old; see withPrincipal. */
  isRemembered?: true
}

type TokenRow = Organization & {
  tokenId: string
  tokenName: string
  permissions: Permission[]
  customLimits: { requestsPerMinute?: number } | null
  isStale: boolean
  now: Date
}

const readToken = prepared(
  'read_token',
  `select token.id as "tokenId", token.name as "tokenName", token.permissions,
      coalesce(token.last_used_at < now() - interval '1 minute', true) as "isStale",
      organization.id, organization.name, organization.slug, organization.timezone, organization.plan,
      organization.double_opt_in as "doubleOptIn", organization.custom_limits as "customLimits", now() as now
    from api_token token join organization on organization.id = token.organization_id
    where token.token_hash = $1 and token.revoked_at is null and (token.expires_at is null or token.expires_at > now())`,
)

/**
 * Returns the principal for `Authorization: Bearer <token>`, with one query. Throws `MISSING_TOKEN` without a header,
 * and `UNAUTHENTICATED` for a malformed, unknown, expired or revoked token; the message says which header to send.
 */
export async function authenticate(
  services: Services,
  authorization: string | undefined,
): Promise<Principal> {
  const token = bearerToken(authorization)
  if (!isWellFormedToken(token)) refuseToken()
  const hash = hashToken(token)
  const began = performance.now()
  const found = await row<TokenRow>(crossOrganization(services), readToken(hash))
  if (!found) refuseToken()
  const { tokenId, tokenName, permissions, customLimits, isStale, now, ...organization } = found
  if (isStale) noteUse(services, 'api_token', 'token_hash', hash)
  const principal = {
    organization,
    actor: { kind: 'token', id: encodeId('tok', tokenId), name: tokenName } as const,
    permissions,
    requestLimit: customLimits?.requestsPerMinute ?? REQUESTS_PER_MINUTE[organization.plan],
    now: new Date(now),
  }
  remember(services, hash, { principal, began })
  return principal
}

/**
 * Runs `work` as the principal for the header. `mayBeRemembered` returns whether the statement of the operation checks
 * the token itself: then a remembered principal is used, which saves a query. If that call is refused, it runs again
 * with a fresh principal, whose result counts.
 */
export async function withPrincipal<Result>(
  services: Services,
  authorization: string | undefined,
  mayBeRemembered: () => boolean,
  work: (principal: Principal) => Promise<Result>,
): Promise<Result> {
  try {
    const recent = mayBeRemembered() ? recall(services, authorization) : undefined
    if (recent) return await work(recent)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
  }
  return await work(await authenticate(services, authorization))
}

type Remembered = { principal: Principal; began: number }

const REMEMBERED_MS = 10_000
const MOST_REMEMBERED = 1_000
const memories = new WeakMap<Services, Map<string, Remembered>>()

function remember(services: Services, hash: Buffer, remembered: Remembered): void {
  const memory = memories.get(services) ?? new Map<string, Remembered>()
  memories.set(services, memory)
  const key = hash.toString('base64')
  memory.delete(key)
  memory.set(key, remembered)
  if (memory.size <= MOST_REMEMBERED) return
  const [oldest] = memory.keys()
  if (oldest !== undefined) memory.delete(oldest)
}

function recall(services: Services, authorization: string | undefined): Principal | undefined {
  const memory = memories.get(services)
  const key = hashToken(bearerToken(authorization)).toString('base64')
  const found = memory?.get(key)
  if (!found) return undefined
  const age = performance.now() - found.began
  if (age < REMEMBERED_MS) {
    return { ...found.principal, now: new Date(found.principal.now.getTime() + age), isRemembered: true }
  }
  memory?.delete(key)
  return undefined
}

/** Throws `FORBIDDEN` if the principal lacks the permission. */
export function requirePermission(principal: Principal, permission: Permission): void {
  if (principal.permissions.includes(permission)) return
  throw new Failure(
    'FORBIDDEN',
    `This token lacks the permission "${permission}"; use a token that has it (it has ${principal.permissions.join(', ') || 'none'}).`,
    { details: { permission } },
  )
}

/**
 * Returns the secret in `Authorization: Bearer <secret>`; `named` and `form` describe it in messages. Throws
 * `MISSING_TOKEN` without a header and `UNAUTHENTICATED` for a malformed one.
 */
export function bearerToken(authorization: string | undefined, named = 'API token', form = 'pl_…'): string {
  const match = /^Bearer ([^\s]{1,200})$/i.exec(authorization ?? '')
  if (match?.[1]) return match[1]
  throw new Failure(
    authorization ? 'UNAUTHENTICATED' : 'MISSING_TOKEN',
    `No ${named} was sent; send the header "Authorization: Bearer ${form}".`,
    {
      details: { reason: authorization ? 'malformed' : 'missing' },
    },
  )
}

/** Throws `UNAUTHENTICATED` for a token that is mistyped, revoked or expired. */
export function refuseToken(): never {
  throw new Failure(
    'UNAUTHENTICATED',
    'This API token is not valid: it is mistyped, revoked or expired; make a new one and send it as "Authorization: Bearer pl_…".',
    { details: { reason: 'invalid' } },
  )
}

/** Writes the time of last use in the background, at most once a minute. */
export function noteUse(
  services: Services,
  table: 'api_token' | 'admin_key' | 'oauth_grant',
  key: 'token_hash' | 'key_hash' | 'grant_hash',
  hash: Buffer,
): void {
  execute(
    crossOrganization(services),
    sql`update ${sql.table(table)} set last_used_at = now() where ${sql.ref(key)} = ${hash}
      and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
  ).catch((error: unknown) => services.log.warn({ err: error }, 'the time of last use was not written'))
}
