import { hashJson } from '../catalogue/canonical.ts'
import { Failure, refuse } from '../catalogue/failure.ts'
import { type IdPrefix, readId } from '../ids.ts'

/** Returns an opaque cursor: the TypeID of the last record of a page, with a hash of the query it continues. */
export function encodeCursor(query: unknown, position: string): string {
  return Buffer.from(JSON.stringify([fingerprint(query), position])).toString('base64url')
}

/** Returns the uuid in a cursor. Throws `INVALID_INPUT` when it is malformed or belongs to another query. */
export function decodeCursor(query: unknown, prefix: IdPrefix, cursor: string): string {
  const read = parse(cursor)
  if (Array.isArray(read)) {
    const [hash, position]: unknown[] = read
    if (hash === fingerprint(query) && typeof position === 'string') return readPosition(prefix, position)
  }
  throw new Failure(
    'INVALID_INPUT',
    'cursor does not continue this query; send the nextCursor of an answer to the same query, or leave it out.',
    { details: [{ path: 'cursor', message: 'does not continue this query' }] },
  )
}

/** Returns the uuid in a cursor that is a record's id; the record may be deleted. Throws `INVALID_INPUT` otherwise. */
export function readPosition(prefix: IdPrefix, cursor: string, field = 'cursor'): string {
  return (
    readId(prefix, cursor) ??
    refuse(
      field,
      'is not a position in this list; send the one that the page before ended with, or leave it out.',
    )
  )
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return null
  }
}

function fingerprint(query: unknown): string {
  return hashJson(query).toString('base64url').slice(0, 12)
}
