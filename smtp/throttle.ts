/** Counts failures by address over a window, and says when there were too many. */
export class Throttle {
  readonly #most: number
  readonly #windowMs: number
  readonly #failures = new Map<string, { count: number; until: number }>()

  constructor(most: number, windowMs: number) {
    this.#most = most
    this.#windowMs = windowMs
  }

  isBlocked(address: string): boolean {
    const found = this.#failures.get(address)
    if (!found) return false
    if (found.until > performance.now()) return found.count >= this.#most
    this.#failures.delete(address)
    return false
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

const MOST_ADDRESSES = 10_000
