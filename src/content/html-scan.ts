/** One attribute of a start tag; `from` and `to` are its range in the source, including name and quotes. */
export type HtmlAttribute = {
  readonly name: string
  readonly value: string
  readonly quote: '"' | "'" | ''
  readonly hasValue: boolean
  readonly from: number
  readonly to: number
}

/** The start tag of an element; `from` is its index in the source. */
export type StartTag = {
  readonly type: 'start'
  readonly name: string
  readonly raw: string
  readonly from: number
  readonly attributes: readonly HtmlAttribute[]
}

/**
 * A piece of an HTML source; the `raw` texts of all pieces together are the source. A `content` token is the content of
 * an element whose text is not HTML. A conditional comment (for Outlook) has its content in `inner`.
 */
export type HtmlToken =
  | { readonly type: 'text' | 'declaration'; readonly raw: string }
  | { readonly type: 'comment'; readonly raw: string; readonly inner: string | null }
  | { readonly type: 'content'; readonly element: string; readonly raw: string }
  | { readonly type: 'end'; readonly name: string; readonly raw: string }
  | StartTag

const TAG_NAME = /<(\/?)([A-Za-z][^\s/>]*)/y
const SPACE = /[\s/]*/y
const ATTRIBUTE_NAME = /=?[^\s/>=]*/y
const EQUALS = /\s*=\s*/y
const UNQUOTED = /[^\s>]*/y
const EMPTY_COMMENT = /<!---?>/y
const COMMENT_END = /--!?>/g
const CONDITIONAL = /^<!--\[if[^\]]*\]>([^]*)<!\[endif\]-->$/i
const TEXT_ONLY = new Set(['script', 'style', 'title', 'textarea', 'xmp', 'iframe', 'noembed', 'noframes'])

/**
 * Tokenizes HTML as browsers do (WHATWG 13.2.5), as far as mail needs it: in linear time, without rejecting anything.
 */
class HtmlScanner {
  readonly #source: string
  readonly #tokens: HtmlToken[] = []
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  scan(): HtmlToken[] {
    let textFrom = 0
    while (this.#at < this.#source.length) {
      const open = this.#source.indexOf('<', this.#at)
      if (open < 0) break
      if (!/[A-Za-z/!?]/.test(this.#source.charAt(open + 1))) {
        this.#at = open + 1
        continue
      }
      if (open > textFrom) this.#tokens.push({ type: 'text', raw: this.#source.slice(textFrom, open) })
      this.#at = open
      this.#markup()
      textFrom = this.#at
    }
    if (textFrom < this.#source.length) this.#tokens.push({ type: 'text', raw: this.#source.slice(textFrom) })
    return this.#tokens
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#source)
    if (match !== null) this.#at += match[0].length
    return match
  }

  #markup(): void {
    const from = this.#at
    if (this.#source.startsWith('<!--', from)) return this.#comment(from)
    const tag = this.#match(TAG_NAME)
    if (tag === null) {
      const end = this.#source.indexOf('>', from)
      this.#at = end < 0 ? this.#source.length : end + 1
      this.#tokens.push({ type: 'declaration', raw: this.#source.slice(from, this.#at) })
      return
    }
    const name = (tag[2] ?? '').toLowerCase()
    const attributes = this.#attributes()
    const raw = this.#source.slice(from, this.#at)
    if (tag[1] === '/') {
      this.#tokens.push({ type: 'end', name, raw })
      return
    }
    this.#tokens.push({ type: 'start', name, raw, from, attributes })
    if (TEXT_ONLY.has(name)) this.#content(name)
  }

  #comment(from: number): void {
    if (this.#match(EMPTY_COMMENT) === null) {
      const end = new RegExp(COMMENT_END)
      end.lastIndex = from + 4
      const match = end.exec(this.#source)
      this.#at = match === null ? this.#source.length : end.lastIndex
    }
    const raw = this.#source.slice(from, this.#at)
    this.#tokens.push({ type: 'comment', raw, inner: CONDITIONAL.exec(raw)?.[1] ?? null })
  }

  #content(element: string): void {
    const close = new RegExp(`</${element}(?=[\\s/>])`, 'gi')
    close.lastIndex = this.#at
    const end = close.exec(this.#source)?.index ?? this.#source.length
    if (end > this.#at)
      this.#tokens.push({ type: 'content', element, raw: this.#source.slice(this.#at, end) })
    this.#at = end
  }

  #attributes(): HtmlAttribute[] {
    const attributes: HtmlAttribute[] = []
    while (this.#at < this.#source.length) {
      this.#match(SPACE)
      if (this.#source.charAt(this.#at) === '>') break
      const from = this.#at
      const name = (this.#match(ATTRIBUTE_NAME)?.[0] ?? '').toLowerCase()
      const hasValue = this.#match(EQUALS) !== null
      const { value, quote } = hasValue ? this.#value() : { value: '', quote: '' as const }
      if (this.#at > from) attributes.push({ name, value, quote, hasValue, from, to: this.#at })
    }
    this.#at = Math.min(this.#at + 1, this.#source.length)
    return attributes
  }

  #value(): { value: string; quote: '"' | "'" | '' } {
    const quote = this.#source.charAt(this.#at)
    if (quote !== '"' && quote !== "'") return { value: this.#match(UNQUOTED)?.[0] ?? '', quote: '' }
    const from = this.#at + 1
    const close = this.#source.indexOf(quote, from)
    const to = close < 0 ? this.#source.length : close
    this.#at = Math.min(to + 1, this.#source.length)
    return { value: this.#source.slice(from, to), quote }
  }
}

/** Returns the tokens of an HTML source in order. */
export function scanHtml(source: string): HtmlToken[] {
  return new HtmlScanner(source).scan()
}
