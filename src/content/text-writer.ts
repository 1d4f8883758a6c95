import { isPartMark, MARK, partMark } from './references.ts'

/** The widest line that is wrapped to; words (and so addresses) are never broken. */
const COLUMNS = 78
const VARIABLE_WIDTH = 10
const ADDRESS_WIDTH = 40
const MAX_PREFIXES = 12

type Prefix = {
  first: string | null
  readonly rest: string
}

/** How wide a text will be, as far as that is known before variables and addresses are filled. */
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

/** Writes the text part: inline text is collected, wrapped when its block ends, and indented by its containers. */
export class TextWriter {
  readonly #lines: string[] = []
  readonly #prefixes: Prefix[] = []
  #inline: string[] = []
  #depth = 0
  #gap = 0

  /** Adds running text; white space of any length counts as one space. */
  text(text: string): void {
    this.#inline.push(text.replaceAll(/[ \t\n\r\f]+/g, ' '))
  }

  lineBreak(): void {
    this.#inline.push('\n')
  }

  /** Adds an own line as it is, neither joined nor wrapped. */
  literalLine(line: string): void {
    this.endBlock(0)
    this.#writeLine(line.trimEnd())
  }

  /** How much of the open block there is; pass it to `since` to read what was added after. */
  get mark(): number {
    return this.#inline.length
  }

  /** The running text added after `mark`, trimmed. */
  since(mark: number): string {
    return this.#inline.slice(mark).join('').trim()
  }

  /** Takes back what was added after `mark` and writes this instead. */
  replaceSince(mark: number, text: string): void {
    this.#inline.length = Math.min(mark, this.#inline.length)
    this.#inline.push(text)
  }

  /** Ends a block. `gap` blank lines will stand before the next one; `underline` repeats under it. */
  endBlock(gap: number, underline = ''): void {
    const text = this.#inline
      .join('')
      .replaceAll(/ {2,}/g, ' ')
      .replaceAll(/ ?\n ?/g, '\n')
      .trim()
    this.#inline = []
    if (text !== '') this.#writeBlock(text, underline)
    this.#gap = Math.max(this.#gap, gap)
  }

  /** Opens a container: `first` stands before its first line, `rest` before the others. */
  open(first: string, rest: string): void {
    this.#depth += 1
    if (this.#depth <= MAX_PREFIXES) this.#prefixes.push({ first, rest })
  }

  close(): void {
    if (this.#depth <= MAX_PREFIXES) this.#prefixes.pop()
    this.#depth = Math.max(0, this.#depth - 1)
  }

  /** Begins a part that may be hidden or repeat. Blank lines before its first line belong to it, and go with it. */
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
    // A value's width is not known yet; a line that is too short looks meant, one too long does not.
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
