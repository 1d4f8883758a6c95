import type { Call } from '../../catalogue/tool.ts'
import { withSnippets } from '../library/carried-content.ts'
import { readContent } from '../library/content.ts'
import type { TransactionalEmail } from './acceptance.ts'
import type { MessageSource } from './messages.ts'
import { sendTransactional } from './transactional.ts'

/** The content types of a single email; TIPTAP is the name for a MAILY document here. */
export const WRITTEN_TYPES = ['MARKDOWN', 'HTML', 'TIPTAP'] as const
export type WrittenType = (typeof WRITTEN_TYPES)[number]

/** An email as a caller wrote it; `text` is an optional text part. */
type Written = {
  subject: string
  /** Text, or a document as an object or as JSON text. */
  content: unknown
  contentType: WrittenType
  preview?: string
  text?: string
}

/** Accepts one transactional email as a caller wrote it. Returns the uuid of the message. */
export async function sendWritten(
  call: Call,
  email: Written & Pick<TransactionalEmail, 'to' | 'tracking'> & { from?: string; replyTo?: string },
): Promise<string> {
  const { to, from, replyTo, tracking } = email
  return await sendTransactional(call, { ...(await readWritten(call, email)), to, from, replyTo, tracking })
}

/** Whether the email can be read without the database; only documents, which may contain snippets, need it. */
export function isWrittenHere({ contentType }: Pick<Written, 'contentType'>): boolean {
  return contentType !== 'TIPTAP'
}

/** Returns the source to store for an email; a document is validated and includes its snippets' current versions. */
export async function readWritten(call: Call, written: Written): Promise<MessageSource> {
  const { subject, content, contentType, preview = null, text } = written
  const rest = { subject, preview, ...(text !== undefined && { text }) }
  if (contentType === 'HTML') return { ...rest, content, contentType }
  if (contentType === 'MARKDOWN') {
    const markdown = await readContent(call, contentType, content)
    return { ...rest, content: markdown.content, contentType }
  }
  const document = await readContent(call, 'MAILY', content)
  return { ...rest, content: await withSnippets(call, 'MAILY', document.content), contentType: 'MAILY' }
}
