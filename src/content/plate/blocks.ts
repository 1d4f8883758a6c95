import { ALIGNMENTS, choiceOf, memberOf, readNumber, textOf } from '../rich/attributes.ts'
import { directionOfText, firstWords } from '../rich/direction.ts'
import { type EntryReader, placeOf, readEntries, type SpacingTypes } from '../rich/entries.ts'
import { writeImageBlock } from '../rich/images.ts'
import { isBlank, type Run, writeRuns } from '../rich/runs.ts'
import {
  type TextBlock,
  writeCode,
  writeHeading,
  writeParagraph,
  writeQuote,
  writeRule,
} from '../rich/text-blocks.ts'
import { INLINE_ELEMENTS, readLine } from './inline.ts'
import { indentOf, isIndentItem, writeIndentList, writeListElement } from './lists.ts'
import {
  type PlateNode,
  type PlateSpot,
  type PlateWalk,
  readImage,
  readPlateNode,
  warnUnknown,
  within,
} from './node.ts'
import { writeCallout, writeColumnGroup, writeTable } from './tables.ts'

type Writer = (walk: PlateWalk, node: PlateNode, spot: PlateSpot, block: TextBlock) => void

const LEVELS = [1, 2, 3, 4, 5, 6] as const
const STEP = 24

/** The writer of each element type. A `Map`, so that a type named like a member of `Object.prototype` finds nothing. */
const WRITERS: ReadonlyMap<string, Writer> = new Map<string, Writer>([
  ['p', writeText],
  ['lic', writeText],
  ...LEVELS.map((level): [string, Writer] => [`h${level}`, headingWriter(level)]),
  ['blockquote', writeQuotation],
  ['hr', (walk, _node, spot) => writeRule(walk.parts, spot.surface)],
  ['img', writeImage],
  ['code_block', writeCodeBlock],
  ['ul', writeListElement],
  ['ol', writeListElement],
  ['table', (walk, node, spot, { isLast }) => writeTable(walk, node, spot, isLast ? 0 : 16)],
  ['column_group', (walk, node, spot, { isLast }) => writeColumnGroup(walk, node, spot, isLast ? 0 : 16)],
  ['callout', (walk, node, spot, { isLast }) => writeCallout(walk, node, spot, isLast ? 0 : 16)],
])

function writeLine({ parts }: PlateWalk, runs: readonly Run[], spot: PlateSpot): void {
  if (isBlank(runs)) parts.html.fixed('&nbsp;')
  else writeRuns(parts, runs, spot)
}

function writeText(walk: PlateWalk, node: PlateNode, spot: PlateSpot, block: TextBlock): void {
  const runs = readLine(walk, node.children, spot.depth + 1)
  const { indent } = indentOf(node)
  writeParagraph(walk.parts, { ...block, indent: indent * STEP }, () => writeLine(walk, runs, spot))
}

function headingWriter(level: (typeof LEVELS)[number]): Writer {
  return (walk, node, spot, block) => {
    const runs = readLine(walk, node.children, spot.depth + 1)
    writeHeading(walk.parts, level, block, () => writeLine(walk, runs, spot))
  }
}

function writeQuotation(walk: PlateWalk, node: PlateNode, spot: PlateSpot, block: TextBlock): void {
  writeQuote(walk.parts, block, () => walk.writeBlocks(node.children, within(spot, { room: spot.room - 19 })))
}

/** Writes an image, with its caption as a paragraph below it. The caption is not repeated as alternative text. */
function writeImage(walk: PlateWalk, node: PlateNode, spot: PlateSpot, { isLast }: TextBlock): void {
  const { attributes } = node
  const captions = memberOf(attributes, 'caption')
  const caption = Array.isArray(captions) ? readLine(walk, captions, spot.depth + 1) : []
  const width = readNumber(memberOf(attributes, 'width'), 2_000, 1)
  const isShare = textOf(attributes, 'width').trim().endsWith('%')
  const alignment = choiceOf(attributes, 'align', ALIGNMENTS, 'center')
  const image = {
    ...readImage(walk, attributes),
    width: width !== null && isShare ? Math.round((width / 100) * spot.room) : width,
    height: null,
    radius: 0,
    alignment,
    link: '',
    gap: isBlank(caption) ? (isLast ? 0 : 24) : 8,
  }
  if (image.src === '') return
  writeImageBlock(walk.parts, image, spot.room)
  if (isBlank(caption)) return
  const block = { ...LOOSE, surface: spot.surface, alignment, isLast }
  writeParagraph(walk.parts, block, () => writeRuns(walk.parts, caption, spot))
}

