import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Encrypts a secret with AES-256-GCM, so that it cannot be read from a copy of the database. Returns nonce, tag and
 * ciphertext. `context` names the row of the secret and is authenticated, so that no value can be moved into another
 * row.
 */
export function seal(key: Buffer, plain: Buffer, context: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context))
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
}

/** Returns the plain bytes of a sealed value; throws when the key or the context differs or a byte was changed. */
export function unseal(key: Buffer, sealed: Buffer, context: string): Buffer {
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(context))
    .setAuthTag(tag)
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()])
}
