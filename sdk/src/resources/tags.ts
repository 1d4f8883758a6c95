import type { BrowseTagsQuery, CreateTagInput, RenameTagBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Tags of the organization. */
export class Tags {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Returns a page of tags, newest first. */
  list(query?: BrowseTagsQuery, options?: CallOptions) {
    return this.#rest.call('GET /tags', [], query, options)
  }

  /** Iterates over all tags, one at a time, reading page by page. */
  each(query?: Walk<BrowseTagsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Creates a tag. */
  create(tag: CreateTagInput, options?: WriteOptions) {
    return this.#rest.call('POST /tags', [], tag, options)
  }

  /** Returns one tag, by its id or its name. */
  get(tag: string, options?: CallOptions) {
    return this.#rest.call('GET /tags/:tag', [tag], undefined, options)
  }

  /** Renames a tag. */
  update(tag: string, changes: RenameTagBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /tags/:tag', [tag], changes, options)
  }
}
