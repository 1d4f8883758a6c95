import type { BrowseTokensQuery, CreateTokenBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** API tokens. Needs a token with the permission `tokens`, but for `current`. */
export class Tokens {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** A page of tokens, newest first. */
  list(query?: BrowseTokensQuery, options?: CallOptions) {
    return this.#rest.call('GET /tokens', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<BrowseTokensQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** A new token, whose text is shown this once. */
  create(token: CreateTokenBody, options?: WriteOptions) {
    return this.#rest.call('POST /tokens', [], token, options)
  }

  /** The token that asks. */
  current(options?: CallOptions) {
    return this.#rest.call('GET /tokens/current', [], undefined, options)
  }

  /** Ends a token at once. */
  delete(tokenId: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /tokens/:tokenId', [tokenId], undefined, options)
  }
}
