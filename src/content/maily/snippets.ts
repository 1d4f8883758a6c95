import { isRecord } from '../../../schema/json.ts'
import { SNIPPET_LIMITS } from '../../../schema/snippet.ts'
import { writeMarkdown } from '../markdown.ts'
import { memberOf, textOf } from '../rich/attributes.ts'
import type { Place } from '../rich/entries.ts'
import { inside, type Node, readNode, type Spot, versionOf, type Walk } from './node.ts'

/** A snippet as stored inside a document. */
export type SnippetSource = {
  readonly name: string
  readonly contentType: 'MAILY' | 'MARKDOWN'
  readonly content: unknown
  readonly isArchived: boolean
}

/** Snippets by the id that documents refer to them with. */
export type SnippetSources = ReadonlyMap<string, SnippetSource>

/**
 * Returns the document with its snippets in the member `snippets`. They are added when the document is read for
 * rendering or freezing, so that a frozen document is complete. Any `snippets` member that an author wrote is replaced.
 */
export function carrySnippets(document: object, snippets: SnippetSources): object {
  return { ...document, snippets: Object.fromEntries(snippets) }
}

/** Reads the snippets that a document carries; malformed entries are skipped. */
export function readSnippets(document: unknown): SnippetSources {
  const carried = isRecord(document) ? memberOf(document, 'snippets') : undefined
  if (!isRecord(carried)) return new Map()
  const snippets = new Map<string, SnippetSource>()
  for (const [id, value] of Object.entries(carried)) {
    if (!isRecord(value)) continue
    snippets.set(id, {
      name: textOf(value, 'name'),
      contentType: memberOf(value, 'contentType') === 'MARKDOWN' ? 'MARKDOWN' : 'MAILY',
      content: memberOf(value, 'content'),
      isArchived: memberOf(value, 'isArchived') === true,
    })
  }
  return snippets
}

/** Writes a snippet in place, as if its content stood in the document. */
export function writeSnippet(walk: Walk, { attributes }: Node, spot: Spot, { isLast }: Place): void {
  const id = textOf(attributes, 'snippetId')
  const { table } = walk.parts
  const snippet = walk.snippets.get(id)
  const shown = JSON.stringify(id.slice(0, 80))
  if (snippet === undefined) {
    table.warn(
      'MISSING_SNIPPET',
      `There is no snippet ${shown}, so nothing is shown in its place; get_email_snippets lists the existing ones.`,
    )
    return
  }
  if (spot.snippets.includes(id) || spot.snippets.length >= SNIPPET_LIMITS.nesting) {
    table.warn(
      'TOO_LARGE',
      `The snippet "${table.plain(snippet.name)}" stands in itself, or more than ${SNIPPET_LIMITS.nesting} snippets deep, and was left out.`,
    )
    return
  }
  if (snippet.isArchived) {
    table.warn(
      'ARCHIVED_SNIPPET',
      `The snippet "${table.plain(snippet.name)}" is archived and still shows; unarchive it, or take it out.`,
    )
  }
  if (snippet.contentType === 'MARKDOWN') return writeText(walk, snippet.content, spot)
  const document = readNode(snippet.content)
  if (document === null) return
  // A snippet restarts the depth count, so that a document can contain one wherever it can contain a block.
  walk.writeBlocks(document.content, {
    ...inside(spot),
    isTight: spot.isTight && isLast,
    depth: 1,
    version: versionOf(snippet.content),
    snippets: [...spot.snippets, id],
  })
}

function writeText({ parts, budget }: Walk, content: unknown, { surface }: Spot): void {
  const source = typeof content === 'string' ? content : ''
  writeMarkdown(parts, budget.read(source, { backslashEscapes: true }), surface)
}
