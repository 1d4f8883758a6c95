const MOST_ADDRESSES = 10_000

/** Counts by address over a window, and says when there were too many. */
export class Throttle {
  readonly #most: number
  readonly #windowMs: number
  readonly #counted = new Map<string, { count: number; until: number }>()

  constructor(most: number, windowMs: number) {
    this.#most = most
    this.#windowMs = windowMs
  }

  /** How long an address is not heard yet; 0 when it is heard. */
  blockedMs(address: string): number {
    const found = this.#counted.get(address)
    if (!found) return 0
    const left = found.until - performance.now()
    if (left > 0) return found.count >= this.#most ? left : 0
    this.#counted.delete(address)
    return 0
  }

  /** Counts one more of an address; answers how many it has left, below 0 when it is over, and until when. */
  count(address: string): { left: number; endsInMs: number } {
    const now = performance.now()
    const found = this.#counted.get(address)
    if (found && found.until > now) {
      found.count += 1
      return { left: this.#most - found.count, endsInMs: found.until - now }
    }
    this.#counted.delete(address)
    this.#counted.set(address, { count: 1, until: now + this.#windowMs })
    // A Map keeps the order, so the first key began its window first.
    const oldest = this.#counted.size > MOST_ADDRESSES ? this.#counted.keys().next().value : undefined
    if (oldest !== undefined) this.#counted.delete(oldest)
    return { left: this.#most - 1, endsInMs: this.#windowMs }
  }
}
