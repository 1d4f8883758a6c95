import { sql } from 'kysely'

import { DOCUMENT_LIMITS } from '../../../schema/document.ts'
import { isRecord } from '../../../schema/json.ts'
import { SNIPPET_LIMITS } from '../../../schema/snippet.ts'
import type { ContentType } from '../../../schema/values.ts'
import { refuse, refuseFaults } from '../../catalogue/failure.ts'
import { hostileFaults } from '../../catalogue/input.ts'
import type { Call } from '../../catalogue/tool.ts'
import { inspectDocument, type SnippetMention } from '../../content/document.ts'
import { inspectSlate } from '../../content/slate.ts'
import { array, rows } from '../../database.ts'
import { encodeId, readId } from '../../ids.ts'

/** A snippet that content uses: its uuid, and the path of its first use. */
export type HeldSnippet = { id: string; path: string }

const MARKDOWN_LENGTH = 1_000_000

/** Content as it will be stored, and the distinct snippets it uses. */
export type CheckedContent = { content: unknown; snippets: HeldSnippet[] }

/** Validates content by its type. A document may be given as JSON text, and is then stored parsed. */
export async function readContent(
  call: Call,
  contentType: ContentType,
  given: unknown,
): Promise<CheckedContent> {
  if (contentType === 'MARKDOWN') return { content: readMarkdown(given), snippets: [] }
  const content = typeof given === 'string' ? parseDocument(given, contentType) : given
  const { faults, snippets } =
    contentType === 'MAILY' ? inspectDocument(content) : { faults: inspectSlate(content), snippets: [] }
  if (faults.length > 0)
    refuseFaults(faults.map(({ path, message }) => ({ path: `content${path}`, message })))
  return { content, snippets: await findMentioned(call, snippets) }
}

/** Returns the type of content that comes without one: text is MARKDOWN, unless it is the JSON text of a document. */
export function typeOfContent(content: unknown): ContentType {
  return typeof content === 'string' && !isDocumentText(content) ? 'MARKDOWN' : 'MAILY'
}

function isDocumentText(text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false
  try {
    const read: unknown = JSON.parse(text)
    return isRecord(read) && read['type'] === 'doc'
  } catch {
    return false
  }
}

function readMarkdown(content: unknown): string {
  if (typeof content !== 'string')
    refuse('content', 'must be Markdown text, because contentType is MARKDOWN.')
  if (content.length > MARKDOWN_LENGTH) {
    refuse('content', `is longer than ${MARKDOWN_LENGTH} characters; shorten it.`)
  }
  return content
}

/** Parses JSON text and applies the checks that other input passed on arrival. */
function parseDocument(text: string, contentType: ContentType): unknown {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    refuse('content', `is text that is not JSON; send the ${contentType} document, or contentType MARKDOWN.`)
  }
  const faults = hostileFaults(document, DOCUMENT_LIMITS.jsonDepth, 'content')
  if (faults.length > 0) refuseFaults(faults)
  return document
}

/**
 * Refuses content that would nest a snippet in itself, or exceed the nesting limit. The caller holds the organization's
 * snippet lock, so that two concurrent saves cannot create a cycle together.
 */
export async function refuseNesting(
  { em, organization }: Call,
  id: string,
  held: readonly HeldSnippet[],
): Promise<void> {
  if (held.length === 0) return
  const found = await rows<{ holder: string; held: string }>(
    em,
    sql`select snippet_id as holder, used_id as held from snippet_use
      where organization_id = ${organization.id} and snippet_id <> ${id}`,
  )
  const down = Map.groupBy(found, ({ holder }) => holder)
  const up = Map.groupBy(found, (edge) => edge.held)
  const above = longestChain(id, (at) => up.get(at)?.map(({ holder }) => holder) ?? [])
  for (const { id: child, path } of held) {
    const below = longestChain(child, (at) => down.get(at)?.map((edge) => edge.held) ?? [], id)
    if (below === null) {
      refuse(path, `names ${encodeId('snp', child)}, which holds this snippet; a snippet cannot hold itself.`)
    }
    if ((above ?? 1) + below > SNIPPET_LIMITS.nesting) {
      refuse(
        path,
        `would nest more than ${SNIPPET_LIMITS.nesting} snippets in one another; put the content in place.`,
      )
    }
  }
}

/** Returns the length of the longest chain from `from`, itself included; null when it reaches `forbidden`. */
function longestChain(from: string, next: (id: string) => string[], forbidden?: string): number | null {
  const known = new Map<string, number | null>()
  function measure(id: string): number | null {
    if (id === forbidden) return null
    const before = known.get(id)
    if (before !== undefined) return before
    let longest = 0
    for (const other of next(id)) {
      const length = measure(other)
      if (length === null) return null
      longest = Math.max(longest, length)
    }
    known.set(id, longest + 1)
    return longest + 1
  }
  return measure(from)
}

async function findMentioned(
  { em, organization }: Call,
  mentions: readonly SnippetMention[],
): Promise<HeldSnippet[]> {
  if (mentions.length === 0) return []
  const held = new Map<string, string>()
  const unknown: SnippetMention[] = []
  for (const mention of mentions) {
    const id = typeof mention.snippetId === 'string' ? readId('snp', mention.snippetId) : null
    if (id === null) unknown.push(mention)
    else if (!held.has(id)) held.set(id, mention.path)
  }
  if (held.size > SNIPPET_LIMITS.uses) {
    refuse('content', `holds more than ${SNIPPET_LIMITS.uses} different snippets.`)
  }
  const found = await rows<{ id: string }>(
    em,
    sql`select id from snippet where organization_id = ${organization.id} and id = any(${array([...held.keys()], 'uuid')})`,
  )
  const existing = new Set(found.map(({ id }) => id))
  for (const [id, path] of held) {
    if (!existing.has(id)) unknown.push({ path, snippetId: encodeId('snp', id) })
  }
  if (unknown.length > 0) {
    refuseFaults(
      unknown.map(({ path, snippetId }) => ({
        path: `content${path}`,
        message: `there is no snippet ${JSON.stringify(snippetId)?.slice(0, 80)}; get_email_snippets lists them`,
      })),
    )
  }
  return [...held].map(([id, path]) => ({ id, path: `content${path}` }))
}
