import type { CreateCustomEventBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { WriteOptions } from '../settings.ts'

/** What happened to people elsewhere, such as payments. */
export class Events {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Records it, and starts the workflows that wait for it. */
  create(event: CreateCustomEventBody, options?: WriteOptions) {
    return this.#rest.call('POST /events', [], event, options)
  }
}
