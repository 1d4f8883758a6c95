import { sql } from 'kysely'

import { DEFAULT_PERMISSIONS, type NewToken, type Token } from '../../../schema/token.ts'
import type { Permission } from '../../../schema/values.ts'
import { audit } from '../../catalogue/audit.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import { hashToken, lastFour, makeToken } from '../../catalogue/tokens.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { array, type EntityManager, row, rows } from '../../database.ts'
import { decodeId, encodeId, missing, newId, readId } from '../../ids.ts'
import { readMoment } from '../audience/moment.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { nameLine, timestamp, timestampOrNull } from '../text.ts'

type TokenRow = Omit<Token, 'createdAt' | 'lastUsedAt' | 'expiresAt'> & {
  createdAt: string
  lastUsedAt: string | null
  expiresAt: string | null
}

const COLUMNS = sql`id, name, last_four as "lastFour", permissions, created_at as "createdAt",
  last_used_at as "lastUsedAt", expires_at as "expiresAt"`
const MAXIMUM_NAME = 100

/** Returns the token of the current call. Throws `NOT_FOUND` when the call has none. */
export async function currentToken(call: Call): Promise<Token> {
  const found = await readOwn(call)
  if (!found) throw new Failure('NOT_FOUND', 'This call was not made with an API token; send one to see it.')
  return presentToken(found)
}

/** Lists the tokens that are not deleted, newest first, including expired ones. */
export async function browseTokens(
  { em, organization }: Call,
  asked: Walk,
): Promise<{ tokens: Token[]; hasMore: boolean }> {
  const walk = readWalk('tok', asked)
  const found = await rows<TokenRow>(
    em,
    sql`select ${COLUMNS} from api_token
      where organization_id = ${organization.id} and revoked_at is null ${walk.part(sql`id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { tokens: page.map(presentToken), hasMore }
}

/** Creates a token. Its text is only in this result. Nobody can grant permissions that they lack themselves. */
export async function createToken(
  call: Call,
  input: { name: string; permissions?: readonly Permission[] | undefined; expiresAt?: string | undefined },
): Promise<NewToken> {
  const { em, organization } = call
  const { permissions = DEFAULT_PERMISSIONS } = input
  const name = nameLine(input.name, 'name', MAXIMUM_NAME, 'who or what it is for')
  const expiresAt = input.expiresAt === undefined ? null : readExpiry(input.expiresAt, call.now)
  await refuseMore(call, permissions, expiresAt)
  const token = await insertToken(em, organization.id, { name, permissions, expiresAt })
  await audit(call, 'token.created', token.id, { name, permissions, expiresAt: token.expiresAt })
  return token
}

/** Inserts a new token of an organization. Its text is only in this result, because only its hash is stored. */
export async function insertToken(
  em: EntityManager,
  organizationId: string,
  given: { name: string; permissions: readonly Permission[]; expiresAt?: string | null },
): Promise<NewToken & { token: string }> {
  const text = makeToken()
  const made = await row<TokenRow>(
    em,
    sql`insert into api_token (id, organization_id, name, token_hash, last_four, permissions, expires_at)
      values (${newId()}, ${organizationId}, ${given.name}, ${hashToken(text)}, ${lastFour(text)},
        ${array(given.permissions, 'text')}, ${given.expiresAt ?? null}::timestamptz)
      returning ${COLUMNS}`,
  )
  if (!made) throw new Error('a token was not written')
  return { ...presentToken(made), token: text }
}

/** Revokes a token at once and returns its id. Throws `NOT_FOUND` when there is none. */
export async function deleteToken(call: Call, tokenId: string): Promise<string> {
  const { em, organization } = call
  const ended = await row<{ id: string }>(
    em,
    sql`update api_token set revoked_at = now()
      where organization_id = ${organization.id} and id = ${decodeId('tok', tokenId)} and revoked_at is null
      returning id`,
  )
  if (!ended) missing('tok', tokenId)
  const id = encodeId('tok', ended.id)
  await audit(call, 'token.deleted', id, {})
  return id
}

/** Summarizes what deleting a token does. */
export async function summarizeTokenDeletion({ em, organization }: Call, tokenId: string): Promise<Impact> {
  const found = await row<TokenRow>(
    em,
    sql`select ${COLUMNS} from api_token
      where organization_id = ${organization.id} and id = ${decodeId('tok', tokenId)} and revoked_at is null`,
  )
  const token = presentToken(found ?? missing('tok', tokenId))
  return {
    target: `the API token "${token.name}" (…${token.lastFour})`,
    effects: ['It is revoked at once and for good; every call with it is refused.'],
    warnings: token.lastUsedAt === null ? [] : [`It was last used at ${token.lastUsedAt}.`],
  }
}

async function readOwn({ em, organization, actor }: Call): Promise<TokenRow | null> {
  if (actor.kind !== 'token') return null
  return await row<TokenRow>(
    em,
    sql`select ${COLUMNS} from api_token
      where organization_id = ${organization.id} and id = ${readId('tok', actor.id)}`,
  )
}

async function refuseMore(
  call: Call,
  permissions: readonly Permission[],
  expiresAt: string | null,
): Promise<void> {
  const own = await readOwn(call)
  if (own?.expiresAt && (expiresAt === null || new Date(expiresAt) > new Date(own.expiresAt))) {
    throw new Failure(
      'FORBIDDEN',
      `This token expires at ${timestamp(own.expiresAt)} and cannot create one that is valid longer; send an expiresAt up to then, or use a token that is valid longer.`,
      { details: { expiresAt: timestamp(own.expiresAt) } },
    )
  }
  const more = own ? permissions.filter((permission) => !own.permissions.includes(permission)) : []
  if (more.length === 0) return
  throw new Failure(
    'FORBIDDEN',
    `This token cannot grant permissions that it lacks itself: ${more.join(', ')}; send permissions without that, or use a token that has it.`,
    { details: { permissions: more } },
  )
}

function readExpiry(text: string, now: Date): string {
  const moment = /T.*(?:Z|[+-]\d\d:?\d\d)$/.test(text) ? readMoment(text, 'UTC') : null
  if (!moment) {
    refuse('expiresAt', 'is not a time; send ISO 8601 with a zone, such as "2030-01-31T09:00:00Z".')
  }
  if (moment.start <= now.getTime()) refuse('expiresAt', 'has passed; send a time to come, or leave it out.')
  return new Date(moment.start).toISOString()
}

function presentToken({ id, createdAt, lastUsedAt, expiresAt, ...rest }: TokenRow): Token {
  return {
    id: encodeId('tok', id),
    ...rest,
    createdAt: timestamp(createdAt),
    lastUsedAt: timestampOrNull(lastUsedAt),
    expiresAt: timestampOrNull(expiresAt),
  }
}
