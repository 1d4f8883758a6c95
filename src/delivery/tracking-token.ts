import { createHmac, hash, timingSafeEqual } from 'node:crypto'

import { readUuid, UUID_BYTES, writeUuid } from './uuid-bytes.ts'

/**
 * The tokens in the links of an email: a followed link, the tracking pixel, unsubscribing, the online view, and
 * confirming a subscription. Ids are uuids.
 */
export type TrackingToken =
  | { kind: 'click'; organizationId: string; messageId: string; position: number }
  | { kind: 'open'; organizationId: string; messageId: string }
  | { kind: 'unsubscribe'; organizationId: string; messageId: string; subscriberId: string }
  | { kind: 'view'; organizationId: string; messageId: string }
  | { kind: 'confirm'; organizationId: string; messageId: string; subscriberId: string }
type Kind = TrackingToken['kind']

const KIND_BYTES: Record<Kind, number> = { click: 1, open: 2, unsubscribe: 3, view: 4, confirm: 5 }
/**
 * Kind, organization, message. This length and those below are multiples of three, so that each part can be encoded in
 * base64 on its own.
 */
const HEAD_BYTES = 1 + 2 * UUID_BYTES
const POSITION_BYTES = 3
/** A uuid and two zero bytes. */
const PERSON_BYTES = UUID_BYTES + 2
const TAG_BYTES = 12
const TAG_LETTERS = (TAG_BYTES / 3) * 4
/** How many neighbouring links get their tags from one hash. */
const BLOCK = 16

// The hash input: the key, the head, and the data of the kind (a subscriber, or the number of a block of links).
const KEY_BYTES = 32
const EXTRA_AT = KEY_BYTES + HEAD_BYTES
const INPUT_BYTES = EXTRA_AT + PERSON_BYTES

const WELL_FORMED: Record<Kind, RegExp> = {
  click: wellFormed(HEAD_BYTES + POSITION_BYTES + TAG_BYTES),
  open: wellFormed(HEAD_BYTES + TAG_BYTES),
  unsubscribe: wellFormed(HEAD_BYTES + PERSON_BYTES + TAG_BYTES),
  view: wellFormed(HEAD_BYTES + TAG_BYTES),
  confirm: wellFormed(HEAD_BYTES + PERSON_BYTES + TAG_BYTES),
}

const keys = new Map<string, Buffer>()

/**
 * Signs the tokens of one message. A token consists of its kind, the organization (so that every lookup is by primary
 * key), the message, the data of the kind, and a tag of 96 bits: SHAKE256 over a key derived from the secret and all of
 * that, in one layout of fixed length. The kind is included, so that a token of one kind is never valid as another.
 * Because an email has many links, one hash yields the tags of sixteen of them, each at its position.
 */
export class MessageTokens {
  readonly #input = Buffer.allocUnsafe(INPUT_BYTES)
  /**
   * The first two bytes of the organization, which share a base64 group with the kind. `#rest` is the encoded rest of
   * the head.
   */
  readonly #shared: number
  readonly #rest: string
  #clickHead = ''
  #block = -1
  #tags = ''

  constructor(secret: string, { organizationId, messageId }: { organizationId: string; messageId: string }) {
    const input = this.#input
    input.set(keyOf(secret))
    writeUuid(input, organizationId, KEY_BYTES + 1)
    writeUuid(input, messageId, KEY_BYTES + 1 + UUID_BYTES)
    this.#shared = input.readUInt16BE(KEY_BYTES + 1)
    this.#rest = input.toString('base64url', KEY_BYTES + 3, EXTRA_AT)
  }

  click(position: number): string {
    const block = Math.floor(position / BLOCK)
    if (block !== this.#block) {
      this.#input.fill(0, EXTRA_AT)
      this.#input.writeUInt32BE(block, EXTRA_AT)
      this.#tags = this.#shake('click', BLOCK * TAG_BYTES)
      this.#block = block
      this.#clickHead = this.#head('click')
    }
    const at = (position % BLOCK) * TAG_LETTERS
    return this.#clickHead + spell(position) + this.#tags.slice(at, at + TAG_LETTERS)
  }

  open(): string {
    return this.#plain('open')
  }

  view(): string {
    return this.#plain('view')
  }

  unsubscribe(subscriberId: string): string {
    return this.#personal('unsubscribe', subscriberId)
  }

  confirm(subscriberId: string): string {
    return this.#personal('confirm', subscriberId)
  }

  #plain(kind: 'open' | 'view'): string {
    this.#input.fill(0, EXTRA_AT)
    return this.#head(kind) + this.#shake(kind, TAG_BYTES)
  }

  #personal(kind: 'unsubscribe' | 'confirm', subscriberId: string): string {
    this.#input.fill(0, EXTRA_AT)
    writeUuid(this.#input, subscriberId, EXTRA_AT)
    const person = this.#input.toString('base64url', EXTRA_AT)
    return this.#head(kind) + person + this.#shake(kind, TAG_BYTES)
  }

  #head(kind: Kind): string {
    return spell((KIND_BYTES[kind] << 16) | this.#shared) + this.#rest
  }

  #shake(kind: Kind, outputLength: number): string {
    this.#input[KEY_BYTES] = KIND_BYTES[kind]
    return hash('shake256', this.#input, { outputEncoding: 'base64url', outputLength })
  }
}

/** Signs a single token. */
export function signToken(secret: string, token: TrackingToken): string {
  const tokens = new MessageTokens(secret, token)
  switch (token.kind) {
    case 'click':
      return tokens.click(token.position)
    case 'open':
    case 'view':
      return tokens[token.kind]()
    case 'unsubscribe':
    case 'confirm':
      return tokens[token.kind](token.subscriberId)
  }
}

/** Returns the token in a link, or null when the text is not exactly what `signToken` makes for this kind. */
export function readToken<Wanted extends Kind>(
  secret: string,
  kind: Wanted,
  text: string,
): Extract<TrackingToken, { kind: Wanted }> | null {
  if (!WELL_FORMED[kind].test(text)) return null
  const bytes = Buffer.from(text, 'base64url')
  const ids = { organizationId: readUuid(bytes, 1), messageId: readUuid(bytes, 1 + UUID_BYTES) }
  // Each kind adds its own members; the compiler cannot follow the type parameter through the object.
  const token = {
    kind,
    ...ids,
    ...(kind === 'click' && { position: bytes.readUIntBE(HEAD_BYTES, POSITION_BYTES) }),
    ...((kind === 'unsubscribe' || kind === 'confirm') && { subscriberId: readUuid(bytes, HEAD_BYTES) }),
  } as unknown as Extract<TrackingToken, { kind: Wanted }>
  // Signing again compares the kind, every id and the tag at once. `WELL_FORMED` ensures equal lengths.
  const right = timingSafeEqual(Buffer.from(signToken(secret, token)), Buffer.from(text))
  return right ? token : null
}

function wellFormed(bytes: number): RegExp {
  return new RegExp(`^[A-Za-z0-9_-]{${(bytes / 3) * 4}}$`)
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Encodes 24 bits in base64url. */
function spell(bits: number): string {
  return (
    LETTERS.charAt(bits >> 18) +
    LETTERS.charAt((bits >> 12) & 63) +
    LETTERS.charAt((bits >> 6) & 63) +
    LETTERS.charAt(bits & 63)
  )
}

function keyOf(secret: string): Buffer {
  const known = keys.get(secret)
  if (known) return known
  const key = createHmac('sha256', secret).update('tracking-token').digest()
  keys.set(secret, key)
  return key
}
