import { hash, randomInt, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIX = 'pl_'
const ADMIN_PREFIX = 'pladmin_'
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 34
const CHECK_LENGTH = 6
const TOKEN = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECK_LENGTH}}$`)
const ADMIN_KEY = new RegExp(`^${ADMIN_PREFIX}[0-9a-f]{64}$`)

/**
 * Returns a new API token: 34 random base62 characters (202 bits) and their checksum. It is shown once and never
 * stored.
 */
export function makeToken(): string {
  let random = ''
  for (let index = 0; index < RANDOM_LENGTH; index++) random += ALPHABET[randomInt(ALPHABET.length)] ?? ''
  return PREFIX + random + checksum(random)
}

/** Returns a new admin key: 256 random bits in hexadecimal. It is shown once and never stored. */
export function makeAdminKey(): string {
  return ADMIN_PREFIX + randomBytes(32).toString('hex')
}

/** Returns the SHA-256 of a token or admin key, which is what is stored. Both are random enough to need no salt. */
export function hashToken(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** Returns the last four characters, which identify a token in lists. */
export function lastFour(text: string): string {
  return text.slice(-4)
}

/** Returns whether the text has the form and checksum of an API token, so that most typing mistakes need no query. */
export function isWellFormedToken(text: string): boolean {
  if (!TOKEN.test(text)) return false
  const random = text.slice(PREFIX.length, PREFIX.length + RANDOM_LENGTH)
  return text.endsWith(checksum(random))
}

/** Returns whether the text has the form of an admin key. */
export function isWellFormedAdminKey(text: string): boolean {
  return ADMIN_KEY.test(text)
}

function checksum(random: string): string {
  let value = crc32(random)
  let digits = ''
  for (let index = 0; index < CHECK_LENGTH; index++) {
    digits = (ALPHABET[value % ALPHABET.length] ?? '') + digits
    value = Math.floor(value / ALPHABET.length)
  }
  return digits
}
