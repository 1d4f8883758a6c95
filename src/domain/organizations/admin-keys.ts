import { sql } from 'kysely'

import type { AdminKey, NewAdminKey } from '../../../schema/admin.ts'
import { Failure } from '../../catalogue/failure.ts'
import { hashToken, lastFour, makeAdminKey } from '../../catalogue/tokens.ts'
import { type EntityManager, row, rows } from '../../database.ts'
import { encodeId, newId, readId } from '../../ids.ts'
import { nameLine, timestamp, timestampOrNull } from '../text.ts'

const COLUMNS = sql`id, name, last_four as "lastFour", created_at as "createdAt", last_used_at as "lastUsedAt",
  revoked_at as "revokedAt"`
const MAXIMUM_NAME = 100

/** Creates an admin key. The key text is only in this result, because only its hash is stored. */
export async function createAdminKey(em: EntityManager, asked: string): Promise<NewAdminKey> {
  const name = nameLine(asked, 'name', MAXIMUM_NAME, 'who or what it is for')
  const key = makeAdminKey()
  const made = await row<AdminKey>(
    em,
    sql`insert into admin_key (id, name, key_hash, last_four)
      values (${newId()}, ${name}, ${hashToken(key)}, ${lastFour(key)})
      returning ${COLUMNS}`,
  )
  if (!made) throw new Error('an admin key was not written')
  return { ...presentKey(made), key }
}

/** Lists all admin keys, newest first, including revoked ones. */
export async function listAdminKeys(em: EntityManager): Promise<AdminKey[]> {
  return (await rows<AdminKey>(em, sql`select ${COLUMNS} from admin_key order by id desc`)).map(presentKey)
}

/** Revokes an admin key at once; a revoked key stays as it is. Throws `NOT_FOUND` when there is none. */
export async function revokeAdminKey(em: EntityManager, id: string): Promise<AdminKey> {
  const revoked = await row<AdminKey>(
    em,
    sql`update admin_key set revoked_at = coalesce(revoked_at, now()) where id = ${readId('adm', id)}::uuid
      returning ${COLUMNS}`,
  )
  if (revoked) return presentKey(revoked)
  throw new Failure(
    'NOT_FOUND',
    `There is no admin key ${JSON.stringify(id.slice(0, 80))}; the list of admin keys shows their ids.`,
  )
}

/** Converts a database row (uuid, driver times) to the form of the API. */
function presentKey({ id, createdAt, lastUsedAt, revokedAt, ...rest }: AdminKey): AdminKey {
  return {
    id: encodeId('adm', id),
    ...rest,
    createdAt: timestamp(createdAt),
    lastUsedAt: timestampOrNull(lastUsedAt),
    revokedAt: timestampOrNull(revokedAt),
  }
}
