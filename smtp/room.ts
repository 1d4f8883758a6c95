import { REPLIES, Refusal } from './refusal.ts'

/** The bytes of all messages that are in memory at once, so that many senders cannot fill it. */
export class Room {
  readonly #most: number
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  /** A place for one message. */
  open(): Place {
    return new Place((bytes) => {
      if (bytes > 0 && this.#taken + bytes > this.#most) return false
      this.#taken += bytes
      return true
    })
  }
}

/** What is held of one message; once it is crowded out, or let go, it holds nothing more. */
export class Place {
  readonly #take: (bytes: number) => boolean
  #chunks: Buffer[] = []
  #held = 0
  #isOpen = true
  #isCrowded = false

  constructor(take: (bytes: number) => boolean) {
    this.#take = take
  }

  hold(chunk: Buffer): void {
    if (!this.#isOpen) return
    if (this.#take(chunk.length)) {
      this.#chunks.push(chunk)
      this.#held += chunk.length
      return
    }
    this.#isCrowded = true
    this.close()
  }

  /** All that is held; refuses where not all of it is. */
  whole(): Buffer {
    if (this.#isCrowded)
      throw new Refusal(REPLIES.BUSY, 'Too much is coming in at once; try again in a moment')
    return Buffer.concat(this.#chunks)
  }

  /** Lets everything go. */
  close(): void {
    this.#isOpen = false
    this.#chunks = []
    this.#take(-this.#held)
    this.#held = 0
  }
}
