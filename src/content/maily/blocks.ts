import { DOCUMENT_LIMITS } from '../../../schema/document.ts'
import { memberOf, numberOf, readNumber } from '../rich/attributes.ts'
import { type EntryReader, type Place, placeOf, readEntries, type SpacingTypes } from '../rich/entries.ts'
import { isBlank, type Run, writeRuns } from '../rich/runs.ts'
import {
  writeHeading,
  writeItem,
  writeList,
  writeParagraph,
  writeQuote,
  writeRule,
  writeSmall,
  writeSpace,
} from '../rich/text-blocks.ts'
import { readCondition } from './conditions.ts'
import { DEFAULTS, LIMITS, SPACER_SIZES } from './defaults.ts'
import { writeHtmlBlock } from './html-block.ts'
import { INLINE_TYPES, readRuns, warnUnknown } from './inline.ts'
import { writeColumnsNode, writeRepeat, writeSection } from './layout.ts'
import { writeLinkCard } from './link-card.ts'
import { writeButtonNode, writeImage, writeLogo } from './media.ts'
import { inside, type Node, readNode, type Spot, textBlock, type Walk } from './node.ts'
import { writeSnippet } from './snippets.ts'
import { writeUnsubscribe } from './unsubscribe.ts'

type BlockWriter = (walk: Walk, node: Node, spot: Spot, place: Place) => void

/** The writer of each block type. A `Map`, so that a type named like a member of `Object.prototype` finds nothing. */
const WRITERS: ReadonlyMap<string, BlockWriter> = new Map<string, BlockWriter>([
  ['paragraph', writeText],
  ['heading', writeTitle],
  ['bulletList', writeBullets],
  ['orderedList', writeNumbers],
  ['blockquote', writeQuotation],
  ['horizontalRule', (walk, _node, spot) => writeRule(walk.parts, spot.surface)],
  ['spacer', writeSpacer],
  ['button', writeButtonNode],
  ['image', writeImage],
  ['logo', writeLogo],
  ['section', writeSection],
  ['columns', writeColumnsNode],
  ['repeat', writeRepeat],
  ['for', writeRepeat],
  ['footer', writeFooter],
  ['linkCard', writeLinkCard],
  ['htmlCodeBlock', writeHtmlBlock],
  ['snippet', writeSnippet],
])

function writeText(walk: Walk, node: Node, spot: Spot, place: Place): void {
  const runs = readRuns(walk, node.content, spot.depth + 1)
  writeParagraph(walk.parts, textBlock(node, spot, place), () => writeLine(walk, runs, spot))
}

/** Writes a line of text. An empty one keeps its height, as in the editor. */
function writeLine({ parts }: Walk, runs: readonly Run[], spot: Spot): void {
  if (isBlank(runs)) parts.html.fixed('&nbsp;')
  else writeRuns(parts, runs, spot)
}

const LEVELS = [1, 2, 3] as const

function writeTitle(walk: Walk, node: Node, spot: Spot, place: Place): void {
  const wanted = numberOf(node.attributes, 'level', 1, 3, 1)
  const level = LEVELS.find((known) => known === wanted) ?? 1
  const runs = readRuns(walk, node.content, spot.depth + 1)
  writeHeading(walk.parts, level, textBlock(node, spot, place), () => writeLine(walk, runs, spot))
}

function writeBullets(walk: Walk, node: Node, spot: Spot, place: Place): void {
  writeItems(walk, node, spot, place, null)
}

function writeNumbers(walk: Walk, node: Node, spot: Spot, place: Place): void {
  writeItems(walk, node, spot, place, numberOf(node.attributes, 'start', 1, 999_999))
}

