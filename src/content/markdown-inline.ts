import { type Delimiter, type DelimiterRun, type Mark, DelimiterStack } from './delimiters.ts'
import { decodeMarkdown } from './escape.ts'
import { readAngleLink, readCodeSpan, readLinkTail, readRawUrl, runLengths } from './markdown-links.ts'
import { isShown } from './rich/images.ts'
import { isBlankText } from './seen.ts'

/**
 * A token of inline content. Tokens are flat and well nested, so writing them needs no recursion however deep an author
 * nests.
 */
export type Inline =
  | { readonly type: 'text'; text: string }
  | { readonly type: 'break' }
  | { readonly type: 'open' | 'close'; readonly mark: Mark }
  | { readonly type: 'linkOpen'; readonly url: string }
  | { readonly type: 'linkClose' }
  | { readonly type: 'url'; readonly url: string; readonly text: string }
  | { readonly type: 'image'; readonly url: string; readonly alt: string }

type Node = Inline | DelimiterRun

/** A `[` or `![` that may become a link or an image. */
type Bracket = {
  readonly image: boolean
  readonly node: number
  readonly bottom: Delimiter | null
}

const SPECIAL = /[\\`*_[\]<&\n]|~~+|!\[|\uFDD0\d+\uFDD1|https?:\/\/|www\./gi
/** Brackets beyond this number are text; no real sentence has as many open at once. */
const MAX_BRACKETS = 256
const ENTITY = /&(?:#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});/y
const ESCAPABLE = /[!-/:-@[-`{-~]/

class InlineReader {
  readonly #source: string
  readonly #isUrlVariable: (reference: number) => boolean
  readonly #nodes: Node[] = []
  readonly #delimiters = new DelimiterStack()
  readonly #brackets: Bracket[] = []
  /** Open brackets below this stack height cannot become links because a link follows them: links do not nest. */
  #inactive = 0
  #runs: ReadonlyMap<number, number> | null = null
  #at = 0

  constructor(source: string, isUrlVariable: (reference: number) => boolean) {
    this.#source = source
    this.#isUrlVariable = isUrlVariable
  }

  read(): Inline[] {
    const special = new RegExp(SPECIAL)
    while (this.#at < this.#source.length) {
      special.lastIndex = this.#at
      const match = special.exec(this.#source)
      this.#text(this.#source.slice(this.#at, match?.index))
      if (match === null) break
      this.#at = match.index
      this.#special(match[0])
    }
    this.#delimiters.pair(null)
    return flattened(this.#nodes)
  }

  /** Appends text to a text node before it, so that a hostile source does not become a million nodes. */
  #text(text: string): void {
    if (text === '') return
    const last = this.#nodes.at(-1)
    const isBracket = this.#nodes.length - 1 === this.#brackets.at(-1)?.node
    if (last?.type !== 'text' || isBracket) this.#nodes.push({ type: 'text', text })
    else last.text += text
  }

  /** Adds the next `length` characters as text. */
  #literal(length: number): void {
    this.#text(this.#source.slice(this.#at, this.#at + length))
    this.#at += length
  }

  #special(found: string): void {
    switch (found.charAt(0)) {
      case '\\':
        return this.#escape()
      case '`':
        return this.#code()
      case '*':
      case '_':
      case '~':
        return this.#delimiter()
      case '[':
      case '!':
        return this.#openBracket(found)
      case ']':
        return this.#closeBracket()
      case '<':
        return this.#angle()
      case '&':
        return this.#entity()
      case '\n':
        return this.#newline()
      case '\uFDD0':
        return this.#variable(found)
      default:
        return this.#rawUrl(found)
    }
  }

  #escape(): void {
    const next = this.#source.charAt(this.#at + 1)
    if (next === '\n') {
      this.#nodes.push({ type: 'break' })
      this.#at += 2
      return
    }
    if (!ESCAPABLE.test(next)) return this.#literal(1)
    this.#at += 1
    this.#literal(1)
  }

  /** Reads a code span as literal text without its backticks; code has no style of its own here. */
  #code(): void {
    this.#runs ??= runLengths(this.#source)
    const span = readCodeSpan(this.#source, this.#at, this.#runs)
    if (span === null) {
      let length = 1
      while (this.#source.charAt(this.#at + length) === '`') length += 1
      return this.#literal(length)
    }
    this.#text(span.text)
    this.#at = span.end
  }

  #delimiter(): void {
    const character = this.#source.charAt(this.#at)
    let end = this.#at + 1
    while (this.#source.charAt(end) === character) end += 1
    const run = this.#delimiters.push(this.#source, this.#at, end)
    if (run === null) return this.#literal(end - this.#at)
    this.#nodes.push(run)
    this.#at = end
  }

  #openBracket(found: string): void {
    if (this.#brackets.length >= MAX_BRACKETS) return this.#literal(found.length)
    const bottom = this.#delimiters.last
    this.#nodes.push({ type: 'text', text: found })
    this.#brackets.push({ image: found.length === 2, node: this.#nodes.length - 1, bottom })
    this.#at += found.length
  }

  #closeBracket(): void {
    const bracket = this.#brackets.pop()
    const height = this.#brackets.length
    const active = bracket !== undefined && (bracket.image || height >= this.#inactive)
    this.#inactive = Math.min(this.#inactive, height)
    const tail = active ? readLinkTail(this.#source, this.#at + 1) : null
    if (bracket === undefined || tail === null) return this.#literal(1)
    this.#at = tail.end
    this.#delimiters.pair(bracket.bottom)
    const url = unescape(tail.destination)
    if (bracket.image) return this.#image(bracket, url)
    this.#inactive = height
    this.#link(bracket, url)
  }

  #image(bracket: Bracket, url: string): void {
    const alt = this.#nodes.splice(bracket.node).slice(1).map(plainText).join('')
    this.#nodes.push({ type: 'image', url, alt })
  }

  /**
   * Closes a link. Raw addresses in its text become text because links do not nest. A link with no visible text is
   * dropped.
   */
  #link(bracket: Bracket, url: string): void {
    const nodes = this.#nodes
    const inside = nodes.slice(bracket.node + 1)
    if (!inside.some(isSeen)) {
      nodes[bracket.node] = { type: 'text', text: '' }
      return
    }
    nodes[bracket.node] = { type: 'linkOpen', url }
    for (let index = bracket.node + 1; index < nodes.length; index += 1) {
      const node = nodes[index]
      if (node?.type === 'url') nodes[index] = { type: 'text', text: node.text }
    }
    nodes.push({ type: 'linkClose' })
  }

  #angle(): void {
    const link = readAngleLink(this.#source, this.#at)
    if (link === null) return this.#literal(1)
    this.#nodes.push({ type: 'url', url: link.url, text: link.text })
    this.#at = link.end
  }

  #entity(): void {
    ENTITY.lastIndex = this.#at
    const entity = ENTITY.exec(this.#source)?.[0]
    if (entity === undefined) return this.#literal(1)
    this.#text(decodeMarkdown(entity))
    this.#at += entity.length
  }

  /** Reads a line end: a break after two spaces, otherwise a space. */
  #newline(): void {
    const last = this.#nodes.at(-1)
    const isBreak = this.#source.slice(Math.max(0, this.#at - 2), this.#at) === '  '
    if (isBreak && last?.type === 'text') last.text = last.text.trimEnd()
    if (isBreak) this.#nodes.push({ type: 'break' })
    else this.#text('\n')
    this.#at += 1
    while (this.#source.charAt(this.#at) === ' ') this.#at += 1
  }

  #variable(found: string): void {
    if (!this.#isUrlVariable(Number(found.slice(1, -1)))) return this.#literal(found.length)
    this.#nodes.push({ type: 'url', url: found, text: found })
    this.#at += found.length
  }

  #rawUrl(found: string): void {
    const raw = readRawUrl(this.#source, this.#at)
    if (raw === null) return this.#literal(found.length)
    if (raw.url === null) return this.#literal(raw.end - this.#at)
    this.#nodes.push({ type: 'url', url: raw.url, text: raw.url })
    this.#at = raw.end
  }
}

