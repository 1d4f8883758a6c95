import type { BrowseTokensQuery, CreateTokenBody } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** API tokens. Every method except `current` needs a token with the permission `tokens`. */
export class Tokens {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Returns a page of tokens, newest first. */
  list(query?: BrowseTokensQuery, options?: CallOptions) {
    return this.#rest.call('GET /tokens', [], query, options)
  }

  /** Iterates over all tokens, one at a time, reading page by page. */
  each(query?: Walk<BrowseTokensQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Creates a token. Only this result contains its text. */
  create(token: CreateTokenBody, options?: WriteOptions) {
    return this.#rest.call('POST /tokens', [], token, options)
  }

  /** Returns the token that makes this call. */
  current(options?: CallOptions) {
    return this.#rest.call('GET /tokens/current', [], undefined, options)
  }

  /** Deletes a token with immediate effect. */
  delete(tokenId: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /tokens/:tokenId', [tokenId], undefined, options)
  }
}
