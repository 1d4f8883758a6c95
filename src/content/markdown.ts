import type { Mark } from './delimiters.ts'
import type { EmailParts } from './email-parts.ts'
import { type Block, type ListBlock, parseBlocks } from './markdown-blocks.ts'
import { type Inline, parseInline } from './markdown-inline.ts'
import { linkMark } from './references.ts'
import { directionOfText } from './rich/direction.ts'
import { openLink } from './rich/links.ts'
import { adaptive, CARD, inkOf, type Surface } from './rich/surface.ts'
import { writeRule } from './rich/text-blocks.ts'
import { STYLE } from './theme.ts'

const TAGS: Readonly<Record<Mark, string>> = { strong: 'strong', emphasis: 'em', strike: 's' }

/** Emphasis nested deeper is not written, because browsers handle endless nesting badly. */
const MAX_MARKS = 16

/** The output, and the surface that the content stands on. */
type Page = { readonly parts: EmailParts; readonly surface: Surface }

/** Writes the inline content of one block. */
class InlineWriter {
  readonly #parts: EmailParts
  readonly #surface: Surface
  readonly #alone: boolean
  #marks = 0
  #open: { target: number | null; mark: number } | null = null

  constructor({ parts, surface }: Page, alone: boolean) {
    this.#parts = parts
    this.#surface = surface
    this.#alone = alone
  }

  write(token: Inline): void {
    const { html, text } = this.#parts
    switch (token.type) {
      case 'text':
        return this.#parts.both(token.text)
      case 'break':
        html.fixed('<br>\n')
        return text.lineBreak()
      case 'open':
        if (this.#marks++ < MAX_MARKS) html.fixed(`<${TAGS[token.mark]}>`)
        return
      case 'close':
        if (--this.#marks < MAX_MARKS) html.fixed(`</${TAGS[token.mark]}>`)
        return
      case 'linkOpen':
        return this.#openLink(token.url)
      case 'linkClose':
        return this.#closeLink()
      case 'url':
        return this.#rawUrl(token.url, token.text)
      case 'image':
        return this.#image(token.url, token.alt)
    }
  }

  #openLink(url: string): void {
    const target = this.#parts.links.add(url)
    this.#open = { target, mark: this.#parts.text.mark }
    if (target !== null) openLink(this.#parts, target, this.#surface, null)
  }

  #closeLink(): void {
    const link = this.#open
    this.#open = null
    if (link === null || link.target === null) return
    this.#parts.html.fixed('</a>')
    this.#parts.addressAfter(link.target, link.mark, this.#alone)
  }

  #rawUrl(url: string, text: string): void {
    const target = this.#parts.links.add(url)
    if (target === null) return this.#parts.both(text)
    openLink(this.#parts, target, this.#surface, null)
    this.#parts.escaped(text)
    this.#parts.html.fixed('</a>')
    this.#parts.text.text(url.startsWith('mailto:') ? text : linkMark(target))
  }

  #image(url: string, alt: string): void {
    const address = this.#parts.links.address(url)
    this.#parts.alternative(alt)
    if (address === null) return this.#parts.escaped(alt)
    const { html } = this.#parts
    html.fixed('<img').slot({ kind: 'address', url: address, before: ' src="', after: '"' }).fixed(' alt="')
    this.#parts.escaped(alt)
    html.fixed(`" style="${STYLE.image}">`)
  }
}

/** Returns whether a block consists of one link, so that its address can follow a colon in the text part. */
function isLoneLink(tokens: readonly Inline[]): boolean {
  const first = tokens.findIndex((token) => token.type !== 'open')
  const last = tokens.findLastIndex((token) => token.type !== 'close')
  if (tokens[first]?.type !== 'linkOpen' || tokens[last]?.type !== 'linkClose') return false
  return tokens.findIndex((token) => token.type === 'linkClose') === last
}

function writeInline(page: Page, source: string): void {
  const tokens = parseInline(source, (reference) => page.parts.links.isUrlVariable(reference))
  const writer = new InlineWriter(page, isLoneLink(tokens))
  for (const token of tokens) writer.write(token)
}

/** Returns the style of a block whose first letter is of a right-to-left script, else ''. */
function turned(source: string): string {
  return directionOfText(source) === '' ? '' : ';text-align:right;direction:rtl'
}

/** Returns the beginning of the first block, which determines the direction of a list or quotation. */
function sourceOf(blocks: readonly Block[]): string {
  const [first] = blocks
  if (first === undefined || first.type === 'rule') return ''
  if (first.type === 'literal') return first.lines[0] ?? ''
  if (first.type === 'list') return sourceOf(first.items[0] ?? [])
  return first.type === 'quote' ? sourceOf(first.children) : first.source
}

