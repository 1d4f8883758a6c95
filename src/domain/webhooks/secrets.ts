import { randomBytes } from 'node:crypto'

import { seal, unseal } from '../../seal.ts'
import { SECRET_PREFIX } from './signature.ts'

const SECRET_BYTES = 32

/** A new secret as its owner is shown it once. */
export function makeSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** The secret of a webhook as its row keeps it; it opens in that row alone. */
export function sealSecret(encryptionKey: Buffer, webhookId: string, secret: string): Buffer {
  return seal(encryptionKey, Buffer.from(secret), contextOf(webhookId))
}

/** The secret in a row. */
export function openSecret(encryptionKey: Buffer, webhookId: string, sealed: Buffer): string {
  return unseal(encryptionKey, sealed, contextOf(webhookId)).toString()
}

function contextOf(webhookId: string): string {
  return `webhook/${webhookId}`
}
