import type { List, Result } from './result.ts'

/** How many records a walk reads per page by default. */
export const WALK_LIMIT = 100

/** The query of a walk: that of the list, without `before`. */
export type Walk<Query> = Omit<Query, 'before'>

/**
 * Iterates over a list page by page and yields one record at a time. If a page cannot be read, its error is yielded
 * last.
 */
export async function* walk<Item extends { id: string }>(
  read: (page: { after?: string }) => Promise<Result<List<Item>>>,
): AsyncGenerator<Result<Item>, void, undefined> {
  let page: { after?: string } = {}
  for (;;) {
    const result = await read(page)
    if (result.error) {
      yield result
      return
    }
    const { data, headers } = result
    for (const item of data.data) yield { data: item, error: null, headers }
    const last = data.data.at(-1)
    if (!last || !data.has_more) return
    page = { after: last.id }
  }
}