function unescape(text: string): string {
  return decodeMarkdown(text.replaceAll(/\\([!-/:-@[-`{-~])/g, '$1'))
}

/** Returns whether readers see something of a node. */
function isSeen(node: Node): boolean {
  return node.type === 'image' ? isShown({ src: node.url, alt: node.alt }) : !isBlankText(plainText(node))
}

/** Returns a node's text without formatting, for the alternative text of images. */
function plainText(node: Node): string {
  switch (node.type) {
    case 'text':
    case 'url':
      return node.text
    case 'image':
      return node.alt
    case 'break':
      return ' '
    case 'delimiter':
      return node.character.repeat(node.remaining)
    default:
      return ''
  }
}

/**
 * Replaces each delimiter run with the marks it closes, its remaining text and the marks it opens; joins neighbouring
 * texts.
 */
function flattened(nodes: readonly Node[]): Inline[] {
  const tokens: Inline[] = []
  let text = ''
  const push = (token: Inline): void => {
    if (text !== '') tokens.push({ type: 'text', text })
    text = ''
    tokens.push(token)
  }
  for (const node of nodes) {
    if (node.type === 'text') {
      text += node.text
    } else if (node.type !== 'delimiter') {
      push(node)
    } else {
      for (const mark of node.closes) push({ type: 'close', mark })
      text += node.character.repeat(node.remaining)
      for (const mark of node.opens.toReversed()) push({ type: 'open', mark })
    }
  }
  if (text !== '') tokens.push({ type: 'text', text })
  return tokens
}

/** Parses the inline content of one block; `isUrlVariable` returns whether a variable is a link by itself. */
export function parseInline(source: string, isUrlVariable: (reference: number) => boolean): Inline[] {
  return new InlineReader(source, isUrlVariable).read()
}
