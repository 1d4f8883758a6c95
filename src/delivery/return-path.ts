import { createHmac, hash, timingSafeEqual } from 'node:crypto'

import { RETURN_LABEL } from '../domain/domains/records.ts'
import { domainOf } from './headers.ts'
import { readUuid, UUID_BYTES, writeUuid } from './uuid-bytes.ts'

/** The email that a bounce is about. Ids are uuids. */
export type Returned = { organizationId: string; messageId: string }

const KEY_BYTES = 32
const IDS_BYTES = 2 * UUID_BYTES
const TAG_BYTES = 8
const TOKEN_BYTES = IDS_BYTES + TAG_BYTES
/** Exactly the longest local part that is allowed (RFC 5321 4.5.3.1.1). */
const TOKEN_LETTERS = (TOKEN_BYTES / 5) * 8
const WELL_FORMED = new RegExp(`^[a-z2-7]{${TOKEN_LETTERS}}$`)
/** Base32 (RFC 4648) in lower case, because servers on the way may change the case of a local part. */
const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567'
const PAIRS = Array.from({ length: 1_024 }, (_, bits) => `${LETTERS[bits >> 5]}${LETTERS[bits & 31]}`)

const keys = new Map<string, Buffer>()

/**
 * Returns the address to which bounces of an email come back (VERP). Each email has its own, under the domain of its
 * From address, so that SPF aligns. The local part is the organization, the message, and a tag of 64 bits over both.
 */
export function returnPathOf(
  secret: string,
  { organizationId, id, fromEmail }: { organizationId: string; id: string; fromEmail: string },
): string {
  return `${signReturned(secret, { organizationId, messageId: id })}@${RETURN_LABEL}.${domainOf(fromEmail)}`
}

/** Returns the email whose return path has this local part, or null when we did not issue it. */
export function readReturnPath(secret: string, localPart: string): Returned | null {
  const text = localPart.toLowerCase()
  if (!WELL_FORMED.test(text)) return null
  const bytes = fromBase32(text)
  const returned = { organizationId: readUuid(bytes, 0), messageId: readUuid(bytes, UUID_BYTES) }
  // `timingSafeEqual` needs equal lengths, which `WELL_FORMED` ensures.
  const right = timingSafeEqual(Buffer.from(signReturned(secret, returned)), Buffer.from(text))
  return right ? returned : null
}

function signReturned(secret: string, { organizationId, messageId }: Returned): string {
  const input = Buffer.allocUnsafe(KEY_BYTES + TOKEN_BYTES)
  input.set(keyOf(secret))
  writeUuid(input, organizationId, KEY_BYTES)
  writeUuid(input, messageId, KEY_BYTES + UUID_BYTES)
  const signed = input.subarray(0, KEY_BYTES + IDS_BYTES)
  input.write(
    hash('shake256', signed, { outputEncoding: 'hex', outputLength: TAG_BYTES }),
    signed.length,
    'hex',
  )
  return toBase32(input.subarray(KEY_BYTES))
}

function toBase32(bytes: Buffer): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 5) {
    const head = bytes.readUIntBE(at, 3)
    const tail = ((head & 15) << 16) | bytes.readUInt16BE(at + 3)
    text += `${PAIRS[head >> 14]}${PAIRS[(head >> 4) & 1_023]}${PAIRS[tail >> 10]}${PAIRS[tail & 1_023]}`
  }
  return text
}

function fromBase32(text: string): Buffer {
  let value = 0n
  for (const letter of text) value = (value << 5n) | BigInt(LETTERS.indexOf(letter))
  return Buffer.from(value.toString(16).padStart(TOKEN_BYTES * 2, '0'), 'hex')
}

function keyOf(secret: string): Buffer {
  const known = keys.get(secret)
  if (known) return known
  const key = createHmac('sha256', secret).update('return-path').digest()
  keys.set(secret, key)
  return key
}
