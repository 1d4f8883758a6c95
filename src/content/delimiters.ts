/** A kind of emphasis. */
export type Mark = 'strong' | 'emphasis' | 'strike'

/**
 * A run of `*`, `_` or `~`: the marks it closes, the number of characters left as text, and the marks it opens
 * (innermost last).
 */
export type DelimiterRun = {
  readonly type: 'delimiter'
  readonly character: string
  remaining: number
  readonly closes: Mark[]
  readonly opens: Mark[]
}

/** An entry of the delimiter stack: a run that may still open or close emphasis. */
export type Delimiter = {
  readonly run: DelimiterRun
  readonly serial: number
  readonly length: number
  readonly canOpen: boolean
  readonly canClose: boolean
  previous: Delimiter | null
  next: Delimiter | null
}

/** Runs beyond this number are text, which bounds memory; no real paragraph has as many. */
const MAX_RUNS = 10_000
const WHITESPACE = /\s/
const PUNCTUATION = /[\p{P}\p{S}]/u

function characterBefore(source: string, index: number): string {
  if (index === 0) return '\n'
  const unit = source.charCodeAt(index - 1)
  const isTrail = unit >= 0xdc00 && unit < 0xe000 && index > 1
  return source.slice(isTrail ? index - 2 : index - 1, index)
}

function characterAt(source: string, index: number): string {
  const code = source.codePointAt(index)
  return code === undefined ? '\n' : String.fromCodePoint(code)
}

/**
 * Applies CommonMark's flanking rules: returns whether the run from `start` to `end` may open and may close emphasis.
 */
function flanking(source: string, start: number, end: number): { canOpen: boolean; canClose: boolean } {
  const before = characterBefore(source, start)
  const after = characterAt(source, end)
  const spaceBefore = WHITESPACE.test(before)
  const spaceAfter = WHITESPACE.test(after)
  const punctuationBefore = PUNCTUATION.test(before)
  const punctuationAfter = PUNCTUATION.test(after)
  const left = !spaceAfter && (!punctuationAfter || spaceBefore || punctuationBefore)
  const right = !spaceBefore && (!punctuationBefore || spaceAfter || punctuationAfter)
  if (source.charAt(start) !== '_') return { canOpen: left, canClose: right }
  return { canOpen: left && (!right || punctuationBefore), canClose: right && (!left || punctuationAfter) }
}

/** The delimiter stack of one paragraph. Pairs runs by CommonMark's rules in linear time. */
export class DelimiterStack {
  #last: Delimiter | null = null
  #serial = 0

  get last(): Delimiter | null {
    return this.#last
  }

  /** Adds the run from `start` to `end`. Returns null when it can neither open nor close emphasis and is plain text. */
  push(source: string, start: number, end: number): DelimiterRun | null {
    const length = end - start
    const character = source.charAt(start)
    if ((character === '~' && length !== 2) || this.#serial >= MAX_RUNS) return null
    const { canOpen, canClose } = flanking(source, start, end)
    if (!canOpen && !canClose) return null
    const run: DelimiterRun = { type: 'delimiter', character, remaining: length, closes: [], opens: [] }
    const previous = this.#last
    const serial = this.#serial++
    const delimiter: Delimiter = { run, serial, length, canOpen, canClose, previous, next: null }
    if (previous !== null) previous.next = delimiter
    this.#last = delimiter
    return run
  }

  /** Pairs all runs after `bottom` and removes them from the stack. */
  pair(bottom: Delimiter | null): void {
    // No opener with a serial below the floor matches a closer of that kind. Not searching there keeps this linear.
    const floors = new Map<string, number>()
    let closer = this.#firstAfter(bottom)
    while (closer !== null) {
      if (!closer.canClose) {
        closer = closer.next
        continue
      }
      const kind = `${closer.run.character}${closer.canOpen ? 1 : 0}${closer.length % 3}`
      const opener = findOpener(closer, bottom, floors.get(kind) ?? -1)
      closer = opener === null ? this.#leave(closer, floors, kind) : this.#match(opener, closer)
    }
    this.#truncate(bottom)
  }

  #firstAfter(bottom: Delimiter | null): Delimiter | null {
    let first = this.#last
    if (first === bottom) return null
    while (first !== null && first.previous !== bottom) first = first.previous
    return first
  }

  #leave(closer: Delimiter, floors: Map<string, number>, kind: string): Delimiter | null {
    const next = closer.next
    floors.set(kind, closer.serial)
    if (!closer.canOpen) this.#remove(closer)
    return next
  }

  #match(opener: Delimiter, closer: Delimiter): Delimiter | null {
    const isDouble = opener.run.remaining >= 2 && closer.run.remaining >= 2
    const mark = closer.run.character === '~' ? 'strike' : isDouble ? 'strong' : 'emphasis'
    opener.run.opens.push(mark)
    closer.run.closes.push(mark)
    opener.run.remaining -= isDouble ? 2 : 1
    closer.run.remaining -= isDouble ? 2 : 1
    opener.next = closer
    closer.previous = opener
    if (opener.run.remaining === 0) this.#remove(opener)
    if (closer.run.remaining > 0) return closer
    const next = closer.next
    this.#remove(closer)
    return next
  }

  #remove(delimiter: Delimiter): void {
    if (delimiter.previous !== null) delimiter.previous.next = delimiter.next
    if (delimiter.next === null) this.#last = delimiter.previous
    else delimiter.next.previous = delimiter.previous
  }

  #truncate(bottom: Delimiter | null): void {
    this.#last = bottom
    if (bottom !== null) bottom.next = null
  }
}

function findOpener(closer: Delimiter, bottom: Delimiter | null, floor: number): Delimiter | null {
  let opener = closer.previous
  while (opener !== null && opener !== bottom && opener.serial >= floor) {
    const { character } = opener.run
    if (character === closer.run.character && opener.canOpen && !isOddMatch(opener, closer)) return opener
    opener = opener.previous
  }
  return null
}

/** Applies CommonMark's rule of three: in `**a*b**`, a double run must not pair with a single one. */
function isOddMatch(opener: Delimiter, closer: Delimiter): boolean {
  if (!closer.canOpen && !opener.canClose) return false
  return closer.length % 3 !== 0 && (opener.length + closer.length) % 3 === 0
}
