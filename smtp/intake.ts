import { REPLIES, Refusal } from './refusal.ts'
import type { Place } from './room.ts'

/** The longest header that is read; what a server adds on the way is far below it. */
const LONGEST_HEADER = 128_000
/** A message that passed so many servers goes round in a circle (RFC 5321, 6.3). */
const MOST_HOPS = 50

/**
 * Takes a message of a stranger into memory within bounds, of itself, of its header, of the servers it passed, and of all
 * that are here at once, and lets `work` have it. Bytes are read and never passed on, so line ends and lengths are not
 * judged.
 */
export async function takeReport(
  stream: AsyncIterable<Buffer | string>,
  most: number,
  place: Place,
  work: (raw: Buffer) => Promise<void>,
): Promise<void> {
  try {
    await place.fill(stream, most)
    const raw = place.whole()
    refuseHeader(raw)
    await work(raw)
  } finally {
    place.close()
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
