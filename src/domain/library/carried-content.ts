import { sql } from 'kysely'

import type { ContentType } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { inspectDocument } from '../../content/document.ts'
import { carrySnippets, type SnippetSource } from '../../content/maily/snippets.ts'
import { array, rows } from '../../database.ts'
import { encodeId, readId } from '../../ids.ts'

/**
 * Returns content as it is rendered and frozen for sending: a MAILY document with the current versions of its snippets,
 * including nested ones. Frozen content needs nothing else, so later edits of a snippet do not change it.
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

/** Reads snippets and the ones nested in them in one statement, through the `snippet_use` rows written on saving. */
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

/** Whether content has no text or no blocks. */
export function isEmptyContent(content: unknown): boolean {
  if (typeof content === 'string') return content.trim() === ''
  if (Array.isArray(content)) return content.length === 0
  if (typeof content !== 'object' || content === null) return true
  const blocks: unknown = 'children' in content ? content.children : 'content' in content && content.content
  return !Array.isArray(blocks) || blocks.length === 0
}
