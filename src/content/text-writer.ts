import { isPartMark, MARK, partMark } from './references.ts'

/** The width that lines are wrapped to; words (and so addresses) are never broken. */
const COLUMNS = 78
const VARIABLE_WIDTH = 10
const ADDRESS_WIDTH = 40
const MAX_PREFIXES = 12

type Prefix = {
  first: string | null
  readonly rest: string
}

/** Estimates the width of a text whose variables and addresses are not filled yet. */
function estimatedWidth(text: string): number {
  if (!/[\uFDD0\uFDD2]/.test(text)) return text.length
  return text.replace(MARK, (_mark, reference?: string) =>
    'x'.repeat(reference === undefined ? ADDRESS_WIDTH : VARIABLE_WIDTH),
  ).length
}

/** Breaks one line at spaces. */
function wrapLine(line: string, columns: number): string[] {
  const words = line.split(' ').filter((word) => word !== '')
  const lines: string[] = []
  let current: string[] = []
  let width = -1
  for (const word of words) {
    const wordWidth = estimatedWidth(word)
    if (current.length > 0 && width + 1 + wordWidth > columns) {
      lines.push(current.join(' '))
      current = []
      width = -1
    }
    current.push(word)
    width += 1 + wordWidth
  }
  if (current.length > 0 || lines.length === 0) lines.push(current.join(' '))
  return lines
}

/** Writes the text part: collects inline text, wraps it when its block ends, and indents it for its containers. */
export class TextWriter {
  readonly #lines: string[] = []
  readonly #prefixes: Prefix[] = []
  #inline: string[] = []
  /** The number of inline pieces in the blocks that have ended. */
  #ended = 0
  #depth = 0
  #gap = 0

  /** Adds running text; any white space becomes a single space. */
  text(text: string): void {
    this.#inline.push(text.replaceAll(/[ \t\n\r\f]+/g, ' '))
  }

  lineBreak(): void {
    this.#inline.push('\n')
  }

  /** Adds a separate line as it is, neither joined nor wrapped. */
  literalLine(line: string): void {
    this.endBlock(0)
    this.#writeLine(line.trimEnd())
  }

  /** The number of inline pieces so far; pass it to `since` to read the text added after it. */
  get mark(): number {
    return this.#ended + this.#inline.length
  }

  /** Returns the text that was added to the open block after `mark`, trimmed. */
  since(mark: number): string {
    return this.#inline.slice(this.#placeOf(mark)).join('').trim()
  }

  /** Replaces the text that was added to the open block after `mark`. */
  replaceSince(mark: number, text: string): void {
    this.#inline.length = this.#placeOf(mark)
    this.#inline.push(text)
  }

  /** Returns the place of `mark` in the open block, which is its beginning if a block has ended since. */
  #placeOf(mark: number): number {
    return Math.min(Math.max(0, mark - this.#ended), this.#inline.length)
  }

  /** Ends a block. At least `gap` blank lines come before the next one; `underline` is repeated below the block. */
  endBlock(gap: number, underline = ''): void {
    const text = this.#inline
      .join('')
      .replaceAll(/ {2,}/g, ' ')
      .replaceAll(/ ?\n ?/g, '\n')
      .trim()
    this.#ended += this.#inline.length
    this.#inline = []
    if (text !== '') this.#writeBlock(text, underline)
    this.#gap = Math.max(this.#gap, gap)
  }

  /** Opens a container: `first` comes before its first line, `rest` before the others. */
  open(first: string, rest: string): void {
    this.#depth += 1
    if (this.#depth <= MAX_PREFIXES) this.#prefixes.push({ first, rest })
  }

  close(): void {
    if (this.#depth <= MAX_PREFIXES) this.#prefixes.pop()
    this.#depth = Math.max(0, this.#depth - 1)
  }

  /**
   * Begins a part that may be hidden or repeat. Blank lines before its first line are written inside it, so they are
   * hidden with it.
   */
  openPart(index: number, gap: number): void {
    this.endBlock(gap)
    this.#lines.push(partMark(index))
  }

  closePart(): void {
    this.endBlock(0)
    this.#lines.push(partMark(null))
  }

  #writeBlock(text: string, underline: string): void {
    const columns = COLUMNS - this.#prefixes.reduce((width, prefix) => width + prefix.rest.length, 0)
    const lines = text.split('\n').flatMap((line) => wrapLine(line, columns))
    for (const line of lines) this.#writeLine(line)
    if (underline === '') return
    // The width of values is not known, so they count as nothing: an underline that is too short looks better than one
    // that is too long.
    const width = Math.max(...lines.slice(0, 8).map((line) => line.replace(MARK, '').length))
    this.#writeLine(underline.repeat(Math.max(3, Math.min(width, columns))))
  }

  #writeLine(line: string): void {
    const blank = this.#prefixes.map((prefix) => (prefix.first === null ? prefix.rest : '')).join('')
    if (this.#lines.length > 0) for (; this.#gap > 0; this.#gap -= 1) this.#lines.push(blank.trimEnd())
    this.#gap = 0
    const before = this.#prefixes.map((prefix) => prefix.first ?? prefix.rest).join('')
    for (const prefix of this.#prefixes) prefix.first = null
    this.#lines.push((before + line).trimEnd())
  }

  toString(): string {
    this.endBlock(0)
    let text = ''
    for (const line of this.#lines) text += text === '' || isPartMark(line) ? line : `\n${line}`
    return `${text}\n`
  }
}
