import { hashJson } from '../catalogue/canonical.ts'
import { Failure } from '../catalogue/failure.ts'

/** An opaque cursor: a position, bound to the query it continues. */
export function encodeCursor(query: unknown, position: string): string {
  return Buffer.from(JSON.stringify([fingerprint(query), position])).toString('base64url')
}

/** The position in a cursor; one that is malformed or of another query is INVALID_INPUT. */
export function decodeCursor(query: unknown, cursor: string): string {
  const read = parse(cursor)
  if (Array.isArray(read)) {
    const [hash, position]: unknown[] = read
    if (hash === fingerprint(query) && typeof position === 'string') return position
  }
  throw new Failure(
    'INVALID_INPUT',
    'cursor does not continue this query; send the nextCursor of an answer to the same query, or leave it out.',
    { details: [{ path: 'cursor', message: 'does not continue this query' }] },
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
