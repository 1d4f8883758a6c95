import { sql } from 'kysely'

import type { Token } from '../../schema/token.ts'
import { Failure } from '../catalogue/failure.ts'
import type { Call } from '../catalogue/tool.ts'
import { row } from '../database.ts'
import { decodeId, encodeId } from '../ids.ts'

type Row = Omit<Token, 'createdAt' | 'lastUsedAt' | 'expiresAt'> & {
  createdAt: Date
  lastUsedAt: Date | null
  expiresAt: Date | null
}

/** The token that a call was made with. */
export async function currentToken({ em, organization, actor }: Call): Promise<Token> {
  const found =
    actor.kind === 'token'
      ? await row<Row>(
          em,
          sql`select id, name, last_four as "lastFour", permissions, created_at as "createdAt",
              last_used_at as "lastUsedAt", expires_at as "expiresAt"
            from api_token where organization_id = ${organization.id} and id = ${decodeId('tok', actor.id)}`,
        )
      : null
  if (!found) throw new Failure('NOT_FOUND', 'This call was not made with an API token; send one to see it.')
  const { id, createdAt, lastUsedAt, expiresAt, ...rest } = found
  return {
    id: encodeId('tok', id),
    ...rest,
    createdAt: new Date(createdAt).toISOString(),
    lastUsedAt: lastUsedAt && new Date(lastUsedAt).toISOString(),
    expiresAt: expiresAt && new Date(expiresAt).toISOString(),
  }
}
