import { createHmac, timingSafeEqual } from 'node:crypto'

/** What the links in an email are: a followed link, the pixel, leaving, the online view, confirming. Ids are uuids. */
export type TrackingToken =
  | { kind: 'click'; organizationId: string; messageId: string; position: number }
  | { kind: 'open'; organizationId: string; messageId: string }
  | { kind: 'unsubscribe'; organizationId: string; messageId: string; subscriberId: string }
  | { kind: 'view'; organizationId: string; messageId: string }
  | { kind: 'confirm'; organizationId: string; messageId: string; subscriberId: string }
type Kind = TrackingToken['kind']

const KIND_BYTES: Record<Kind, number> = { click: 1, open: 2, unsubscribe: 3, view: 4, confirm: 5 }
const UUID_BYTES = 16
const EXTRA_BYTES: Record<Kind, number> = {
  click: 2,
  open: 0,
  unsubscribe: UUID_BYTES,
  view: 0,
  confirm: UUID_BYTES,
}
const HEAD_BYTES = 1 + 2 * UUID_BYTES
const MAC_BYTES = 12
const WELL_FORMED = /^[A-Za-z0-9_-]{60,90}$/

/**
 * Signs a token: a kind, the organization (so that every look-up is by primary key), the message, and 96 bits of HMAC
 * over all of it. The kind is inside, so that a token for one door opens no other.
 */
export function signToken(secret: string, token: TrackingToken): string {
  const payload = Buffer.allocUnsafe(HEAD_BYTES + EXTRA_BYTES[token.kind])
  payload[0] = KIND_BYTES[token.kind]
  writeUuid(payload, token.organizationId, 1)
  writeUuid(payload, token.messageId, 1 + UUID_BYTES)
  if (token.kind === 'click') payload.writeUInt16BE(token.position, HEAD_BYTES)
  if (token.kind === 'unsubscribe' || token.kind === 'confirm')
    writeUuid(payload, token.subscriberId, HEAD_BYTES)
  return Buffer.concat([payload, macOf(secret, payload)]).toString('base64url')
}

/** The token in a link, or null when it is not exactly one that signToken made for this kind. */
export function readToken<Wanted extends Kind>(
  secret: string,
  kind: Wanted,
  text: string,
): Extract<TrackingToken, { kind: Wanted }> | null {
  if (!WELL_FORMED.test(text)) return null
  const bytes = Buffer.from(text, 'base64url')
  // The last character has unused bits; only the spelling that we write is accepted.
  if (bytes.toString('base64url') !== text) return null
  if (bytes.length !== HEAD_BYTES + EXTRA_BYTES[kind] + MAC_BYTES || bytes[0] !== KIND_BYTES[kind])
    return null
  const payload = bytes.subarray(0, -MAC_BYTES)
  if (!timingSafeEqual(macOf(secret, payload), bytes.subarray(-MAC_BYTES))) return null
  const ids = { organizationId: readUuid(payload, 1), messageId: readUuid(payload, 1 + UUID_BYTES) }
  // Each member is filled by its kind; the compiler cannot follow the type parameter through the record.
  const token = {
    kind,
    ...ids,
    ...(kind === 'click' && { position: payload.readUInt16BE(HEAD_BYTES) }),
    ...((kind === 'unsubscribe' || kind === 'confirm') && { subscriberId: readUuid(payload, HEAD_BYTES) }),
  }
  return token as unknown as Extract<TrackingToken, { kind: Wanted }>
}

function macOf(secret: string, payload: Buffer): Buffer {
  return createHmac('sha256', secret).update('tracking-token').update(payload).digest().subarray(0, MAC_BYTES)
}

function writeUuid(target: Buffer, uuid: string, at: number): void {
  target.write(uuid.replaceAll('-', ''), at, UUID_BYTES, 'hex')
}

function readUuid(source: Buffer, at: number): string {
  const hex = source.toString('hex', at, at + UUID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
