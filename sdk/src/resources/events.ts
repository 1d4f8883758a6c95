import type { BrowseEventsQuery, CreateCustomEventBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Events of subscribers, including custom ones such as payments. */
export class Events {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Returns a page of events of all subscribers, newest first. */
  list(query?: BrowseEventsQuery, options?: CallOptions) {
    return this.#rest.call('GET /events', [], query, options)
  }

  /** Iterates over all events, one at a time, reading page by page. */
  each(query?: Walk<BrowseEventsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Records an event and starts the workflows that it triggers. */
  create(event: CreateCustomEventBody, options?: WriteOptions) {
    return this.#rest.call('POST /events', [], event, options)
  }
}
