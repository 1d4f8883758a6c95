import { encodeId } from '../ids.ts'
import { wireAddress } from './headers.ts'

/** The Message-ID, without brackets: the same for every attempt, so that receivers and logs can tell a repetition. */
export function formatMessageId(mail: { id: string; fromEmail: string }): string {
  const address = wireAddress(mail.fromEmail)
  return `${encodeId('eml', mail.id)}@${address.slice(address.lastIndexOf('@') + 1).toLowerCase()}`
}
