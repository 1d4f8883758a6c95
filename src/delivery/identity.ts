import { encodeId } from '../ids.ts'
import { domainOf } from './headers.ts'

/** The Message-ID, without brackets: the same for every attempt, so that receivers and logs can tell a repetition. */
export function formatMessageId(mail: { id: string; fromEmail: string }): string {
  return `${encodeId('eml', mail.id)}@${domainOf(mail.fromEmail)}`
}
