import { createHmac, hash, timingSafeEqual } from 'node:crypto'

/** What the links in an email are: a followed link, the pixel, leaving, the online view, confirming. Ids are uuids. */
export type TrackingToken =
  | { kind: 'click'; organizationId: string; messageId: string; position: number }
  | { kind: 'open'; organizationId: string; messageId: string }
  | { kind: 'unsubscribe'; organizationId: string; messageId: string; subscriberId: string }
  | { kind: 'view'; organizationId: string; messageId: string }
  | { kind: 'confirm'; organizationId: string; messageId: string; subscriberId: string }
type Kind = TrackingToken['kind']

/** The tokens of one message. */
export type MessageTokens = {
  click(position: number): string
  open(): string
  view(): string
  unsubscribe(subscriberId: string): string
  confirm(subscriberId: string): string
}

const KIND_BYTES: Record<Kind, number> = { click: 1, open: 2, unsubscribe: 3, view: 4, confirm: 5 }
const UUID_BYTES = 16
/** Kind, organization, message. Like each part below it is whole groups of base64, so that parts are spelled alone. */
const HEAD_BYTES = 1 + 2 * UUID_BYTES
const POSITION_BYTES = 3
/** At least 96 bits; beside a person's 16 bytes a tag takes two more, to end on a whole group. */
const TAG_BYTES = 12
const PERSON_TAG_BYTES = 14
const PERSON_BYTES = UUID_BYTES + PERSON_TAG_BYTES
/** The tags of so many neighbouring links come from one hash. */
const BLOCK = 16
const TAG_LETTERS = 16

// What is hashed: the key, the head, and what the kind has beside it (a person, the number of a block of links).
const KEY_BYTES = 32
const EXTRA_AT = KEY_BYTES + HEAD_BYTES
const INPUT_BYTES = EXTRA_AT + UUID_BYTES

const WELL_FORMED: Record<Kind, RegExp> = {
  click: wellFormed(HEAD_BYTES + POSITION_BYTES + TAG_BYTES),
  open: wellFormed(HEAD_BYTES + TAG_BYTES),
  unsubscribe: wellFormed(HEAD_BYTES + PERSON_BYTES),
  view: wellFormed(HEAD_BYTES + TAG_BYTES),
  confirm: wellFormed(HEAD_BYTES + PERSON_BYTES),
}

const keys = new Map<string, Buffer>()

/**
 * Signs the tokens of a message. A token is its kind, the organization (so that every look-up is by primary key), the
 * message, what else the kind carries, and a tag: SHAKE256 of a key derived from the secret and of all that, in one
 * layout of fixed length. The kind is inside, so that a token for one door opens no other. An email has many links:
 * the tag of each is the part at its position of one hash for sixteen of them.
 */
export function tokensOf(
  secret: string,
  { organizationId, messageId }: { organizationId: string; messageId: string },
): MessageTokens {
  const input = Buffer.alloc(INPUT_BYTES)
  input.set(keyOf(secret))
  input.write(digits(organizationId) + digits(messageId), KEY_BYTES + 1, 'hex')
  // The kind shares its group of base64 with two bytes of the organization; the rest is spelled once.
  const shared = input.readUInt16BE(KEY_BYTES + 1)
  const rest = input.toString('base64url', KEY_BYTES + 3, EXTRA_AT)
  const clickHead = head('click')
  let block = -1
  let tags = ''

  function head(kind: Kind): string {
    return spell((KIND_BYTES[kind] << 16) | shared) + rest
  }

  function shake(kind: Kind, outputLength: number): string {
    input[KEY_BYTES] = KIND_BYTES[kind]
    return hash('shake256', input, { outputEncoding: 'base64url', outputLength })
  }

  function plain(kind: 'open' | 'view'): string {
    input.fill(0, EXTRA_AT)
    return head(kind) + shake(kind, TAG_BYTES)
  }

  function personal(kind: 'unsubscribe' | 'confirm', subscriberId: string): string {
    input.write(digits(subscriberId), EXTRA_AT, 'hex')
    const person = Buffer.allocUnsafe(PERSON_BYTES)
    input.copy(person, 0, EXTRA_AT)
    person.write(shake(kind, PERSON_TAG_BYTES), UUID_BYTES, 'base64url')
    return head(kind) + person.toString('base64url')
  }

  return {
    click(position) {
      const wanted = Math.floor(position / BLOCK)
      if (wanted !== block) {
        input.fill(0, EXTRA_AT)
        input.writeUInt32BE(wanted, EXTRA_AT)
        tags = shake('click', BLOCK * TAG_BYTES)
        block = wanted
      }
      const at = (position % BLOCK) * TAG_LETTERS
      return clickHead + spell(position) + tags.slice(at, at + TAG_LETTERS)
    },
    open: () => plain('open'),
    view: () => plain('view'),
    unsubscribe: (subscriberId) => personal('unsubscribe', subscriberId),
    confirm: (subscriberId) => personal('confirm', subscriberId),
  }
}

/** One token alone. */
export function signToken(secret: string, token: TrackingToken): string {
  const tokens = tokensOf(secret, token)
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

/** The token in a link, or null when it is not, letter for letter, the one that signToken makes for this kind. */
export function readToken<Wanted extends Kind>(
  secret: string,
  kind: Wanted,
  text: string,
): Extract<TrackingToken, { kind: Wanted }> | null {
  if (!WELL_FORMED[kind].test(text)) return null
  const bytes = Buffer.from(text, 'base64url')
  const ids = { organizationId: readUuid(bytes, 1), messageId: readUuid(bytes, 1 + UUID_BYTES) }
  // Each member is filled by its kind; the compiler cannot follow the type parameter through the record.
  const token = {
    kind,
    ...ids,
    ...(kind === 'click' && { position: bytes.readUIntBE(HEAD_BYTES, POSITION_BYTES) }),
    ...((kind === 'unsubscribe' || kind === 'confirm') && { subscriberId: readUuid(bytes, HEAD_BYTES) }),
  } as unknown as Extract<TrackingToken, { kind: Wanted }>
  // Signing anew compares the kind, every id and the tag at once; both are ASCII of one length.
  const right = timingSafeEqual(Buffer.from(signToken(secret, token)), Buffer.from(text))
  return right ? token : null
}

function wellFormed(bytes: number): RegExp {
  return new RegExp(`^[A-Za-z0-9_-]{${(bytes / 3) * 4}}$`)
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** 24 bits in base64url. */
function spell(bits: number): string {
  return (
    LETTERS.charAt(bits >> 18) +
    LETTERS.charAt((bits >> 12) & 63) +
    LETTERS.charAt((bits >> 6) & 63) +
    LETTERS.charAt(bits & 63)
  )
}

function digits(uuid: string): string {
  return uuid.replaceAll('-', '')
}

function keyOf(secret: string): Buffer {
  const known = keys.get(secret)
  if (known) return known
  const key = createHmac('sha256', secret).update('tracking-token').digest()
  keys.set(secret, key)
  return key
}

function readUuid(source: Buffer, at: number): string {
  const hex = source.toString('hex', at, at + UUID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
