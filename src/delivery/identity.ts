import { encodeId } from '../ids.ts'
import { domainOf } from './headers.ts'

/**
 * Returns the Message-ID without angle brackets. Every attempt has the same, so that receivers and logs can recognize a
 * repetition.
 */
export function formatMessageId(mail: { id: string; fromEmail: string }): string {
  return `${encodeId('eml', mail.id)}@${domainOf(mail.fromEmail)}`
}
