import type { ParsedMail } from 'mailparser'

import { readFields, readHeader } from './fields.ts'

/** Types of feedback that are no complaint (RFC 5965 7.3; RFC 6591; RFC 6430). */
const OTHER_FEEDBACK = new Set(['not-spam', 'auth-failure', 'dmarc'])
/** Headers by which mailbox providers mark an email that they return without the report's format. */
const MARKS = ['x-hmxmroriginalrecipient', 'x-hmxmrdirectory']

/**
 * Returns whether feedback is a complaint; null when a message is no feedback. Feedback is a message in the Abuse
 * Reporting Format (RFC 5965), or an email returned as spam without it.
 */
export function isComplaint(mail: ParsedMail): boolean | null {
  for (const { contentType, content } of mail.attachments) {
    if (contentType === 'message/feedback-report') {
      const type = readFields(content.toString())[0]?.get('feedback-type')?.toLowerCase() ?? 'abuse'
      return !OTHER_FEEDBACK.has(type.split(/[\s;]/)[0] ?? '')
    }
    if (contentType !== 'message/rfc822') continue
    const header = readHeader(content.toString('latin1'))
    if (MARKS.some((name) => header.has(name))) return true
  }
  return null
}
