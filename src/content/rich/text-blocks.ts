import type { EmailParts } from '../email-parts.ts'
import { CODE_FONT, STYLE } from '../theme.ts'
import { adaptive, inkOf, type Surface } from './surface.ts'

/** How a block of text stands among its neighbours. */
export type TextBlock = {
  readonly surface: Surface
  /** '' is what the document has. */
  readonly alignment: '' | 'left' | 'center' | 'right' | 'justify'
  readonly direction: '' | 'ltr' | 'rtl'
  /** Nothing stands before it in its container, so it needs no space above. */
  readonly isFirst: boolean
  /** Nothing stands after it in its container, so it needs no space below. */
  readonly isLast: boolean
  /** How far it stands in, in pixels. */
  readonly indent?: number
  /** Blank lines after it in the text part. */
  readonly textGap: 0 | 1
}

function extraStyle(
  { alignment, direction, isFirst, isLast, indent = 0 }: TextBlock,
  hasTop: boolean,
): string {
  // The card says left, so that a block of its own direction has to say where its lines begin.
  const side = alignment === '' && direction === 'rtl' ? 'right' : alignment
  return [
    hasTop && isFirst && ';margin-top:0',
    isLast && ';margin-bottom:0',
    indent > 0 && `;padding-left:${indent}px`,
    side !== '' && `;text-align:${side}`,
    direction !== '' && `;direction:${direction}`,
  ]
    .filter((rule) => rule !== false)
    .join('')
}

/** Writes a paragraph around what `write` writes. */
export function writeParagraph(parts: EmailParts, block: TextBlock, write: () => void): void {
  const { isLast } = block
  const style = isLast ? STYLE.lastParagraph : STYLE.paragraph
  parts.html.fixed(`<p style="${style}${extraStyle({ ...block, isLast: false }, false)}">`)
  write()
  parts.html.fixed('</p>\n')
  parts.text.endBlock(block.textGap)
}

const UNDERLINES = ['=', '-']

/** Writes a heading; in the text part the first two levels are underlined. */
export function writeHeading(
  parts: EmailParts,
  level: 1 | 2 | 3 | 4 | 5 | 6,
  block: TextBlock,
  write: () => void,
): void {
  const style = STYLE.headings[level - 1] ?? STYLE.smallHeading
  parts.text.endBlock(level < 3 ? 2 : 1)
  parts.html.fixed(`<h${level} style="${style}${extraStyle(block, true)}">`)
  write()
  parts.html.fixed(`</h${level}>\n`)
  parts.text.endBlock(1, UNDERLINES[level - 1] ?? '')
}

/** Writes small print, which stands back behind the content. */
export function writeSmall(parts: EmailParts, block: TextBlock, write: () => void): void {
  const style = `${STYLE.small};color:${inkOf(block.surface).muted}${extraStyle(block, false)}`
  parts.html.fixed(`<p${adaptive(block.surface, 'pl-muted')} style="${style}">`)
  write()
  parts.html.fixed('</p>\n')
  parts.text.endBlock(block.textGap)
}

/** Writes a quotation of blocks. */
export function writeQuote(parts: EmailParts, block: TextBlock, write: () => void): void {
  const { muted, line } = inkOf(block.surface)
  const colors = block.surface.isCard ? '' : `;color:${muted};border-left-color:${line}`
  const turned =
    block.direction === 'rtl' ? `;padding:0 16px 0 0;border-left:0;border-right:3px solid ${line}` : ''
  parts.html.fixed(
    `<blockquote${adaptive(block.surface, 'pl-quote')} style="${STYLE.quote}${colors}${turned}${extraStyle(block, false)}">\n`,
  )
  parts.text.endBlock(0)
  parts.text.open('> ', '> ')
  write()
  parts.text.endBlock(0)
  parts.text.close()
  parts.html.fixed('</blockquote>\n')
  parts.text.endBlock(block.textGap)
}

/** Writes a line across the column. */
export function writeRule(parts: EmailParts, surface: Surface): void {
  const color = surface.isCard ? '' : `;background-color:${inkOf(surface).line}`
  parts.html.fixed(
    `<div${adaptive(surface, 'pl-rule')} role="separator" style="${STYLE.rule}${color}">&nbsp;</div>\n`,
  )
  parts.text.literalLine('-'.repeat(24))
  parts.text.endBlock(1)
}

/** Writes empty space, which Outlook keeps only where something stands. */
export function writeSpace(parts: EmailParts, height: number): void {
  parts.html.fixed(
    `<div style="height:${height}px;font-size:1px;line-height:${height}px;mso-line-height-rule:exactly">&nbsp;</div>\n`,
  )
  parts.text.endBlock(1)
}

/** A list that is being written. */
export type List = {
  readonly start: number | null
  /** How its items are marked, where it is not as mail programs do by themselves; a word of CSS. */
  readonly marking?: string | undefined
  /** Lists around this one. */
  readonly depth: number
  readonly block: TextBlock
}

/** Writes a list around what `write` writes by `writeItem`. */
export function writeList(parts: EmailParts, list: List, write: () => void): void {
  const tag = list.start === null ? 'ul' : 'ol'
  const start = list.start === null || list.start === 1 ? '' : ` start="${list.start}"`
  const turned = list.block.direction === 'rtl' ? ';padding:0 24px 0 0' : ''
  const marking = list.marking === undefined ? '' : `;list-style-type:${list.marking}`
  const style = (list.depth > 0 ? STYLE.nestedList : STYLE.list) + marking + turned
  parts.text.endBlock(0)
  parts.html.fixed(`<${tag}${start} style="${style}${extraStyle(list.block, false)}">\n`)
  write()
  parts.html.fixed(`</${tag}>\n`)
  parts.text.endBlock(list.depth > 0 ? 0 : list.block.textGap)
}

/** Writes one item of a list; `marker` is what the text part shows before it, a bare item brings a sign of its own. */
export function writeItem(
  parts: EmailParts,
  marker: string,
  { isBare = false }: { isBare?: boolean },
  write: () => void,
): void {
  parts.text.open(marker, ' '.repeat(marker.length))
  parts.html.fixed(`<li style="${STYLE.item}${isBare ? ';list-style-type:none' : ''}">`)
  write()
  parts.html.fixed('</li>\n')
  parts.text.endBlock(0)
  parts.text.close()
}

const CODE_BACK = 'padding:12px 16px;border-radius:6px;font-size:14px;line-height:1.5;white-space:pre-wrap'

/** Writes lines of source code as they are. */
export function writeCode(
  parts: EmailParts,
  lines: readonly string[],
  surface: Surface,
  isLast: boolean,
): void {
  const { code, codeBack } = inkOf(surface)
  const colors = `background-color:${codeBack};color:${code};font-family:${CODE_FONT}`
  parts.html.fixed(
    `<pre${adaptive(surface, 'pl-code')} style="margin:0 0 ${isLast ? 0 : 16}px;${CODE_BACK};${colors}">`,
  )
  parts.text.endBlock(1)
  for (const [index, line] of lines.entries()) {
    if (index > 0) parts.html.fixed('\n')
    parts.escaped(line)
    parts.text.literalLine(line)
  }
  parts.html.fixed('</pre>\n')
  parts.text.endBlock(1)
}
