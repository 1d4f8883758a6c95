import type { BrowseDomainsQuery, CreateDomainInput, UpdateDomainBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Names that email is sent from. Needs a token with the permission `domains`. */
export class Domains {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** A page of domains, newest first. */
  list(query?: BrowseDomainsQuery, options?: CallOptions) {
    return this.#rest.call('GET /domains', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<BrowseDomainsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** A new domain, with the DNS records that it needs. */
  create(domain: CreateDomainInput, options?: WriteOptions) {
    return this.#rest.call('POST /domains', [], domain, options)
  }

  /** One domain, by its id or its name. */
  get(domain: string, options?: CallOptions) {
    return this.#rest.call('GET /domains/:domain', [domain], undefined, options)
  }

  /** Changes when it stands in for others. */
  update(domain: string, changes: UpdateDomainBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /domains/:domain', [domain], changes, options)
  }

  /** Looks its DNS records up now. */
  verify(domain: string, options?: WriteOptions) {
    return this.#rest.call('POST /domains/:domain/verify', [domain], undefined, options)
  }
}
