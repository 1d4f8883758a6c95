import type { BrowseEventsQuery, CreateCustomEventBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** What happens to people, here and elsewhere, such as payments. */
export class Events {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** A page of events of all people, newest first. */
  list(query?: BrowseEventsQuery, options?: CallOptions) {
    return this.#rest.call('GET /events', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<BrowseEventsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Records it, and starts the workflows that wait for it. */
  create(event: CreateCustomEventBody, options?: WriteOptions) {
    return this.#rest.call('POST /events', [], event, options)
  }
}
