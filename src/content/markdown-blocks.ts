/** A block of a Markdown document; `source` is inline Markdown, and `lines` are shown literally. */
export type Block =
  | { readonly type: 'heading'; readonly level: number; readonly source: string }
  | { readonly type: 'paragraph'; readonly source: string }
  | { readonly type: 'literal'; readonly lines: readonly string[] }
  | { readonly type: 'rule' }
  | { readonly type: 'quote'; readonly children: readonly Block[] }
  | ListBlock

/** A list; the items of a tight list are not separated like paragraphs. `start` is null for bullets. */
export type ListBlock = {
  readonly type: 'list'
  readonly start: number | null
  readonly tight: boolean
  readonly items: readonly (readonly Block[])[]
}

/** The blocks of one container; `spread` is true when a blank line separates two of them. */
type Blocks = {
  readonly blocks: Block[]
  readonly spread: boolean
}

/** Quotes and lists nest at most this deep, which bounds time and stack; deeper ones are flattened. */
const MAX_DEPTH = 12

const HEADING = /^ {0,3}(#{1,6})(?: |$)/
const FENCE = /^ {0,3}(?:(`{3,})[^`]*$|(~{3,}))/
const QUOTE = /^ {0,3}> ?/
const MARKER = /^( {0,3})(?:([-*+])|(\d{1,9})([.)]))( +|$)/
const SETEXT = /^ {0,3}(=+|-+) *$/
const TABLE_RULE = /^[\s:|-]+$/

type Marker = {
  readonly kind: string
  readonly start: number | null
  /** The column where the item's own content begins. */
  readonly offset: number
  readonly empty: boolean
}

function isBlank(line: string): boolean {
  return line.trim() === ''
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

function isRule(line: string): boolean {
  const first = line.trimStart().charAt(0)
  if ((first !== '-' && first !== '*' && first !== '_') || indentOf(line) > 3) return false
  const bare = line.replaceAll(' ', '')
  return bare.length >= 3 && bare === first.repeat(bare.length)
}

function readMarker(line: string): Marker | null {
  const match = MARKER.exec(line)
  if (match === null || isRule(line)) return null
  const [whole, , bullet, digits, delimiter, spaces = ''] = match
  const empty = whole.length === line.length
  const padding = empty || spaces.length > 4 ? 1 : spaces.length
  return {
    kind: bullet ?? delimiter ?? '',
    start: digits === undefined ? null : Number(digits),
    offset: whole.length - spaces.length + padding,
    empty,
  }
}

/** Returns whether the line ends a paragraph before it. */
function interrupts(line: string): boolean {
  if (HEADING.test(line) || FENCE.test(line) || QUOTE.test(line) || isRule(line)) return true
  const marker = readMarker(line)
  return marker !== null && !marker.empty && (marker.start ?? 1) === 1
}

/** Returns whether a line, after the quote and list markers it begins with, is text that the next line may continue. */
function isOpenText(line: string): boolean {
  let text = line
  for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
    const quote = QUOTE.exec(text)
    const marker = quote === null ? readMarker(text) : null
    if (quote === null && marker === null) break
    text = text.slice(quote === null ? marker?.offset : quote[0].length)
  }
  return !isBlank(text) && !HEADING.test(text) && !FENCE.test(text) && !isRule(text)
}

/**
 * Returns whether the line lacks its container's marker but still continues the paragraph inside it (a lazy
 * continuation line).
 */
function isLazy(previous: string, line: string): boolean {
  return isOpenText(previous) && !interrupts(line) && readMarker(line) === null && !SETEXT.test(line)
}

class BlockReader {
  readonly #lines: readonly string[]
  readonly #depth: number
  #at = 0

  constructor(lines: readonly string[], depth: number) {
    this.#lines = lines
    this.#depth = depth
  }

  read(): Blocks {
    const blocks: Block[] = []
    let spread = false
    let blank = false
    while (this.#at < this.#lines.length) {
      if (isBlank(this.#line())) {
        blank = true
        this.#at += 1
        continue
      }
      if (blank && blocks.length > 0) spread = true
      blocks.push(this.#block())
      blank = isBlank(this.#lines[this.#at - 1] ?? '')
    }
    return { blocks, spread }
  }

  #line(): string {
    return this.#lines[this.#at] ?? ''
  }

  #block(): Block {
    const line = this.#line()
    const fence = FENCE.exec(line)
    if (fence !== null) return this.#fence(fence[1] ?? fence[2] ?? '', indentOf(line))
    if (HEADING.test(line)) return this.#heading()
    if (isRule(line)) {
      this.#at += 1
      return { type: 'rule' }
    }
    if (QUOTE.test(line)) return this.#quote()
    const marker = this.#depth < MAX_DEPTH ? readMarker(line) : null
    return marker === null ? this.#paragraph() : this.#list(marker)
  }

  #heading(): Block {
    const line = this.#line().trim()
    this.#at += 1
    const level = HEADING.exec(line)?.[1]?.length ?? 1
    let end = line.length
    while (line.charAt(end - 1) === '#') end -= 1
    const closed = end <= level || line.charAt(end - 1) === ' '
    return {
      type: 'heading',
      level,
      source: line.slice(level, closed ? Math.max(end, level) : undefined).trim(),
    }
  }

