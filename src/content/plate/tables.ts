import { choiceOf, colorOf, memberOf, numberOf, readNumber, textOf } from '../rich/attributes.ts'
import { mayAddColumn, shareWidths, writeBox, writeColumns } from '../rich/boxes.ts'
import { type Run, writeRuns } from '../rich/runs.ts'
import { classes, inkOf, surfaceOf } from '../rich/surface.ts'
import { PHONE_WIDTH } from '../theme.ts'
import { INLINE_ELEMENTS, readLine } from './inline.ts'
import { type PlateNode, type PlateSpot, type PlateWalk, readPlateNode, within } from './node.ts'

const GAP = 16
/**
 * Maximum number of rows read to count a table's columns, and of nodes per level read to find a cell's longest word.
 */
const MAX_ROWS_READ = 20

/** Writes columns side by side; a node in the row that is not a column becomes one. */
export function writeColumnGroup(walk: PlateWalk, node: PlateNode, spot: PlateSpot, bottom: number): void {
  const nodes: PlateNode[] = []
  for (const value of node.children) {
    if (!mayAddColumn(walk.parts, nodes.length) || !walk.budget.takeNode()) break
    const column = readPlateNode(value)
    if (column === null) continue
    nodes.push(column.type === 'column' ? column : { type: 'column', attributes: {}, children: [value] })
  }
  if (nodes.length === 0) return
  const given = nodes.map(({ attributes }) => readNumber(memberOf(attributes, 'width'), 100, 1))
  const widths = shareWidths(given, spot.room, GAP)
  const columns = nodes.map((column, index) => ({
    width: widths[index] ?? 0,
    verticalAlign: choiceOf(column.attributes, 'verticalAlign', ['top', 'middle', 'bottom'], 'top'),
    write: (room: number): void => walk.writeBlocks(column.children, within(within(spot), { room })),
  }))
  writeColumns(walk.parts, columns, GAP, bottom)
}

/** Writes a callout: a coloured box with an icon before its text. */
export function writeCallout(walk: PlateWalk, node: PlateNode, spot: PlateSpot, bottom: number): void {
  const own = colorOf(node.attributes, 'backgroundColor', null)
  const background = own ?? '#f1f3f5'
  // The default grey changes with the card in dark mode; an author's colour does not.
  const adaptsPanel = own === null && spot.surface.isCard
  const surface = adaptsPanel ? spot.surface : surfaceOf(background, spot.surface)
  const box = {
    background,
    margin: [0, 0, bottom, 0],
    padding: [12, 16, 12, 16],
    border: [0, 0, 0, 0],
    borderColor: background,
    borderStyle: 'solid',
    radius: [6, 6, 6, 6],
    alignment: 'left',
    ink: surface.isCard ? null : inkOf(surface).text,
    adapts: adaptsPanel && 'pl-panel',
  } as const
  const icon = textOf(node.attributes, 'icon')
  const children = icon === '' ? node.children : [{ text: `${icon} ` }, ...node.children]
  writeBox(walk.parts, box, () => walk.writeBlocks(children, within(spot, { room: spot.room - 32, surface })))
  walk.parts.text.endBlock(1)
}

/** Writes a data table; the text part has one line for each row. */
export function writeTable(walk: PlateWalk, node: PlateNode, spot: PlateSpot, bottom: number): void {
  const { html, text } = walk.parts
  if (!walk.budget.mayNest(spot.depth + 2)) return
  const columns = columnsOf(node)
  html.fixed(
    `<table role="table" width="100%" cellpadding="0" cellspacing="0" border="0" style="width:100%;margin:0 0 ${bottom}px;border-collapse:collapse;word-break:normal;overflow-wrap:break-word">\n`,
  )
  for (const value of node.children) {
    if (!walk.budget.takeNode()) break
    const row = readPlateNode(value)
    if (row === null) continue
    html.fixed('<tr>\n')
    let isFirst = true
    const cells = row.type === 'tr' ? row.children : [value]
    const firstData = cells.findIndex((child) => !isHeader(readPlateNode(child)))
    for (const [index, child] of cells.entries()) {
      if (!walk.budget.takeNode()) break
      const cell = readPlateNode(child)
      if (cell === null) continue
      if (!isFirst) text.text(' | ')
      isFirst = false
      // Header cells before the data of their row are headers of the row; others are headers of their columns.
      writeCell(walk, cell, spot, columns, index < firstData ? 'row' : 'col')
    }
    html.fixed('</tr>\n')
    text.endBlock(0)
  }
  html.fixed('</table>\n')
  text.endBlock(1)
}

