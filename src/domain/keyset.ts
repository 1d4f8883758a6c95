import { type RawBuilder, sql } from 'kysely'

import type { IdPrefix } from '../ids.ts'
import { readPosition } from './cursor.ts'
import { refuse } from './text.ts'

/** Which part of a list, newest first, a caller asks for: what follows a record in it, or what stands before one. */
export type Walk = { limit: number; after?: string | undefined; before?: string | undefined }

/** A page of a list that is walked by ids, which sort by creation: a position is valid after its record is gone. */
export type Keyset = {
  /** Ends the `where` of a statement: what lies beyond the position, nearest first, one row more than the page. */
  part(id: RawBuilder<unknown>): RawBuilder<unknown>
  /** The order of these rows, where they are joined afterwards. */
  order(id: RawBuilder<unknown>): RawBuilder<unknown>
  /** What of these rows is the page, newest first, and whether there is more in the direction of the walk. */
  page<Row>(found: readonly Row[]): { page: Row[]; hasMore: boolean }
}

/** The one way lists of REST are walked; refuses both directions at once and what is no id of the list's records. */
export function readWalk(prefix: IdPrefix, { limit, after, before }: Walk): Keyset {
  if (before === undefined) {
    return keyset(after === undefined ? null : readPosition(prefix, after, 'after'), limit)
  }
  if (after !== undefined) refuse('before', 'and after are two directions: send one of them.')
  return keyset(readPosition(prefix, before, 'before'), limit, { isBack: true })
}

/** A page from a position (uuid) on, or of the newest; `isBack` walks towards the newest. */
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
