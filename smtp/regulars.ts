import { hash } from 'node:crypto'

import { dropOldest, networkOf } from '../src/throttle.ts'

const MOST_NETWORKS = 10_000
const MOST_OF_ONE = 100

/**
 * Tokens that held, by the address they came from: where one device of an office, or one site of a host, fails to log in
 * again and again, the others go on.
 */
export class Regulars {
  readonly #tokens = new Map<string, Set<string>>()

  /** Whether this token held when it came from there, or without one, whether any did. */
  has(address: string, token?: string): boolean {
    const known = this.#tokens.get(networkOf(address))
    return known !== undefined && (token === undefined || known.has(markOf(token)))
  }

  add(address: string, token: string): void {
    const network = networkOf(address)
    const known = this.#tokens.get(network) ?? new Set()
    known.add(markOf(token))
    dropOldest(known, MOST_OF_ONE)
    // Who was here last goes last.
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
