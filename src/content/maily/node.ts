import { isRecord } from '../../../schema/json.ts'
import type { EmailParts } from '../email-parts.ts'
import { referenceMark } from '../references.ts'
import { type Attributes, choiceOf, memberOf, textOf } from '../rich/attributes.ts'
import type { Budget } from '../rich/budget.ts'
import { directionOfText, firstWords } from '../rich/direction.ts'
import type { Place } from '../rich/entries.ts'
import type { Surface } from '../rich/surface.ts'
import type { TextBlock } from '../rich/text-blocks.ts'
import { isVariableName } from '../variables.ts'
import type { SnippetSources } from './snippets.ts'

/** A node of a document; missing or malformed members are empty. */
export type Node = {
  readonly type: string
  readonly attributes: Attributes
  readonly content: readonly unknown[]
  readonly marks: readonly unknown[]
  readonly text: string
}

/** Reads a node; null for a value that is not one. */
export function readNode(value: unknown): Node | null {
  if (!isRecord(value)) return null
  const type = memberOf(value, 'type')
  if (typeof type !== 'string') return null
  const attributes = memberOf(value, 'attrs')
  const content = memberOf(value, 'content')
  const marks = memberOf(value, 'marks')
  return {
    type,
    attributes: isRecord(attributes) ? attributes : {},
    content: Array.isArray(content) ? content : [],
    marks: Array.isArray(marks) ? marks : [],
    text: textOf(value, 'text'),
  }
}

/** Returns the version of the editor that made a document. */
export function versionOf(document: unknown): 1 | 2 {
  const attributes = isRecord(document) ? memberOf(document, 'attrs') : undefined
  return isRecord(attributes) && memberOf(attributes, 'version') === 2 ? 2 : 1
}

/** The state that all writers of one document share. */
export type Walk = {
  readonly parts: EmailParts
  readonly budget: Budget
  readonly snippets: SnippetSources
  /** Writes the blocks of a container. */
  readonly writeBlocks: (content: readonly unknown[], spot: Spot) => void
}

/** The writer's place in the document. */
export type Spot = {
  /** The width of the column in pixels. */
  readonly room: number
  readonly surface: Surface
  readonly depth: number
  /** The version of the editor that made the document, because defaults differ between versions. */
  readonly version: 1 | 2
  /** The ids of the snippets around this place, outermost first. */
  readonly snippets: readonly string[]
  readonly lists: number
  /** Whether the container ends with its last block, so that the block needs no space below it. */
  readonly isTight: boolean
}

/** Returns the spot one level deeper. */
export function inside(spot: Spot, change: Partial<Spot> = {}): Spot {
  return { ...spot, isTight: true, ...change, depth: spot.depth + 1 }
}

/** Returns the look and spacing of a text block, from its node and its place. */
export function textBlock(node: Node, spot: Spot, { isFirst, isLast, textGap }: Place): TextBlock {
  const { attributes } = node
  return {
    surface: spot.surface,
    alignment: choiceOf(attributes, 'textAlign', ['', 'left', 'center', 'right', 'justify'], ''),
    direction: directionOf(node),
    isFirst,
    isLast,
    textGap,
  }
}

/** Returns the direction that the node states, that its first block states, or that its first words imply. */
function directionOf(node: Node, depth = 2): '' | 'ltr' | 'rtl' {
  const { attributes, content } = node
  const said = choiceOf(attributes, 'dir', ['ltr', 'rtl', ''], '')
  if (said !== '') return said
  // The editor's first version writes this attribute into every block, so only `rtl` means a choice.
  if (choiceOf(attributes, 'textDirection', ['rtl', ''], '') !== '') return 'rtl'
  const first = readNode(content[0])
  if (depth > 0 && first !== null && first.text === '' && first.content.length > 0)
    return directionOf(first, depth - 1)
  return directionOfText(firstWords(content, wordsOf))
}

function wordsOf(value: unknown): { text: string; children: readonly unknown[] } | null {
  const node = readNode(value)
  return node && { text: node.text, children: node.content }
}

/** Returns the variable's name in `name`, `{{name}}`, or the second version's `{{name|label|…}}`; null if not valid. */
export function variableName(text: string): string | null {
  const inner = /^\s*\{\{([^{}]*)\}\}\s*$/.exec(text)?.[1] ?? text
  const bar = inner.indexOf('|')
  const name = (bar < 0 ? inner : inner.slice(0, bar)).trim()
  return isVariableName(name) ? name : null
}

/** Returns a variable as its placeholder; one with an invalid name shows its fallback, with a warning. */
export function readVariable({ parts, budget }: Walk, id: string, fallback: string): string {
  const name = variableName(id)
  if (name !== null) return referenceMark(parts.table.add({ name, fallback: parts.table.plain(fallback) }))
  parts.table.warn(
    'MALFORMED_VARIABLE',
    `A variable is called ${JSON.stringify(id.slice(0, 80))}, which is not a valid name; use letters, digits, _ and -.`,
  )
  return budget.read(fallback)
}

/**
 * Reads the text of an attribute with its placeholders. When the attribute `flag` is true, the whole text is a
 * variable's name, possibly with a scheme that the editor put before it.
 */
export function readText(walk: Walk, { attributes }: Node, name: string, flag?: string): string {
  const text = textOf(attributes, name)
  if (flag === undefined || memberOf(attributes, flag) !== true) return walk.budget.read(text)
  const bare = text.trim().replace(/^https?:\/\//, '')
  return variableName(bare) === null ? walk.budget.read(text) : readVariable(walk, bare, '')
}
