import { networkOf } from '../src/throttle.ts'
import { REPLIES, Refusal } from './refusal.ts'
import { MOST_READ } from './server.ts'

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

  /**
   * Holds a message while it streams, up to `limit` bytes and as long as `look`, which sees all of it, says that it is
   * wanted; refuses one that is larger.
   */
  async fill(
    stream: AsyncIterable<Buffer | string>,
    limit: number,
    look: (bytes: Buffer) => boolean = () => true,
  ): Promise<void> {
    let size = 0
    // The rest is read even after a fault, because the reply comes after the final dot; but not for ever.
    for await (const chunk of stream) {
      const bytes = Buffer.from(chunk)
      size += bytes.length
      if (size > MOST_READ * limit) break
      if (look(bytes) && size <= limit) this.#hold(bytes)
      else this.close()
    }
    if (size <= limit) return
    throw new Refusal(REPLIES.TOO_LARGE, `The message is larger than ${limit} bytes; send less`)
  }

  #hold(chunk: Buffer): void {
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
