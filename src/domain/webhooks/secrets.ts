import { randomBytes } from 'node:crypto'

import { seal, unseal } from '../../seal.ts'
import { SECRET_PREFIX } from './signature.ts'

const SECRET_BYTES = 32

/** Makes a new secret in the form that its owner sees once. */
export function makeSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** Encrypts the secret of a webhook for its row; it can be decrypted only for that webhook. */
export function sealSecret(encryptionKey: Buffer, webhookId: string, secret: string): Buffer {
  return seal(encryptionKey, Buffer.from(secret), contextOf(webhookId))
}

/** Decrypts the secret of a webhook. */
export function openSecret(encryptionKey: Buffer, webhookId: string, sealed: Buffer): string {
  return unseal(encryptionKey, sealed, contextOf(webhookId)).toString()
}

function contextOf(webhookId: string): string {
  return `webhook/${webhookId}`
}
