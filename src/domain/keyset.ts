import { type RawBuilder, sql } from 'kysely'

import { refuse } from '../catalogue/failure.ts'
import type { IdPrefix } from '../ids.ts'
import { readPosition } from './cursor.ts'

/** A part of a list, newest first: the records `after` an id, or those `before` it. */
export type Walk = { limit: number; after?: string | undefined; before?: string | undefined }

/** A page of a list by ids, which sort by creation. A position stays valid after its record is deleted. */
export type Keyset = {
  /** Ends a `where` clause: selects records beyond the position, nearest first, one more than the page. */
  part(id: RawBuilder<unknown>): RawBuilder<unknown>
  /** The order of these rows, for a statement that joins them afterwards. */
  order(id: RawBuilder<unknown>): RawBuilder<unknown>
  /** Returns the rows of the page, newest first, and whether more follow in the direction of the walk. */
  page<Row>(found: readonly Row[]): { page: Row[]; hasMore: boolean }
}

/** Reads the paging parameters of REST lists. Throws `INVALID_INPUT` for both directions at once or a malformed id. */
export function readWalk(prefix: IdPrefix, { limit, after, before }: Walk): Keyset {
  if (before === undefined) {
    return keyset(after === undefined ? null : readPosition(prefix, after, 'after'), limit)
  }
  if (after !== undefined) refuse('before', 'and after are two directions: send one of them.')
  return keyset(readPosition(prefix, before, 'before'), limit, { isBack: true })
}

/** Returns the page after a position (uuid), or the newest page for null; `isBack` pages towards newer records. */
export function keyset(position: string | null, limit: number, { isBack = false } = {}): Keyset {
  const order = (id: RawBuilder<unknown>) => sql`order by ${id} ${isBack ? sql`asc` : sql`desc`}`
  return {
    order,
    part(id) {
      const from = position === null ? sql`` : sql`and ${id} ${isBack ? sql`>` : sql`<`} ${position}`
      return sql`${from} ${order(id)} limit ${limit + 1}`
    },
    page(found) {
      const page = found.slice(0, limit)
      return { page: isBack ? page.toReversed() : page, hasMore: found.length > limit }
    },
  }
}
