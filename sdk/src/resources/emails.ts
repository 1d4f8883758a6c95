import type { BrowseEmailsQuery, NewEmail, VerifyEmailAddressBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Emails to one recipient each. */
export class Emails {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Accepts one email. It is stored before this returns, and is sent afterwards. */
  send(email: NewEmail, options?: WriteOptions) {
    return this.#rest.call('POST /emails', [], email, options)
  }

  /** Accepts up to 100 emails: all of them or none. */
  batch(emails: NewEmail[], options?: WriteOptions) {
    return this.#rest.call('POST /emails/batch', [], emails, options)
  }

  /** Checks whether an address can receive email, without sending to it. */
  verify(address: VerifyEmailAddressBody, options?: WriteOptions) {
    return this.#rest.call('POST /emails/verify', [], address, options)
  }

  /** Returns a page of emails without their bodies, newest first. */
  list(query?: BrowseEmailsQuery, options?: CallOptions) {
    return this.#rest.call('GET /emails', [], query, options)
  }

  /** Iterates over all emails, one at a time, reading page by page. */
  each(query?: Walk<BrowseEmailsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Returns one email with its content and its events. */
  get(emailId: string, options?: CallOptions) {
    return this.#rest.call('GET /emails/:emailId', [emailId], undefined, options)
  }
}