function quoteStyle(children: readonly Block[], surface: Surface): string {
  const { muted, line } = inkOf(surface)
  const colors = surface.isCard ? '' : `;color:${muted};border-left-color:${line}`
  const turn = turned(sourceOf(children))
  const side = turn === '' ? '' : `;padding:0 16px 0 0;border-left:0;border-right:3px solid ${line}${turn}`
  return STYLE.quote + colors + side
}

function writeHeading(page: Page, level: number, source: string, extra = ''): void {
  const { parts } = page
  const style = STYLE.headings[level - 1]
  if (style === undefined) {
    parts.html.fixed(`<p style="${STYLE.paragraph}${turned(source)}"><strong>`)
    writeInline(page, source)
    parts.html.fixed('</strong></p>\n')
    return parts.text.endBlock(1)
  }
  parts.text.endBlock(level === 3 ? 1 : 2)
  parts.html.fixed(`<h${level} style="${style}${extra}${turned(source)}">`)
  writeInline(page, source)
  parts.html.fixed(`</h${level}>\n`)
  parts.text.endBlock(1, level === 1 ? '=' : level === 2 ? '-' : '')
}

function writeLiteral(parts: EmailParts, lines: readonly string[]): void {
  parts.html.fixed(`<p style="${STYLE.paragraph}">`)
  for (const [index, line] of lines.entries()) {
    if (index > 0) parts.html.fixed('<br>\n')
    parts.escaped(line)
    parts.text.literalLine(line)
  }
  parts.html.fixed('</p>\n')
  parts.text.endBlock(1)
}

function writeList(page: Page, list: ListBlock, depth: number): void {
  const { parts } = page
  const tag = list.start === null ? 'ul' : 'ol'
  const start = list.start === null || list.start === 1 ? '' : ` start="${list.start}"`
  const turn = turned(sourceOf([list]))
  const side = turn === '' ? '' : `;padding:0 24px 0 0${turn}`
  parts.html.fixed(`<${tag}${start} style="${depth > 0 ? STYLE.nestedList : STYLE.list}${side}">\n`)
  for (const [index, item] of list.items.entries()) {
    const marker = list.start === null ? '- ' : `${list.start + index}. `
    parts.text.open(marker, ' '.repeat(marker.length))
    parts.html.fixed(`<li style="${STYLE.item}">`)
    for (const block of item) writeItemBlock(page, block, list.tight, depth + 1)
    parts.html.fixed('</li>\n')
    parts.text.endBlock(list.tight ? 0 : 1)
    parts.text.close()
  }
  parts.html.fixed(`</${tag}>\n`)
  parts.text.endBlock(depth > 0 && list.tight ? 0 : 1)
}

/** In a tight list a paragraph is only its text. */
function writeItemBlock(page: Page, block: Block, tight: boolean, depth: number): void {
  if (!tight || block.type !== 'paragraph') return writeBlock(page, block, depth)
  writeInline(page, block.source)
  page.parts.text.endBlock(0)
}

function writeBlock(page: Page, block: Block, depth: number): void {
  const { parts, surface } = page
  switch (block.type) {
    case 'heading':
      return writeHeading(page, block.level, block.source)
    case 'paragraph':
      parts.html.fixed(`<p style="${STYLE.paragraph}${turned(block.source)}">`)
      writeInline(page, block.source)
      parts.html.fixed('</p>\n')
      return parts.text.endBlock(1)
    case 'literal':
      return writeLiteral(parts, block.lines)
    case 'rule':
      return writeRule(parts, surface)
    case 'list':
      return writeList(page, block, depth)
    case 'quote':
      parts.html.fixed(
        `<blockquote${adaptive(surface, 'pl-quote')} style="${quoteStyle(block.children, surface)}">\n`,
      )
      parts.text.open('> ', '> ')
      for (const child of block.children) writeBlock(page, child, depth)
      parts.text.endBlock(0)
      parts.text.close()
      parts.html.fixed('</blockquote>\n')
      return parts.text.endBlock(1)
  }
}

/** Writes a Markdown source, whose variables are already placeholders, as HTML and text in one walk. */
export function writeMarkdown(parts: EmailParts, source: string, surface: Surface = CARD): void {
  const page = { parts, surface }
  const [first, ...rest] = parseBlocks(source)
  if (first?.type === 'heading') writeHeading(page, first.level, first.source, ';margin-top:0')
  else if (first !== undefined) writeBlock(page, first, 0)
  for (const block of rest) writeBlock(page, block, 0)
}
