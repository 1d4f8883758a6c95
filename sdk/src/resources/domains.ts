import type { BrowseDomainsQuery, CreateDomainInput, UpdateDomainBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Sending domains. Needs a token with the permission `domains`. */
export class Domains {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Returns a page of domains, newest first. */
  list(query?: BrowseDomainsQuery, options?: CallOptions) {
    return this.#rest.call('GET /domains', [], query, options)
  }

  /** Iterates over all domains, one at a time, reading page by page. */
  each(query?: Walk<BrowseDomainsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Adds a domain and returns it with the DNS records that it needs. */
  create(domain: CreateDomainInput, options?: WriteOptions) {
    return this.#rest.call('POST /domains', [], domain, options)
  }

  /** Returns one domain, by its id or its name. */
  get(domain: string, options?: CallOptions) {
    return this.#rest.call('GET /domains/:domain', [domain], undefined, options)
  }

  /** Changes the priority with which the domain replaces others that are not verified. */
  update(domain: string, changes: UpdateDomainBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /domains/:domain', [domain], changes, options)
  }

  /** Checks the DNS records of a domain now. */
  verify(domain: string, options?: WriteOptions) {
    return this.#rest.call('POST /domains/:domain/verify', [domain], undefined, options)
  }
}
