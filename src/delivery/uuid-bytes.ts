export const UUID_BYTES = 16

/**
 * Writes a uuid as 16 bytes. Several are written for each email, and this loop is faster than Buffer with hyphenated
 * text.
 */
export function writeUuid(target: Buffer, uuid: string, at: number): void {
  let written = at
  for (let from = 0; from < uuid.length; from += 2) {
    if (uuid.charCodeAt(from) === HYPHEN) from += 1
    target[written] = (digit(uuid, from) << 4) | digit(uuid, from + 1)
    written += 1
  }
}

const HYPHEN = 45

/**
 * Returns the value of a hexadecimal digit: the low four bits of `0` to `9` are the value, those of letters are 1 to 6.
 */
function digit(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return (code & 15) + (code > 57 ? 9 : 0)
}

/** Reads the uuid at an offset. */
export function readUuid(source: Buffer, at: number): string {
  const hex = source.toString('hex', at, at + UUID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
