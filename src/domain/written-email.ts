import type { Call } from '../catalogue/tool.ts'
import { withSnippets } from './carried-content.ts'
import { readContent } from './content.ts'
import type { MessageSource } from './messages.ts'

/** How callers may write an email to one person; a MAILY document has the name of its format there. */
export const WRITTEN_TYPES = ['MARKDOWN', 'HTML', 'TIPTAP'] as const
export type WrittenType = (typeof WRITTEN_TYPES)[number]

/** What mail keeps of an email as a caller wrote it; a document is judged, and keeps its snippets as they are now. */
export async function readWritten(
  call: Call,
  written: { subject: string; content: string; contentType: WrittenType; preview: string | undefined },
): Promise<MessageSource> {
  const { subject, content, contentType, preview = null } = written
  if (contentType !== 'TIPTAP') return { subject, content, contentType, preview }
  const document = await readContent(call, 'MAILY', content)
  return {
    subject,
    content: await withSnippets(call, 'MAILY', document.content),
    contentType: 'MAILY',
    preview,
  }
}
