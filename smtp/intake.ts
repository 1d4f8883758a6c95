import type { HeldMessage } from './message-memory.ts'
import { REPLIES, Refusal } from './refusal.ts'

/** The longest header (bytes) that is read. Real headers are far shorter, even with what servers add on the way. */
const LONGEST_HEADER = 128_000
/** A message that passed more servers than this is in a loop (RFC 5321 6.3). */
const MOST_HOPS = 50

/**
 * Reads a message from a stranger into memory and passes it to `work`. It limits the message, its header, the servers
 * it passed, and all messages in memory. Line ends and line lengths are not checked, because the bytes are never passed
 * on.
 */
export async function takeReport(
  stream: AsyncIterable<Buffer | string>,
  most: number,
  held: HeldMessage,
  work: (raw: Buffer) => Promise<void>,
): Promise<void> {
  try {
    await held.fill(stream, most)
    const raw = held.whole()
    refuseHeader(raw)
    await work(raw)
  } finally {
    held.close()
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
