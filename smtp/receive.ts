import type { HeldMessage } from './message-memory.ts'
import { REPLIES, Refusal } from './refusal.ts'

/** Bytes of a line without its end (RFC 5321 4.5.3.1.6: 1,000 octets with it). */
const LONGEST_LINE = 998
const LONGEST_HEADER = 65_536
/**
 * The most for the sum of the squared lengths of all runs of blanks before a word. The time of libqp grows with this
 * sum, by some 3 ns each. A hundred blanks before each of five thousand lines reach it.
 */
const MOST_BLANKS = 50_000_000
const TAB = 9
const SPACE = 32
const CR = 13
const LF = 10

/**
 * Receives one message of up to `limit` bytes, as long as there is memory. Throws `Refusal` for what another server
 * could read differently: a bare CR or LF (message smuggling), NUL, lines over the limit of RFC 5321, and an endless
 * header. The message stays in memory until `work` is done.
 */
export async function receiveMessage<Done>(
  stream: AsyncIterable<Buffer | string>,
  limit: number,
  held: HeldMessage,
  work: (raw: Buffer) => Promise<Done>,
): Promise<Done> {
  const lines = new LineReader()
  try {
    await held.fill(stream, limit, (bytes) => lines.read(bytes))
    const fault = lines.end()
    if (fault !== null) throw new Refusal(REPLIES.BAD_MESSAGE, fault)
    return await work(held.whole())
  } finally {
    held.close()
  }
}

class LineReader {
  #fault: string | null = null
  #line = 1
  #width = 0
  #header = 0
  #isHeader = true
  #afterCr = false
  #blanks = 0
  #blanksSquared = 0

  /** Checks more bytes; returns whether nothing is wrong so far. */
  read(bytes: Buffer): boolean {
    for (const byte of bytes) {
      if (this.#fault !== null) return false
      if (this.#isHeader && ++this.#header > LONGEST_HEADER) {
        this.#fault = `The header is longer than ${LONGEST_HEADER} bytes; send fewer or shorter fields`
      }
      if (byte === SPACE || byte === TAB) this.#blanks += 1
      else if (this.#blanks > 0) this.#endBlanks(byte)
      if (this.#afterCr !== (byte === LF)) {
        this.#fault = `Line ${this.#line} holds a ${this.#afterCr ? 'CR without LF' : 'LF without CR'}; end lines with CRLF`
      } else if (byte === LF) this.#endLine()
      else if (byte === CR) this.#afterCr = true
      else if (byte === 0) this.#fault = `Line ${this.#line} holds a NUL byte; encode the content`
      else if (++this.#width > LONGEST_LINE) {
        this.#fault = `Line ${this.#line} is longer than ${LONGEST_LINE} bytes; encode the content as quoted-printable`
      }
    }
    return this.#fault === null
  }

  /** Returns what is wrong with the message, or null. */
  end(): string | null {
    if (this.#fault === null && this.#afterCr) this.#fault = 'The message ends with a CR without LF'
    return this.#fault
  }

  /** Ends a run of blanks. Blanks at the end of a line cost nothing. */
  #endBlanks(next: number): void {
    if (next !== CR) this.#blanksSquared += this.#blanks ** 2
    this.#blanks = 0
    if (this.#blanksSquared <= MOST_BLANKS) return
    this.#fault = `The message holds too many long runs of blanks, up to line ${this.#line}; send fewer blanks in a row`
  }

  #endLine(): void {
    if (this.#width === 0) this.#isHeader = false
    this.#line += 1
    this.#width = 0
    this.#afterCr = false
  }
}
