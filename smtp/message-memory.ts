import { networkOf } from '../src/throttle.ts'
import { REPLIES, Refusal } from './refusal.ts'
import { MOST_READ } from './server.ts'

/** The most bytes of messages in memory at once: in total, and from one address, so that none takes it all. */
export type MemoryLimits = { all: number; ofAddress: number }

/** The memory for incoming messages, limited so that many senders cannot fill it. */
export class MessageMemory {
  readonly #size: MemoryLimits
  #taken = 0
  readonly #takenBy = new Map<string, number>()

  constructor(size: MemoryLimits) {
    this.#size = size
  }

  /** Opens the memory of one message from this address. */
  open(address: string): HeldMessage {
    const network = networkOf(address)
    return new HeldMessage((bytes) => this.#take(network, bytes))
  }

  /** Reserves bytes, or frees them when `bytes` is negative; returns false when they do not fit. */
  #take(network: string, bytes: number): boolean {
    const [all, own] = [this.#taken + bytes, (this.#takenBy.get(network) ?? 0) + bytes]
    if (bytes > 0 && (all > this.#size.all || own > this.#size.ofAddress)) return false
    this.#taken = all
    if (own > 0) this.#takenBy.set(network, own)
    else this.#takenBy.delete(network)
    return true
  }
}

/** The memory of one message. Once it was closed, or a chunk did not fit, it holds nothing more. */
export class HeldMessage {
  readonly #take: (bytes: number) => boolean
  #chunks: Buffer[] = []
  #held = 0
  #isOpen = true
  #isCrowded = false

  constructor(take: (bytes: number) => boolean) {
    this.#take = take
  }

  /**
   * Holds a message while it streams, up to `limit` bytes and as long as `look`, which sees every chunk, returns true.
   * Throws `Refusal` when the message is larger.
   */
  async fill(
    stream: AsyncIterable<Buffer | string>,
    limit: number,
    look: (bytes: Buffer) => boolean = () => true,
  ): Promise<void> {
    let size = 0
    // The rest is read even after a fault, because the reply comes after the final dot; but no more than `MOST_READ`
    // allows.
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

  /** Returns the whole message; throws `Refusal` when there was not enough memory for all of it. */
  whole(): Buffer {
    if (this.#isCrowded)
      throw new Refusal(REPLIES.BUSY, 'Too much is coming in at once; try again in a moment')
    return Buffer.concat(this.#chunks)
  }

  /** Frees everything. */
  close(): void {
    this.#isOpen = false
    this.#chunks = []
    this.#take(-this.#held)
    this.#held = 0
  }
}
