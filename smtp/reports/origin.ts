import type { ParsedMail } from 'mailparser'

import { type Fields, readFields, readHeader } from './fields.ts'

/**
 * The tokens in a report that may identify its email. They are not verified: each is one that we signed, or none of
 * ours.
 */
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

/** Finds the tokens of the reported email, in the fields of the report and in the header of the returned email. */
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