/** Tables with more columns have less padding: on a phone, the padding alone would fill the width. */
const MOST_LOOSE_COLUMNS = 6

/**
 * In pixels: the padding on each side of a cell's text, the padding and borders of both sides together, and the width
 * of an average letter.
 */
type CellFit = { readonly padding: number; readonly edges: number; readonly letter: number }
const LOOSE: CellFit = { padding: 12, edges: 26, letter: 8 }
const CLOSE: CellFit = { padding: 4, edges: 10, letter: 9 }
/** The values of the class `pl-close` in the style sheet. */
const CLOSE_ON_PHONES: CellFit = { padding: 2, edges: 6, letter: 8 }

/** The least width that is assumed for the content of a cell, in pixels. */
const LEAST_ROOM = 40

/**
 * Returns the length of the longest word that fits into each of `columns`. Only longer words may break, because
 * allowing it would also break short ones.
 */
function lettersPer(columns: number, room: number, { edges, letter }: CellFit): number {
  return Math.floor((room / columns - edges) / letter)
}

function columnsOf({ children }: PlateNode): number {
  const rows = children.slice(0, MAX_ROWS_READ).map((row) => readPlateNode(row)?.children.length ?? 0)
  return Math.max(1, ...rows)
}

/** Returns the length of the longest word in nodes; variables, whose values are not known, do not count. */
function longestWord(nodes: readonly unknown[], depth = 4): number {
  return nodes.slice(0, MAX_ROWS_READ).reduce<number>((most, value) => {
    const node = readPlateNode(value)
    if (node === null) return most
    const words = textOf(node.attributes, 'text').slice(0, 2_000).split(/\s+|-/)
    const inside = depth > 0 ? longestWord(node.children, depth - 1) : 0
    return Math.max(most, inside, ...words.map((word) => word.length))
  }, 0)
}

function spanOf({ attributes }: PlateNode, name: string, attribute: string): string {
  const span = numberOf(attributes, name, 1, 100, 1)
  return span === 1 ? '' : ` ${attribute}="${span}"`
}

function isHeader(cell: PlateNode | null): boolean {
  return cell?.type === 'th'
}

function writeCell(
  walk: PlateWalk,
  cell: PlateNode,
  spot: PlateSpot,
  columns: number,
  scope: 'row' | 'col',
): void {
  const { html } = walk.parts
  const tag = isHeader(cell) ? 'th' : 'td'
  const background = colorOf(cell.attributes, 'background', colorOf(cell.attributes, 'backgroundColor', null))
  const surface = surfaceOf(background, spot.surface)
  const { line, text } = inkOf(surface)
  const own = background === null ? '' : `;background-color:${background};color:${text}`
  const spans =
    spanOf(cell, 'colSpan', 'colspan') +
    spanOf(cell, 'rowSpan', 'rowspan') +
    (tag === 'th' ? ` scope="${scope}"` : '')
  const letters = longestWord(cell.children)
  const isClose = columns > MOST_LOOSE_COLUMNS
  const [fit, onPhone] = isClose ? [CLOSE, CLOSE_ON_PHONES] : [LOOSE, LOOSE]
  const breaks = letters > lettersPer(columns, spot.room, fit) ? ';word-break:break-word' : ''
  const named = classes(
    surface.isCard && 'pl-line',
    isClose && 'pl-close',
    breaks === '' && letters > lettersPer(columns, PHONE_WIDTH, onPhone) && 'pl-long',
  )
  html.fixed(
    `<${tag}${spans}${named} align="left" valign="top" style="padding:8px ${fit.padding}px;border:1px solid ${line};text-align:left${own}${breaks}">`,
  )
  const share = Math.min(1, numberOf(cell.attributes, 'colSpan', 1, 100, 1) / columns)
  const room = Math.max(LEAST_ROOM, Math.floor(spot.room * share) - fit.edges)
  const line1 = cellLine(walk, cell, spot)
  if (line1 === null) walk.writeBlocks(cell.children, within(within(within(spot)), { surface, room }))
  else writeRuns(walk.parts, line1, { surface, room })
  html.fixed(`</${tag}>\n`)
}

/** Reads the content of a cell that is a single line, as most are; null when the cell has blocks. */
function cellLine(walk: PlateWalk, cell: PlateNode, spot: PlateSpot): Run[] | null {
  const nodes = cell.children.slice(0, 2).map(readPlateNode)
  const only = nodes[0]
  if (nodes.length === 1 && only?.type === 'p') return readLine(walk, only.children, spot.depth + 4)
  const isLine = nodes.every((node) => node !== null && INLINE_ELEMENTS.has(node.type))
  return isLine ? readLine(walk, cell.children, spot.depth + 3) : null
}
