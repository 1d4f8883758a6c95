import type { List, Result } from './result.ts'

/** How many records a walk reads at a time, unless said otherwise. */
export const WALK_LIMIT = 100

/** What a walk can be asked for: all that a list can, but the way back. */
export type Walk<Query> = Omit<Query, 'before'>

/**
 * Goes through a list from page to page, one record at a time. A page that cannot be read is the last result, with its
 * error in place of data.
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
