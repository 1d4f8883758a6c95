import { networkOf } from '../src/throttle.ts'
import { REPLIES, Refusal } from './refusal.ts'

/** Bytes of messages in memory at once: all of them, and those that come from one address, so that none takes it all. */
export type RoomSize = { all: number; ofAddress: number }

/** The memory for messages that are coming in, bounded so that many senders cannot fill it. */
export class Room {
  readonly #size: RoomSize
  #taken = 0
  readonly #takenBy = new Map<string, number>()

  constructor(size: RoomSize) {
    this.#size = size
  }

  /** A place for one message from this address. */
  open(address: string): Place {
    const network = networkOf(address)
    return new Place((bytes) => this.#take(network, bytes))
  }

  /** Takes so many bytes more, or gives some back; false where they do not fit. */
  #take(network: string, bytes: number): boolean {
    const [all, own] = [this.#taken + bytes, (this.#takenBy.get(network) ?? 0) + bytes]
    if (bytes > 0 && (all > this.#size.all || own > this.#size.ofAddress)) return false
    this.#taken = all
    if (own > 0) this.#takenBy.set(network, own)
    else this.#takenBy.delete(network)
    return true
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
