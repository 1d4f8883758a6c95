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

/** The people. A subscriber is named by an id (`sub_…`) or by an email address. */
export class Subscribers {
  readonly #rest: Rest
  readonly tags: SubscriberTags
  readonly events: SubscriberEvents

  constructor(rest: Rest) {
    this.#rest = rest
    this.tags = new SubscriberTags(rest)
    this.events = new SubscriberEvents(rest)
  }

  /** A page of people, newest first. */
  list(query?: BrowseSubscribersQuery, options?: CallOptions) {
    return this.#rest.call('GET /subscribers', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<BrowseSubscribersQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Adds a person, or updates whoever has the address. */
  create(subscriber: AddSubscriberInput, options?: WriteOptions) {
    return this.#rest.call('POST /subscribers', [], subscriber, options)
  }

  /** One person. */
  get(subscriber: string, options?: CallOptions) {
    return this.#rest.call('GET /subscribers/:subscriber', [subscriber], undefined, options)
  }

  /** Changes what is named. */
  update(subscriber: string, changes: UpdateSubscriberBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /subscribers/:subscriber', [subscriber], changes, options)
  }

  /** Erases a person for good. */
  delete(subscriber: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /subscribers/:subscriber', [subscriber], undefined, options)
  }

  /** Everything that is kept of one person. */
  export(subscriber: string, options?: CallOptions) {
    return this.#rest.call('GET /subscribers/:subscriber/export', [subscriber], undefined, options)
  }

  /** Ends the subscription. Nothing asks for a confirmation. */
  unsubscribe(subscriber: string, reason?: UnsubscribeBody, options?: WriteOptions) {
    return this.#rest.call('POST /subscribers/:subscriber/unsubscribe', [subscriber], reason, options)
  }
}

/** The tags of one person. */
class SubscriberTags {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Adds tags; missing ones are made. */
  add(subscriber: string, names: AddSubscriberTagsBody, options?: WriteOptions) {
    return this.#rest.call('POST /subscribers/:subscriber/tags', [subscriber], names, options)
  }

  /** Takes tags away. */
  remove(subscriber: string, names: RemoveSubscriberTagsBody, options?: WriteOptions) {
    return this.#rest.call('DELETE /subscribers/:subscriber/tags', [subscriber], names, options)
  }
}

/** What happened to one person. */
class SubscriberEvents {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** A page of events, newest first. */
  list(subscriber: string, query?: BrowseSubscriberEventsQuery, options?: CallOptions) {
    return this.#rest.call('GET /subscribers/:subscriber/events', [subscriber], query, options)
  }

  /** All of them, one after another, page by page. */
  each(subscriber: string, query?: Walk<BrowseSubscriberEventsQuery>, options?: CallOptions) {
    return walk((page) => this.list(subscriber, { limit: WALK_LIMIT, ...query, ...page }, options))
  }
}
