import { networkOf } from '../src/throttle.ts'

/**
 * Counts the open connections of each address (IPv6 by its network), so that no single one can take all connections.
 */
export class ConnectionLimit {
  readonly #most: number
  readonly #open = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Counts one more connection; returns false when it is one too many. That one also counts until it is closed. */
  open(address: string): boolean {
    const network = networkOf(address)
    const count = (this.#open.get(network) ?? 0) + 1
    this.#open.set(network, count)
    return count <= this.#most
  }

  close(address: string): void {
    const network = networkOf(address)
    const count = (this.#open.get(network) ?? 1) - 1
    if (count > 0) this.#open.set(network, count)
    else this.#open.delete(network)
  }
}
