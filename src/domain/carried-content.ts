import { sql } from 'kysely'

import type { ContentType } from '../../schema/values.ts'
import type { Call } from '../catalogue/tool.ts'
import { inspectDocument } from '../content/document.ts'
import { carrySnippets, type SnippetSource } from '../content/maily/snippets.ts'
import { array, rows } from '../database.ts'
import { encodeId, readId } from '../ids.ts'

/**
 * Content as it is rendered, and as it is frozen for sending: a MAILY document carries the snippets it holds, and those
 * that they hold, as they are now. What was frozen so needs nothing else, and no later edit of a snippet changes it.
 */
export async function withSnippets(
  call: Pick<Call, 'em' | 'organization'>,
  contentType: ContentType,
  content: unknown,
): Promise<unknown> {
  if (contentType !== 'MAILY' || typeof content !== 'object' || content === null) return content
  const ids = inspectDocument(content).snippets.flatMap(({ snippetId }) =>
    typeof snippetId === 'string' ? (readId('snp', snippetId) ?? []) : [],
  )
  return carrySnippets(content, ids.length === 0 ? new Map() : await readSnippets(call, ids))
}

/** What is used by what is kept when snippets are saved, so one statement finds them all. */
async function readSnippets(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  ids: readonly string[],
): Promise<Map<string, SnippetSource>> {
  const found = await rows<SnippetSource & { id: string }>(
    em,
    sql`with recursive held (id) as (
        select unnest(${array([...new Set(ids)], 'uuid')})
        union
        select snippet_use.used_id from held join snippet_use
          on snippet_use.organization_id = ${organization.id} and snippet_use.snippet_id = held.id
      )
      select snippet.id, snippet.name, snippet.content_type as "contentType", snippet.content,
        snippet.archived_at is not null as "isArchived"
      from snippet join held using (id) where snippet.organization_id = ${organization.id}`,
  )
  return new Map(found.map(({ id, ...snippet }) => [encodeId('snp', id), snippet]))
}

/** Whether there is anything to show: no words, or no blocks, are no content. */
export function isEmptyContent(content: unknown): boolean {
  if (typeof content === 'string') return content.trim() === ''
  if (Array.isArray(content)) return content.length === 0
  if (typeof content !== 'object' || content === null) return true
  const blocks: unknown = 'children' in content ? content.children : 'content' in content && content.content
  return !Array.isArray(blocks) || blocks.length === 0
}
