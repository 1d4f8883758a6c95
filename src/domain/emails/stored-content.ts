import { CONTENT_TYPES } from '../../../schema/values.ts'
import { type CompiledEmail, compileContent } from '../../content/compile.ts'
import type { MessageSource } from './messages.ts'

/** The content of an email as the database returns it. An earlier version may have written it without some members. */
export type StoredContent = Partial<Pick<MessageSource, 'subject' | 'preview' | 'content' | 'text'>> & {
  contentType?: string
}

const FORMATS = [...CONTENT_TYPES, 'HTML'] as const

/** Compiles the stored content of an email. */
export function compileStored(
  { contentType, content, subject, preview, text }: StoredContent,
  { marketing }: { marketing: boolean },
): CompiledEmail {
  return compileContent({
    contentType: FORMATS.find((format) => format === contentType) ?? 'MARKDOWN',
    source: content,
    subject: subject ?? '',
    preview: preview ?? null,
    text,
    kind: marketing ? 'marketing' : 'transactional',
  })
}
