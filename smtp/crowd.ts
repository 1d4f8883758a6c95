/** Counts the open connections of each address, so that one alone cannot take them all. */
export class Crowd {
  readonly #most: number
  readonly #open = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Counts one more; false when it is one too many, which counts until it leaves as well. */
  enter(address: string): boolean {
    const count = (this.#open.get(address) ?? 0) + 1
    this.#open.set(address, count)
    return count <= this.#most
  }

  leave(address: string): void {
    const count = (this.#open.get(address) ?? 1) - 1
    if (count > 0) this.#open.set(address, count)
    else this.#open.delete(address)
  }
}