function writeItems(walk: Walk, node: Node, spot: Spot, place: Place, start: number | null): void {
  const { parts, budget } = walk
  const inner = inside(spot, { lists: spot.lists + 1 })
  if (!budget.mayNest(inner.depth)) return
  writeList(parts, { start, depth: spot.lists, block: textBlock(node, spot, place) }, () => {
    // With hidden items, numbers in the text part would show gaps and differ from those of the HTML.
    let number = start === null || hasConditions(walk, node.content) ? null : start
    for (const value of node.content) {
      if (!budget.takeNode()) break
      const item = readNode(value)
      if (item === null) continue
      const marker = number === null ? '- ' : `${number++}. `
      const content = item.type === 'listItem' ? item.content : [value]
      const write = (): void => writeItem(parts, marker, {}, () => walk.writeBlocks(content, inside(inner)))
      const condition = readCondition(walk, item)
      if (condition === null) write()
      else parts.when(condition, write)
    }
  })
}

/** Returns whether some items have a condition; reads no more items than a document may have nodes. */
function hasConditions(walk: Walk, content: readonly unknown[]): boolean {
  return content.slice(0, DOCUMENT_LIMITS.nodes).some((value) => {
    const item = readNode(value)
    return item !== null && readCondition(walk, item) !== null
  })
}

function writeQuotation(walk: Walk, node: Node, spot: Spot, place: Place): void {
  writeQuote(walk.parts, textBlock(node, spot, place), () =>
    walk.writeBlocks(node.content, inside(spot, { room: spot.room - 19 })),
  )
}

function writeSpacer(walk: Walk, { attributes }: Node): void {
  const written = memberOf(attributes, 'height')
  const height = SPACER_SIZES.get(written) ?? readNumber(written, LIMITS.space) ?? DEFAULTS.spacer.height
  if (height > 0) writeSpace(walk.parts, height)
}

/** Writes the small print, and adds an unsubscribe link if the email has none so far. */
function writeFooter(walk: Walk, node: Node, spot: Spot, place: Place): void {
  const runs = readRuns(walk, node.content, spot.depth + 1)
  writeSmall(walk.parts, textBlock(node, spot, place), () => {
    writeRuns(walk.parts, runs, spot)
    if (!walk.parts.links.hasUnsubscribe) writeUnsubscribe(walk.parts, spot.surface, !isBlank(runs))
  })
}

const ENTRIES: EntryReader<Node> = {
  read: readNode,
  kindOf: ({ type }) => (INLINE_TYPES.has(type) ? 'line' : 'block'),
}

const SPACING: SpacingTypes = {
  lists: new Set(['bulletList', 'orderedList']),
  spaced: new Set(['spacer', 'image', 'logo', 'button', 'linkCard', 'columns', 'htmlCodeBlock']),
  spacers: new Set(['spacer']),
}

/** Writes the content of a container. */
export function writeBlocks(walk: Walk, content: readonly unknown[], spot: Spot): void {
  if (content.length === 0 || !walk.budget.mayNest(spot.depth)) return
  const entries = readEntries(walk.budget, content, ENTRIES)
  for (const [index, entry] of entries.entries()) {
    const place = placeOf(entries, index, spot, SPACING)
    if ('line' in entry) writeText(walk, { ...LINE, content: entry.line }, spot, place)
    else if ('block' in entry) writeBlock(walk, entry.block, spot, place)
  }
}

const LINE: Node = { type: 'paragraph', attributes: {}, content: [], marks: [], text: '' }

function writeBlock(walk: Walk, node: Node, spot: Spot, place: Place): void {
  const writer = WRITERS.get(node.type) ?? writeUnknown
  const condition = readCondition(walk, node)
  if (condition === null) writer(walk, node, spot, place)
  else walk.parts.when(condition, () => writer(walk, node, spot, place))
}

function writeUnknown(walk: Walk, node: Node, spot: Spot, { isLast }: Place): void {
  warnUnknown(walk, 'node', node.type)
  const text = node.text === '' ? [] : [{ type: 'text', text: node.text }]
  walk.writeBlocks([...text, ...node.content], { ...inside(spot), isTight: spot.isTight && isLast })
}
