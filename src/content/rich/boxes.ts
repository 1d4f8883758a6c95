import type { EmailParts } from '../email-parts.ts'
import type { Alignment } from './attributes.ts'
import { classes } from './surface.ts'

/** Top, right, bottom and left, in pixels. */
export type Sides = readonly [number, number, number, number]

/** A box around blocks. */
export type Box = {
  readonly background: string | null
  readonly margin: Sides
  readonly padding: Sides
  readonly border: Sides
  readonly borderColor: string
  readonly borderStyle: 'solid' | 'dashed' | 'dotted'
  readonly radius: Sides
  readonly alignment: Alignment
  readonly ink: string | null
  /** The class by which dark mode changes the box; false if it stays the same. */
  readonly adapts: string | false
}

/** Formats sides as a CSS value. */
export function sides(values: Sides): string {
  const [top, right, bottom, left] = values.map((value) => (value === 0 ? '0' : `${value}px`))
  if (top !== bottom || left !== right) return `${top} ${right} ${bottom} ${left}`
  return top === left ? `${top}` : `${top} ${right}`
}

/** Returns the width in pixels that a box leaves to its content, at least 40. */
export function innerWidth(room: number, { margin, padding, border }: Box): number {
  const taken = [margin, padding, border].reduce((sum, [, right, , left]) => sum + right + left, 0)
  return Math.max(40, room - taken)
}

/** The widest side padding in pixels that leaves enough room for text on a phone. */
const SLIM = 24

/** Returns the class that shrinks wide sides on phones, else false. */
function slimmed([, right, , left]: Sides): string | false {
  return Math.max(right, left) > SLIM && 'pl-slim'
}

/**
 * Writes a box: an outer cell for the margin, because Outlook ignores margins on tables, and an inner one for the rest.
 */
export function writeBox(parts: EmailParts, box: Box, write: () => void): void {
  const style = [
    box.background !== null && `background-color:${box.background}`,
    box.border.some((width) => width > 0) &&
      `border-style:${box.borderStyle};border-color:${box.borderColor};border-width:${sides(box.border)}`,
    box.radius.some((radius) => radius > 0) && `border-radius:${sides(box.radius)}`,
    `padding:${sides(box.padding)}`,
    box.ink !== null && `color:${box.ink}`,
    `text-align:${box.alignment}`,
  ].filter((rule) => rule !== false)
  const back = box.background === null ? '' : ` bgcolor="${box.background}"`
  parts.html.fixed(
    `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td${classes(slimmed(box.margin))} style="padding:${sides(box.margin)}"><table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="border-collapse:separate"><tr><td align="${box.alignment}"${classes(box.adapts, slimmed(box.padding))}${back} style="${style.join(';')}">\n`,
  )
  write()
  parts.html.fixed('</td></tr></table></td></tr></table>\n')
}

/** Maximum number of columns in a row; more would be too narrow to read. */
const MOST_COLUMNS = 8

/** Returns whether a row with `columns` columns takes one more; warns if not. */
export function mayAddColumn({ table }: EmailParts, columns: number): boolean {
  if (columns < MOST_COLUMNS) return true
  table.warn(
    'TOO_LARGE',
    `A row has more than ${MOST_COLUMNS} columns; what is beyond was left out. Make another row.`,
  )
  return false
}

/** A column: its share of the row in pixels, and the function that writes its content. */
export type Column = {
  readonly width: number
  readonly verticalAlign: 'top' | 'middle' | 'bottom'
  readonly write: (room: number) => void
}

/**
 * Writes columns that are side by side where there is room and stacked where there is not. They are inline blocks, so
 * this needs no style sheet. Outlook does not support inline blocks and gets a table in conditional comments.
 */
export function writeColumns(
  parts: EmailParts,
  columns: readonly Column[],
  gap: number,
  bottom: number,
): void {
  const { html } = parts
  const total = columns.reduce((sum, { width }) => sum + width, 0) + gap * Math.max(0, columns.length - 1)
  html.fixed(
    `<div style="padding:0 0 ${bottom}px;font-size:0;text-align:left">\n<!--[if mso]><table role="presentation" width="${total}" cellpadding="0" cellspacing="0" border="0"><tr><![endif]-->\n`,
  )
  for (const [index, column] of columns.entries()) {
    const before = index === 0 ? 0 : gap / 2
    const after = index === columns.length - 1 ? 0 : gap / 2
    const outer = column.width + before + after
    const padding = sides([0, after, 0, before])
    html.fixed(
      `<!--[if mso]><td width="${outer}" valign="${column.verticalAlign}" style="padding:${padding}"><![endif]--><div class="pl-column" style="display:inline-block;width:100%;max-width:${outer}px;vertical-align:${column.verticalAlign}"><table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td class="pl-cell" style="padding:${padding};font-size:16px;text-align:left">\n`,
    )
    column.write(column.width)
    parts.text.endBlock(1)
    html.fixed('</td></tr></table></div><!--[if mso]></td><![endif]-->\n')
  }
  html.fixed('<!--[if mso]></tr></table><![endif]--></div>\n')
}

/**
 * Returns column widths in pixels: given percentages are scaled down to fit the row, and the other columns share the
 * rest.
 */
export function shareWidths(given: readonly (number | null)[], room: number, gap: number): number[] {
  const space = Math.max(given.length, room - gap * Math.max(0, given.length - 1))
  const asked = given.map((percent) => (percent === null || percent <= 0 ? null : (percent / 100) * space))
  const taken = asked.reduce<number>((sum, width) => sum + (width ?? 0), 0)
  const open = asked.filter((width) => width === null).length
  // Columns without a width keep at least half of an equal share; the given widths shrink for them.
  const kept = open === 0 ? 0 : Math.max(space - taken, (space / given.length / 2) * open)
  const scale = taken > space - kept ? (space - kept) / taken : 1
  return asked.map((width) => Math.floor(width === null ? kept / open : width * scale))
}
