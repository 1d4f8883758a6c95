import { REPLIES, Refusal } from './refusal.ts'
import { MOST_READ } from './server.ts'

/** The longest header that is read; what a server adds on the way is far below it. */
const LONGEST_HEADER = 128_000
/** A message that passed so many servers goes round in a circle (RFC 5321, 6.3). */
const MOST_HOPS = 50

/**
 * Takes messages of strangers into memory within bounds: of one message, of its header, of the servers it passed, and
 * of all that are here at once. Bytes are read and never passed on, so line ends and lengths are not judged.
 */
export class Intake {
  readonly #most: number
  readonly #mostAtOnce: number
  #held = 0

  constructor(most: number, mostAtOnce: number) {
    this.#most = most
    this.#mostAtOnce = mostAtOnce
  }

  /** Reads a message to its end and lets `work` have it; its bytes count until that is done. */
  async take(stream: AsyncIterable<Buffer | string>, work: (raw: Buffer) => Promise<void>): Promise<void> {
    const chunks: Buffer[] = []
    let held = 0
    let size = 0
    let isCrowded = false
    try {
      // The rest is read even after a fault, because the reply comes after the final dot; but not for ever.
      for await (const chunk of stream) {
        const bytes = Buffer.from(chunk)
        size += bytes.length
        if (size > MOST_READ * this.#most) break
        isCrowded ||= this.#held + bytes.length > this.#mostAtOnce
        if (isCrowded || size > this.#most) {
          chunks.length = 0
          this.#held -= held
          held = 0
          continue
        }
        chunks.push(bytes)
        held += bytes.length
        this.#held += bytes.length
      }
      if (size > this.#most)
        throw new Refusal(REPLIES.TOO_LARGE, `The message is larger than ${this.#most} bytes`)
      if (isCrowded) throw new Refusal(REPLIES.BUSY, 'Too much is coming in at once; try again in a moment')
      const raw = Buffer.concat(chunks)
      refuseHeader(raw)
      await work(raw)
    } finally {
      this.#held -= held
    }
  }
}

function refuseHeader(raw: Buffer): void {
  const end = raw.subarray(0, LONGEST_HEADER + 4).indexOf('\r\n\r\n')
  if (end < 0 && raw.length > LONGEST_HEADER) {
    throw new Refusal(REPLIES.TOO_LARGE, `The header is longer than ${LONGEST_HEADER} bytes`)
  }
  const header = raw.subarray(0, end < 0 ? raw.length : end).toString('latin1')
  if ((header.match(/^received:/gim) ?? []).length <= MOST_HOPS) return
  throw new Refusal(
    REPLIES.LOOP,
    `The message passed more than ${MOST_HOPS} servers; it goes round in a circle`,
  )
}
