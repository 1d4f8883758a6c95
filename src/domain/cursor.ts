import { hashJson } from '../catalogue/canonical.ts'
import { Failure } from '../catalogue/failure.ts'
import { type IdPrefix, readId } from '../ids.ts'
import { refuse } from './text.ts'

/** An opaque cursor: the TypeID of the record that a page ends with, bound to the query it continues. */
export function encodeCursor(query: unknown, position: string): string {
  return Buffer.from(JSON.stringify([fingerprint(query), position])).toString('base64url')
}

/** The uuid a page goes on from; a cursor that is malformed or of another query is INVALID_INPUT. */
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

/** The uuid in a cursor that is the id of a record, which may be gone; what is no such id is INVALID_INPUT. */
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
