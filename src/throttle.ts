const MOST_ADDRESSES = 10_000

/** Counts failures by address over a window, and says when there were too many. */
export class Throttle {
  readonly #most: number
  readonly #windowMs: number
  readonly #failures = new Map<string, { count: number; until: number }>()

  constructor(most: number, windowMs: number) {
    this.#most = most
    this.#windowMs = windowMs
  }

  /** How long an address is not heard yet; 0 when it is heard. */
  blockedMs(address: string): number {
    const found = this.#failures.get(address)
    if (!found) return 0
    const left = found.until - performance.now()
    if (left > 0) return found.count >= this.#most ? left : 0
    this.#failures.delete(address)
    return 0
  }

  fail(address: string): void {
    const found = this.#failures.get(address)
    if (found && found.until > performance.now()) {
      found.count += 1
      return
    }
    this.#failures.delete(address)
    this.#failures.set(address, { count: 1, until: performance.now() + this.#windowMs })
    // A Map keeps the order, so the first key began its window first.
    const oldest = this.#failures.size > MOST_ADDRESSES ? this.#failures.keys().next().value : undefined
    if (oldest !== undefined) this.#failures.delete(oldest)
  }
}
