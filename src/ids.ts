import { randomFillSync } from 'node:crypto'

import { Failure } from './catalogue/failure.ts'

/** What each TypeID prefix stands for, in the caller's terms (decisions, section 1). */
export const ID_PREFIXES = {
  org: 'organization',
  usr: 'member',
  tok: 'token',
  sub: 'subscriber',
  tag: 'tag',
  fld: 'custom field',
  seg: 'segment',
  evt: 'event',
  cmp: 'campaign',
  hst: 'history entry',
  wf: 'workflow',
  wfv: 'workflow version',
  run: 'run',
  grp: 'workflow group',
  goal: 'goal',
  snp: 'snippet',
  img: 'image',
  snd: 'sender',
  dom: 'domain',
  eml: 'email',
  whk: 'webhook',
  imp: 'import',
  sup: 'suppression',
  adm: 'admin key',
} as const
export type IdPrefix = keyof typeof ID_PREFIXES

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const VALUES = new Map([...ALPHABET].map((letter, value) => [letter, BigInt(value)]))
const SUFFIX_LENGTH = 26
const HYPHEN = 45
const LAST_DIGIT = 57
/** The two letters of each value of ten bits. A table, because every event and every message encodes several ids. */
const PAIRS = Array.from({ length: 1_024 }, (_, bits) => `${ALPHABET[bits >> 5]}${ALPHABET[bits & 31]}`)

let lastMillisecond = 0
let sequence = 0
/** Random bytes for many ids: getting eight costs as much as getting a thousand. */
const randomness = Buffer.alloc(4_096)
let spent = randomness.length

/** The nil UUID (RFC 9562), which comes before every id: where a walk over ids begins. */
export const NIL_ID = '00000000-0000-0000-0000-000000000000'

/**
 * Returns a new UUIDv7 (RFC 9562): 48 bits of milliseconds, a 12-bit counter that keeps ids made within one millisecond
 * in order, and 62 random bits.
 */
export function newId(): string {
  const now = Date.now()
  if (now > lastMillisecond) {
    lastMillisecond = now
    sequence = 0
  } else if (++sequence > 0xfff) {
    lastMillisecond += 1
    sequence = 0
  }
  if (spent === randomness.length) {
    randomFillSync(randomness)
    spent = 0
  }
  randomness[spent] = ((randomness[spent] ?? 0) & 0x3f) | 0x80
  const time = lastMillisecond.toString(16).padStart(12, '0')
  const tail = randomness.toString('hex', spent, spent + 8)
  spent += 8
  const counter = sequence.toString(16).padStart(3, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${tail.slice(0, 4)}-${tail.slice(4)}`
}

/**
 * Returns the TypeID of a UUID: prefix, `_`, and 26 letters of Crockford base32, 2 for the first byte and 4 for each 20
 * bits after it.
 */
export function encodeId(prefix: IdPrefix, uuid: string): string {
  let suffix = ''
  let bits = 0
  let digits = 3
  for (let at = 0; at < uuid.length; at += 1) {
    const code = uuid.charCodeAt(at)
    if (code === HYPHEN) continue
    // The low four bits of `0` to `9` are the digit's value, those of letters are 1 to 6.
    bits = (bits << 4) | ((code & 15) + (code > LAST_DIGIT ? 9 : 0))
    digits += 1
    if (digits === 5) {
      suffix += at < 2 ? PAIRS[bits] : `${PAIRS[bits >> 10]}${PAIRS[bits & 0x3ff]}`
      bits = 0
      digits = 0
    }
  }
  return `${prefix}_${suffix}`
}

/** Returns the UUID in a TypeID. Throws `NOT_FOUND` for a malformed id, exactly as for one that does not exist. */
export function decodeId(prefix: IdPrefix, text: string): string {
  return readId(prefix, text) ?? missing(prefix, text)
}

/** Returns the UUID in a TypeID, or null when the text is not an id with this prefix. */
export function readId(prefix: IdPrefix, text: string): string | null {
  if (!text.startsWith(`${prefix}_`)) return null
  const suffix = text.slice(prefix.length + 1)
  if (suffix.length !== SUFFIX_LENGTH) return null
  let value = 0n
  for (const letter of suffix) {
    const digit = VALUES.get(letter)
    if (digit === undefined) return null
    value = (value << 5n) | digit
  }
  if (value >> 128n) return null
  const hex = value.toString(16).padStart(32, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Throws `NOT_FOUND`, the same for an id that is foreign, deleted, malformed or unknown. */
export function missing(prefix: IdPrefix, text: string): never {
  throw new Failure(
    'NOT_FOUND',
    `There is no ${ID_PREFIXES[prefix]} ${JSON.stringify(text.slice(0, 80))} in this organization; check the id or look it up with the list tool.`,
  )
}