  #fence(mark: string, indent: number): Block {
    const lines: string[] = []
    this.#at += 1
    for (; this.#at < this.#lines.length; this.#at += 1) {
      const line = this.#line()
      const match = FENCE.exec(line)
      const close = match?.[1] ?? match?.[2] ?? ''
      if (close.startsWith(mark) && line.trim() === close) {
        this.#at += 1
        break
      }
      lines.push(line.slice(Math.min(indent, indentOf(line))))
    }
    return { type: 'literal', lines }
  }

  #quote(): Block {
    const inner: string[] = []
    for (; this.#at < this.#lines.length; this.#at += 1) {
      const line = this.#line()
      const mark = QUOTE.exec(line)
      if (mark === null && (isBlank(line) || !isLazy(inner.at(-1) ?? '', line))) break
      inner.push(mark === null ? line : line.slice(mark[0].length))
    }
    if (this.#depth < MAX_DEPTH) {
      return { type: 'quote', children: new BlockReader(inner, this.#depth + 1).read().blocks }
    }
    const flat = inner.map((line) => line.replace(/^[ >]+/, ''))
    return { type: 'paragraph', source: joinLines(flat) }
  }

  #list(first: Marker): ListBlock {
    const items: Block[][] = []
    let tight = true
    let blankBefore = false
    while (this.#at < this.#lines.length) {
      const marker = readMarker(this.#line())
      if (marker === null || marker.kind !== first.kind) break
      if (blankBefore) tight = false
      const lines = this.#item(marker)
      let end = lines.length
      while (end > 1 && isBlank(lines[end - 1] ?? '')) end -= 1
      blankBefore = end < lines.length
      const { blocks, spread } = new BlockReader(lines.slice(0, end), this.#depth + 1).read()
      if (spread) tight = false
      items.push(blocks)
    }
    return { type: 'list', start: first.start, tight, items }
  }

  /** Returns the lines of one item without its indentation, including the blank lines after it. */
  #item(marker: Marker): string[] {
    const lines = [this.#line().slice(marker.offset)]
    for (this.#at += 1; this.#at < this.#lines.length; this.#at += 1) {
      const line = this.#line()
      if (isBlank(line)) lines.push('')
      else if (marker.empty && lines.length > 1 && isBlank(lines[1] ?? '')) break
      else if (indentOf(line) >= marker.offset) lines.push(line.slice(marker.offset))
      else if (isLazy(lines.at(-1) ?? '', line)) lines.push(line)
      else break
    }
    return lines
  }

  #paragraph(): Block {
    const lines = [this.#line()]
    for (this.#at += 1; this.#at < this.#lines.length; this.#at += 1) {
      const line = this.#line()
      if (isBlank(line)) break
      const underline = SETEXT.exec(line)
      if (underline !== null) {
        this.#at += 1
        return { type: 'heading', level: underline[1]?.startsWith('=') ? 1 : 2, source: joinLines(lines) }
      }
      if (interrupts(line)) break
      lines.push(line)
    }
    return { type: 'paragraph', source: joinLines(lines) }
  }
}

/** Joins the lines of a paragraph. Tables are not supported, but their rows stay on separate lines. */
function joinLines(lines: readonly string[]): string {
  let source = ''
  let wasRow = false
  for (const [index, line] of lines.entries()) {
    const text = line.trimStart()
    const isRow = text.startsWith('|')
    if (isRow && text.includes('-') && TABLE_RULE.test(text)) continue
    if (index > 0) source += isRow || wasRow ? '  \n' : '\n'
    source += text
    wasRow = isRow
  }
  return source.trimEnd()
}

/** Replaces tabs with spaces up to the next column that is a multiple of four. */
function expandTabs(line: string): string {
  if (!line.includes('\t')) return line
  const [first = '', ...rest] = line.split('\t')
  let expanded = first
  let column = first.length
  for (const part of rest) {
    const padding = 4 - (column % 4)
    expanded += ' '.repeat(padding) + part
    column += padding + part.length
  }
  return expanded
}

/**
 * Parses the blocks of a Markdown document in linear time, by CommonMark's rules for the block types that mail
 * supports.
 */
export function parseBlocks(source: string): Block[] {
  return new BlockReader(source.split('\n').map(expandTabs), 0).read().blocks
}
