import { isIP } from 'node:net'

const MOST_ADDRESSES = 10_000

/**
 * Returns the network by which an address is counted: the first 64 bits of an IPv6 address, because whoever has one
 * such address has its whole network, and any other address unchanged.
 */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address
  const [front = [], back = []] = address.split('::').map((half) => half.split(':').filter(Boolean))
  const zeros = Array<string>(Math.max(0, 8 - front.length - back.length)).fill('0')
  const groups = [...front, ...zeros, ...back].slice(0, 4).map((group) => Number.parseInt(group, 16))
  // The all-zero network contains mapped IPv4 addresses and the loopback address, which have nothing in common.
  return groups.some((group) => group > 0) ? groups.map((group) => group.toString(16)).join(':') : address
}

/** Counts by address (IPv6 by its network) within a time window, and tells when there were too many. */
export class Throttle {
  readonly #most: number
  readonly #windowMs: number
  readonly #counted = new Map<string, { count: number; until: number }>()

  constructor(most: number, windowMs: number) {
    this.#most = most
    this.#windowMs = windowMs
  }

  /** Returns for how many milliseconds an address is still blocked; 0 if it is not. */
  blockedMs(address: string): number {
    const network = networkOf(address)
    const found = this.#counted.get(network)
    if (!found) return 0
    const left = found.until - performance.now()
    if (left > 0) return found.count >= this.#most ? left : 0
    this.#counted.delete(network)
    return 0
  }

  /**
   * Counts one more for an address. Returns how many it has left in the window, below 0 when over the limit, and in how
   * many milliseconds the window ends.
   */
  count(address: string): { left: number; endsInMs: number } {
    const now = performance.now()
    const network = networkOf(address)
    const found = this.#counted.get(network)
    if (found && found.until > now) {
      found.count += 1
      return { left: this.#most - found.count, endsInMs: found.until - now }
    }
    this.#counted.delete(network)
    // A copy: an address may be a slice of a long header, and the whole header would stay in memory with it.
    this.#counted.set(Buffer.from(network).toString(), { count: 1, until: now + this.#windowMs })
    // A Map keeps insertion order, so its first key has the oldest window.
    dropOldest(this.#counted, MOST_ADDRESSES)
    return { left: this.#most - 1, endsInMs: this.#windowMs }
  }
}

/** Removes the oldest entry when there are more than `most`; call it after each addition. */
export function dropOldest(kept: Set<string> | Map<string, unknown>, most: number): void {
  const oldest = kept.size > most ? kept.keys().next().value : undefined
  if (oldest !== undefined) kept.delete(oldest)
}