const LOOSE: Omit<TextBlock, 'surface'> = {
  alignment: '',
  direction: '',
  isFirst: false,
  isLast: false,
  textGap: 1,
}

function writeCodeBlock(walk: PlateWalk, node: PlateNode, spot: PlateSpot, { isLast }: TextBlock): void {
  const lines: string[] = []
  for (const value of node.children) {
    if (!walk.budget.takeNode()) break
    const line = readPlateNode(value)
    if (line === null) continue
    const runs = readLine(walk, line.type === '' ? [value] : line.children, spot.depth + 2)
    lines.push(
      runs.map((run) => (run.type === 'text' ? run.text : run.type === 'break' ? '\n' : '')).join(''),
    )
  }
  writeCode(walk.parts, lines.join('\n').split('\n'), spot.surface, isLast)
}

const ENTRIES: EntryReader<PlateNode> = {
  read: readPlateNode,
  kindOf(node) {
    if (isIndentItem(node) && node.type !== '') return 'item'
    return INLINE_ELEMENTS.has(node.type) ? 'line' : 'block'
  },
}

const SPACING: SpacingTypes = {
  lists: new Set(['ul', 'ol']),
  spaced: new Set(['img', 'callout', 'column_group']),
  spacers: new Set(),
}

/** Writes the content of a container. */
export function writeBlocks(walk: PlateWalk, content: readonly unknown[], spot: PlateSpot): void {
  if (content.length === 0 || !walk.budget.mayNest(spot.depth)) return
  const entries = readEntries(walk.budget, content, ENTRIES)
  for (const [index, entry] of entries.entries()) {
    const place = { surface: spot.surface, ...placeOf(entries, index, spot, SPACING) }
    if ('line' in entry) {
      const line = { type: 'p', attributes: {}, children: entry.line }
      writeText(walk, line, spot, { ...LOOSE, ...place })
    } else if ('items' in entry) {
      const direction = directionOfText(firstWords(entry.items, wordsOf))
      const block = { ...LOOSE, ...place, direction }
      writeIndentList(walk, entry.items, spot, block, (item, prefix, at, hasMore) =>
        writeItemContent(walk, item, prefix, at, hasMore),
      )
    } else writeBlock(walk, entry.block, spot, { ...LOOSE, ...place, ...standingOf(entry.block) })
  }
}

/** Writes the content of an item of an indented list: an element of any type, written without its indentation. */
function writeItemContent(
  walk: PlateWalk,
  item: PlateNode,
  prefix: string,
  spot: PlateSpot,
  hasMore: boolean,
): void {
  const { indent: _indent, listStyleType: _style, ...attributes } = item.attributes
  const children = prefix === '' ? item.children : [{ text: prefix }, ...item.children]
  const block = {
    ...LOOSE,
    surface: spot.surface,
    isFirst: true,
    isLast: true,
    textGap: hasMore || spot.isTight ? 0 : 1,
    ...standingOf(item),
  } as const
  writeBlock(walk, { ...item, attributes, children }, spot, block)
}

function standingOf({ attributes, children }: PlateNode): Pick<TextBlock, 'alignment' | 'direction'> {
  return {
    alignment: choiceOf(attributes, 'align', ['', 'left', 'center', 'right', 'justify'], ''),
    direction: directionOfText(firstWords(children, wordsOf)),
  }
}

function wordsOf(value: unknown): { text: string; children: readonly unknown[] } | null {
  const node = readPlateNode(value)
  return node && { text: textOf(node.attributes, 'text'), children: node.children }
}

function writeBlock(walk: PlateWalk, node: PlateNode, spot: PlateSpot, block: TextBlock): void {
  const writer = WRITERS.get(node.type)
  if (writer !== undefined) return writer(walk, node, spot, block)
  warnUnknown(walk, node, 'is not known')
  walk.writeBlocks(node.children, { ...within(spot), isTight: block.isLast })
}
