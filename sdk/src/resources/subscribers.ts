import type {
  AddSubscriberInput,
  AddSubscriberTagsBody,
  BrowseSubscriberEventsQuery,
  BrowseSubscribersQuery,
  RemoveSubscriberTagsBody,
  UnsubscribeBody,
  UpdateSubscriberBody,
} from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Subscribers. Methods take the id (`sub_…`) or the email address of a subscriber. */
export class Subscribers {
  readonly #rest: Rest
  readonly tags: SubscriberTags
  readonly events: SubscriberEvents

  constructor(rest: Rest) {
    this.#rest = rest
    this.tags = new SubscriberTags(rest)
    this.events = new SubscriberEvents(rest)
  }

  /** Returns a page of subscribers, newest first. */
  list(query?: BrowseSubscribersQuery, options?: CallOptions) {
    return this.#rest.call('GET /subscribers', [], query, options)
  }

  /** Iterates over all subscribers, one at a time, reading page by page. */
  each(query?: Walk<BrowseSubscribersQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Adds a subscriber, or updates the one with the same address. */
  create(subscriber: AddSubscriberInput, options?: WriteOptions) {
    return this.#rest.call('POST /subscribers', [], subscriber, options)
  }

  /** Returns one subscriber. */
  get(subscriber: string, options?: CallOptions) {
    return this.#rest.call('GET /subscribers/:subscriber', [subscriber], undefined, options)
  }

  /** Changes the given members. */
  update(subscriber: string, changes: UpdateSubscriberBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /subscribers/:subscriber', [subscriber], changes, options)
  }

  /** Erases a subscriber permanently. */
  delete(subscriber: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /subscribers/:subscriber', [subscriber], undefined, options)
  }

  /** Returns all stored data about one subscriber. */
  export(subscriber: string, options?: CallOptions) {
    return this.#rest.call('GET /subscribers/:subscriber/export', [subscriber], undefined, options)
  }

  /** Unsubscribes a subscriber. There is no confirmation. */
  unsubscribe(subscriber: string, reason?: UnsubscribeBody, options?: WriteOptions) {
    return this.#rest.call('POST /subscribers/:subscriber/unsubscribe', [subscriber], reason, options)
  }
}

/** The tags of one subscriber. */
class SubscriberTags {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Adds tags; missing ones are created. */
  add(subscriber: string, names: AddSubscriberTagsBody, options?: WriteOptions) {
    return this.#rest.call('POST /subscribers/:subscriber/tags', [subscriber], names, options)
  }

  /** Removes tags. */
  remove(subscriber: string, names: RemoveSubscriberTagsBody, options?: WriteOptions) {
    return this.#rest.call('DELETE /subscribers/:subscriber/tags', [subscriber], names, options)
  }
}

/** The events of one subscriber. */
class SubscriberEvents {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Returns a page of events, newest first. */
  list(subscriber: string, query?: BrowseSubscriberEventsQuery, options?: CallOptions) {
    return this.#rest.call('GET /subscribers/:subscriber/events', [subscriber], query, options)
  }

  /** Iterates over all events, one at a time, reading page by page. */
  each(subscriber: string, query?: Walk<BrowseSubscriberEventsQuery>, options?: CallOptions) {
    return walk((page) => this.list(subscriber, { limit: WALK_LIMIT, ...query, ...page }, options))
  }
}
