import { hash } from 'node:crypto'

import { dropOldest, networkOf } from '../src/throttle.ts'

const MOST_NETWORKS = 10_000
const MOST_OF_ONE = 100

/**
 * Remembers valid tokens by the address they came from. When one device of an office, or one site of a host, keeps
 * failing to log in, the others can still log in.
 */
export class KnownTokens {
  readonly #tokens = new Map<string, Set<string>>()

  /** Returns whether this token was valid from this address; without a token, whether any token was. */
  has(address: string, token?: string): boolean {
    const known = this.#tokens.get(networkOf(address))
    return known !== undefined && (token === undefined || known.has(markOf(token)))
  }

  add(address: string, token: string): void {
    const network = networkOf(address)
    const known = this.#tokens.get(network) ?? new Set()
    known.add(markOf(token))
    dropOldest(known, MOST_OF_ONE)
    // Moved to the end, so that the latest network is dropped last.
    this.#tokens.delete(network)
    this.#tokens.set(network, known)
    dropOldest(this.#tokens, MOST_NETWORKS)
  }

  delete(address: string, token: string): void {
    const network = networkOf(address)
    const known = this.#tokens.get(network)
    known?.delete(markOf(token))
    if (known?.size === 0) this.#tokens.delete(network)
  }
}

function markOf(token: string): string {
  return hash('sha256', token, 'base64')
}
