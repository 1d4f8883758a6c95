import type { BrowseEmailsQuery, NewEmail, VerifyEmailAddressBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Email to one person each. */
export class Emails {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Accepts one email; it is stored when this answers, and will be sent. */
  send(email: NewEmail, options?: WriteOptions) {
    return this.#rest.call('POST /emails', [], email, options)
  }

  /** Accepts up to a hundred: all of them or none. */
  batch(emails: NewEmail[], options?: WriteOptions) {
    return this.#rest.call('POST /emails/batch', [], emails, options)
  }

  /** Says whether an address can get email, as far as DNS tells. */
  verify(address: VerifyEmailAddressBody, options?: WriteOptions) {
    return this.#rest.call('POST /emails/verify', [], address, options)
  }

  /** A page of emails without their bodies, newest first. */
  list(query?: BrowseEmailsQuery, options?: CallOptions) {
    return this.#rest.call('GET /emails', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<BrowseEmailsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** One email: what it said, and what became of it. */
  get(emailId: string, options?: CallOptions) {
    return this.#rest.call('GET /emails/:emailId', [emailId], undefined, options)
  }
}
