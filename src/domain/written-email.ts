import type { Call } from '../catalogue/tool.ts'
import type { TransactionalEmail } from './acceptance.ts'
import { withSnippets } from './carried-content.ts'
import { readContent } from './content.ts'
import type { MessageSource } from './messages.ts'
import { sendTransactional } from './transactional.ts'

/** How callers may write an email to one person; a MAILY document has the name of its format there. */
export const WRITTEN_TYPES = ['MARKDOWN', 'HTML', 'TIPTAP'] as const
export type WrittenType = (typeof WRITTEN_TYPES)[number]

/** An email as a caller wrote it; `text` is the text part where the caller wrote one. */
type Written = {
  subject: string
  /** Text; a document may be its JSON text as well. */
  content: unknown
  contentType: WrittenType
  preview?: string
  text?: string
}

/** Accepts one transactional email as a caller wrote it; answers the uuid of the message. */
export async function sendWritten(
  call: Call,
  email: Written & Pick<TransactionalEmail, 'to' | 'tracking'> & { from?: string; replyTo?: string },
): Promise<string> {
  const { to, from, replyTo, tracking } = email
  return await sendTransactional(call, { ...(await readWritten(call, email)), to, from, replyTo, tracking })
}

/** Whether an email is read without asking the database, as only documents are not. */
export function isWrittenHere({ contentType }: Pick<Written, 'contentType'>): boolean {
  return contentType !== 'TIPTAP'
}

/** What mail keeps of an email as a caller wrote it; a document is judged, and keeps its snippets as they are now. */
export async function readWritten(call: Call, written: Written): Promise<MessageSource> {
  const { subject, content, contentType, preview = null, text } = written
  if (contentType !== 'TIPTAP') {
    return { subject, content, contentType, preview, ...(text !== undefined && { text }) }
  }
  const document = await readContent(call, 'MAILY', content)
  return {
    subject,
    content: await withSnippets(call, 'MAILY', document.content),
    contentType: 'MAILY',
    preview,
  }
}
