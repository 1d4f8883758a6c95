import { ALIGNMENTS, choiceOf, colorOf, memberOf, numberOf, readNumber, textOf } from '../rich/attributes.ts'
import {
  type Box,
  innerWidth,
  mayAddColumn,
  shareWidths,
  type Sides,
  writeBox,
  writeColumns,
} from '../rich/boxes.ts'
import type { Place } from '../rich/entries.ts'
import { inkOf, surfaceOf } from '../rich/surface.ts'
import { readCondition } from './conditions.ts'
import { DEFAULTS, LIMITS } from './defaults.ts'
import { inside, type Node, readNode, type Spot, variableName, type Walk } from './node.ts'

/** Reads four attributes, named in the order top, right, bottom, left: pixels up to `most`, or `fallback` if absent. */
function sidesOf(
  { attributes }: Node,
  names: readonly [string, string, string, string],
  fallback: number,
  most: number,
): Sides {
  const [top, right, bottom, left] = names.map((name) => numberOf(attributes, name, fallback, most))
  return [top ?? 0, right ?? 0, bottom ?? 0, left ?? 0]
}

const PADDING = ['paddingTop', 'paddingRight', 'paddingBottom', 'paddingLeft'] as const
const MARGIN = ['marginTop', 'marginRight', 'marginBottom', 'marginLeft'] as const
const BORDER = ['borderTopWidth', 'borderRightWidth', 'borderBottomWidth', 'borderLeftWidth'] as const
const RADIUS = [
  'borderTopLeftRadius',
  'borderTopRightRadius',
  'borderBottomRightRadius',
  'borderBottomLeftRadius',
] as const

/**
 * Reads the background colour. A missing attribute means the editor's default, which dark mode changes with the card;
 * an invalid or empty one means none.
 */
function backgroundOf({ attributes }: Node): { background: string | null; isOwn: boolean } {
  return memberOf(attributes, 'backgroundColor') === undefined
    ? { background: DEFAULTS.section.background, isOwn: false }
    : { background: colorOf(attributes, 'backgroundColor', null), isOwn: true }
}

/** Writes a `section`: a box with its own background, border and spacing around its blocks. */
export function writeSection(walk: Walk, node: Node, spot: Spot): void {
  const { attributes } = node
  const { background, isOwn } = backgroundOf(node)
  const adaptsPanel = !isOwn && spot.surface.isCard
  const surface = adaptsPanel ? spot.surface : surfaceOf(background, spot.surface)
  const box: Box = {
    background,
    margin: sidesOf(node, MARGIN, 0, LIMITS.padding),
    padding: sidesOf(node, PADDING, 0, LIMITS.padding),
    border: sidesOf(
      node,
      BORDER,
      numberOf(attributes, 'borderWidth', DEFAULTS.section.border, LIMITS.border),
      LIMITS.border,
    ),
    borderColor: colorOf(attributes, 'borderColor', DEFAULTS.section.borderColor),
    borderStyle: choiceOf(attributes, 'borderStyle', ['solid', 'dashed', 'dotted'], 'solid'),
    radius: sidesOf(node, RADIUS, numberOf(attributes, 'borderRadius', 0, LIMITS.radius), LIMITS.radius),
    alignment: choiceOf(attributes, 'align', ALIGNMENTS, 'left'),
    ink: surface.isCard ? null : inkOf(surface).text,
    adapts: adaptsPanel && 'pl-panel',
  }
  writeBox(walk.parts, box, () =>
    walk.writeBlocks(node.content, inside(spot, { room: innerWidth(spot.room, box), surface })),
  )
  walk.parts.text.endBlock(1)
}

/**
 * Writes `columns` side by side. Widths are in per cent; columns without one share the rest equally. Columns beyond
 * `MOST_COLUMNS` (rich/boxes.ts) are left out with a warning.
 */
export function writeColumnsNode(walk: Walk, node: Node, spot: Spot, { isLast }: Place): void {
  const gap = numberOf(node.attributes, 'gap', DEFAULTS.columns.gap, LIMITS.padding)
  const nodes = readColumns(walk, node)
  if (nodes.length === 0) return
  const given = nodes.map(({ attributes }) => readNumber(memberOf(attributes, 'width'), 100, 1))
  const widths = shareWidths(given, spot.room, gap)
  const columns = nodes.map((column, index) => ({
    width: widths[index] ?? 0,
    verticalAlign: choiceOf(column.attributes, 'verticalAlign', ['top', 'middle', 'bottom'], 'top'),
    write: (room: number): void => writeColumn(walk, column, inside(spot, { room })),
  }))
  writeColumns(walk.parts, columns, gap, isLast ? 0 : 16)
}

function writeColumn(walk: Walk, column: Node, spot: Spot): void {
  const write = (): void => walk.writeBlocks(column.content, inside(spot))
  const condition = readCondition(walk, column)
  if (condition === null) write()
  else walk.parts.when(condition, write)
}

/** Reads the columns of a row; any other node becomes a column of its own. */
function readColumns(walk: Walk, { content }: Node): Node[] {
  const columns: Node[] = []
  for (const value of content) {
    if (!mayAddColumn(walk.parts, columns.length) || !walk.budget.takeNode()) break
    const node = readNode(value)
    if (node === null) continue
    columns.push(
      node.type === 'column'
        ? node
        : { type: 'column', attributes: {}, content: [value], marks: [], text: '' },
    )
  }
  return columns
}

/**
 * Writes a `repeat`: its blocks once for each item of the list that `each` names. Without a valid name, writes nothing
 * and warns.
 */
export function writeRepeat(walk: Walk, node: Node, spot: Spot, place: Place): void {
  const written = textOf(node.attributes, 'each') || 'items'
  const list = variableName(written)
  if (list === null) {
    walk.parts.table.warn(
      'MALFORMED_VARIABLE',
      `A block repeats for ${JSON.stringify(written.slice(0, 80))}, which is not the name of a list; set each to a name.`,
    )
    return
  }
  const inner = { ...inside(spot), isTight: spot.isTight && place.isLast }
  walk.parts.each(list, () => walk.writeBlocks(node.content, inner))
}
