import type { EmailParts } from '../email-parts.ts'
import { CODE_FONT, STYLE } from '../theme.ts'
import { adaptive, inkOf, type Surface } from './surface.ts'

/** The look of a text block and its place among its neighbours. */
export type TextBlock = {
  readonly surface: Surface
  /** '' means the document's default. */
  readonly alignment: '' | 'left' | 'center' | 'right' | 'justify'
  readonly direction: '' | 'ltr' | 'rtl'
  /** The block needs no space above, usually because it is the first in its container. */
  readonly isFirst: boolean
  /** The block needs no space below, usually because it is the last in its container. */
  readonly isLast: boolean
  /** The indentation in pixels. */
  readonly indent?: number
  /** Blank lines after it in the text part. */
  readonly textGap: 0 | 1
}

function extraStyle(
  { alignment, direction, isFirst, isLast, indent = 0 }: TextBlock,
  hasTop: boolean,
): string {
  // The card is aligned left, so a right-to-left block needs its own alignment.
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

/** Writes a heading; the text part underlines the first two levels. */
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

/** Writes small print, in a smaller size and a muted colour. */
export function writeSmall(parts: EmailParts, block: TextBlock, write: () => void): void {
  const style = `${STYLE.small};color:${inkOf(block.surface).muted}${extraStyle(block, false)}`
  parts.html.fixed(`<p${adaptive(block.surface, 'pl-muted')} style="${style}">`)
  write()
  parts.html.fixed('</p>\n')
  parts.text.endBlock(block.textGap)
}

/** Writes a quotation around what `write` writes. */
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

/** Writes a horizontal rule. */
export function writeRule(parts: EmailParts, surface: Surface): void {
  const color = surface.isCard ? '' : `;background-color:${inkOf(surface).line}`
  parts.html.fixed(
    `<div${adaptive(surface, 'pl-rule')} role="separator" style="${STYLE.rule}${color}">&nbsp;</div>\n`,
  )
  parts.text.literalLine('-'.repeat(24))
  parts.text.endBlock(1)
}

/** Writes empty space. It has a character in it because Outlook collapses empty elements. */
export function writeSpace(parts: EmailParts, height: number): void {
  parts.html.fixed(
    `<div style="height:${height}px;font-size:1px;line-height:${height}px;mso-line-height-rule:exactly">&nbsp;</div>\n`,
  )
  parts.text.endBlock(1)
}

/** The properties of a list; `start` is null for bullets. */
export type List = {
  readonly start: number | null
  /** The CSS list style, where it differs from the default. */
  readonly marking?: string | undefined
  /** The number of lists around this one. */
  readonly depth: number
  readonly block: TextBlock
}

/** Writes a list; `write` writes its items with `writeItem`. */
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

/**
 * Writes one item of a list. `marker` comes before it in the text part; a bare item has no marker in the HTML because
 * its content begins with one.
 */
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

/** Writes lines of source code unchanged. */
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
