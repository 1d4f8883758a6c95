import type { BrowseTagsQuery, CreateTagInput, RenameTagBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Words by which people are found. */
export class Tags {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** A page of tags, newest first. */
  list(query?: BrowseTagsQuery, options?: CallOptions) {
    return this.#rest.call('GET /tags', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<BrowseTagsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** A new tag. */
  create(tag: CreateTagInput, options?: WriteOptions) {
    return this.#rest.call('POST /tags', [], tag, options)
  }

  /** One tag, by its id or its name. */
  get(tag: string, options?: CallOptions) {
    return this.#rest.call('GET /tags/:tag', [tag], undefined, options)
  }

  /** Gives a tag another name. */
  update(tag: string, changes: RenameTagBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /tags/:tag', [tag], changes, options)
  }
}
