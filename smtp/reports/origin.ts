import type { ParsedMail } from 'mailparser'

import { type Fields, readFields, readHeader } from './fields.ts'

/** What a report says itself of the email it is about; each is a signed token, or none of ours. */
export type KnownOrigin = { returnPaths: readonly string[]; unsubscribeTokens: readonly string[] }

const RETURNED = new Set([
  'message/rfc822',
  'message/global',
  'message/global-headers',
  'text/rfc822-headers',
  'message/rfc822-headers',
])
const MOST_TOKENS = 5
const ADDRESS = /<?([A-Za-z2-7]{64})@/

/** Finds the tokens of the email that a report brings back, in its fields and in the header of what it returns. */
export function findReturned(mail: ParsedMail, words: string): KnownOrigin {
  const feedback = mail.attachments.find(({ contentType }) => contentType === 'message/feedback-report')
  const headers = mail.attachments
    .filter(({ contentType }) => RETURNED.has(contentType.toLowerCase()))
    .map(({ content }) => readHeader(content.toString('latin1')))
  const told = feedback ? readFields(feedback.content.toString()) : []
  const returnPaths = [
    ...told.map((fields) => fields.get('original-mail-from')),
    ...headers.map((fields) => fields.get('return-path')),
    words,
  ]
  return {
    returnPaths: returnPaths.flatMap((text) => ADDRESS.exec(text ?? '')?.[1] ?? []).slice(0, MOST_TOKENS),
    unsubscribeTokens: headers.flatMap(unsubscribeToken).slice(0, MOST_TOKENS),
  }
}

function unsubscribeToken(fields: Fields): string[] {
  const token = /\/u\/([A-Za-z0-9_-]+)>/.exec(fields.get('list-unsubscribe') ?? '')?.[1]
  return token === undefined ? [] : [token]
}
