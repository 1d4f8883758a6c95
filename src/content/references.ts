import { flatten, isVariableName, SERVICE_VARIABLES } from './variables.ts'

/** A variable of a document: its name, and the text shown for an empty value. */
export type VariableReference = {
  readonly name: string
  readonly fallback: string
  /** Set in a repeated part, where the item's members take precedence over the recipient's values. */
  readonly isItem?: true
}

/** The kinds of warnings; see docs/content.md. */
export type WarningCode =
  | 'UNKNOWN_VARIABLE'
  | 'MALFORMED_VARIABLE'
  | 'MISPLACED_VARIABLE'
  | 'UNSAFE_URL'
  | 'LARGE'
  | 'INVALID_DOCUMENT'
  | 'TOO_LARGE'
  | 'UNKNOWN_NODE'
  | 'MISSING_ADDRESS'
  | 'INVALID_CONDITION'
  | 'HIDDEN_UNSUBSCRIBE_LINK'
  | 'EMPTY_REPEAT'
  | 'MISSING_SNIPPET'
  | 'ARCHIVED_SNIPPET'
  | 'REMOVED_HTML'

/** Something an author should know about a document; `code` is for programs, `message` for people. */
export type ContentWarning = {
  readonly code: WarningCode
  readonly message: string
}

// Before parsing, each variable is replaced by its index between two Unicode noncharacters, so that no parser sees its
// pipes, quotes and spaces. In the text part, links and parts (conditional or repeated) are marked in the same way.
// Sources and values never contain these characters: `clean` and `flatten` replace them.
const REFERENCE_OPEN = '\uFDD0'
const REFERENCE_CLOSE = '\uFDD1'
const LINK_OPEN = '\uFDD2'
const LINK_CLOSE = '\uFDD3'
const PART_OPEN = '\uFDD4'
const PART_CLOSE = '\uFDD5'

/** Returns the placeholder of a variable reference in the text part; its value is in brackets, unless it is empty. */
export function bracketedMark(index: number): string {
  return `${REFERENCE_OPEN}${index}[${REFERENCE_CLOSE}`
}

/** Returns the placeholder of a variable reference. */
export function referenceMark(index: number): string {
  return `${REFERENCE_OPEN}${index}${REFERENCE_CLOSE}`
}

/** The punctuation written with an address in the text part; it is left out when the address is dropped. */
export type AddressDress = '' | '(' | ':'

/** Returns the placeholder of a link's address in the text part: bare, in parentheses, or after a colon. */
export function linkMark(index: number, dress: AddressDress = ''): string {
  return `${LINK_OPEN}${index}${dress}${LINK_CLOSE}`
}

/** Returns the mark for the beginning of a part (its index), or for the end of the part that began last (null). */
export function partMark(index: number | null): string {
  return `${PART_OPEN}${index ?? ''}${PART_CLOSE}`
}

/** Returns whether a line of the text part is the beginning or end of a part rather than text. */
export function isPartMark(line: string): boolean {
  return line.startsWith(PART_OPEN)
}

/**
 * Matches any placeholder: group 1 is a reference's index, 2 its bracket, 3 and 4 are a link's index and dress, 5 is a
 * part's index (empty at its end).
 */
export const MARK: RegExp = /\uFDD0(\d+)(\[?)\uFDD1|\uFDD2(\d+)([(:]?)\uFDD3|\uFDD4(\d*)\uFDD5/g

/** Splits text at its reference placeholders into strings and reference indexes, in order. */
export function splitReferences(text: string): (string | number)[] {
  if (!text.includes(REFERENCE_OPEN)) return text === '' ? [] : [text]
  const parts: (string | number)[] = []
  let from = 0
  for (const match of text.matchAll(MARK)) {
    if (match.index > from) parts.push(text.slice(from, match.index))
    if (match[1] !== undefined) parts.push(Number(match[1]))
    from = match.index + match[0].length
  }
  if (from < text.length) parts.push(text.slice(from))
  return parts
}

/** Returns whether the text contains a variable. */
export function hasReference(text: string): boolean {
  return text.includes(REFERENCE_OPEN)
}

const MAX_WARNINGS = 50
const MAX_PLAIN = 1_000
const VARIABLE = /\{\{([^{}\n]*)\}\}/g
const CURLY_QUOTES: Readonly<Record<string, string>> = { "'": "'", '"': '"', '‘': '’', '“': '”' }

/** Reads the inside of `{{…}}`: a name, optionally followed by `|` and a quoted fallback. Null when malformed. */
function readReference(body: string): VariableReference | null {
  const bar = body.indexOf('|')
  const name = (bar < 0 ? body : body.slice(0, bar)).trim()
  if (!isVariableName(name)) return null
  if (bar < 0) return { name, fallback: '' }
  const quoted = body.slice(bar + 1).trim()
  const close = CURLY_QUOTES[quoted.charAt(0)]
  if (close === undefined || quoted.length < 2 || !quoted.endsWith(close)) return null
  const fallback = quoted.slice(1, -1).replaceAll(/\\(['"\\])/g, '$1')
  return { name, fallback: flatten(fallback) }
}

/** Returns whether an odd number of backslashes before the character at `index` escapes it. */
function isEscaped(source: string, index: number): boolean {
  let count = 0
  while (source.charAt(index - 1 - count) === '\\') count += 1
  return count % 2 === 1
}

/** How variables of a source are read: Markdown has the escape `\{{`, and HTML may write fallbacks with entities. */
export type ExtractOptions = {
  readonly backslashEscapes?: boolean
  readonly decode?: (text: string) => string
}

/** Collects the warnings of one email, and its distinct variables. */
export class ReferenceTable {
  readonly references: VariableReference[] = []
  readonly warnings: ContentWarning[] = []
  readonly #indexes = new Map<string, number>()
  readonly #warned = new Set<string>()
  /** The ids of the repeated parts around the writer's place, outermost first. */
  readonly repeats: number[] = []
  /** The names of the lists that parts repeat for, without lists inside items. */
  readonly lists = new Set<string>()

  add({ name, fallback }: VariableReference): number {
    const isItem = this.repeats.length > 0 && !SERVICE_VARIABLES.has(name)
    const key = `${isItem}|${name}|${fallback}`
    const known = this.#indexes.get(key)
    if (known !== undefined) return known
    const index = this.references.push(Object.freeze({ name, fallback, ...(isItem && { isItem }) })) - 1
    this.#indexes.set(key, index)
    return index
  }

  warn(code: ContentWarning['code'], message: string): void {
    if (this.#warned.size >= MAX_WARNINGS || this.#warned.has(message)) return
    this.#warned.add(message)
    this.warnings.push(Object.freeze({ code, message }))
  }

  /** Cleans a document's text that has no variables and is not markup; returns it on one line. */
  plain(text: string): string {
    return flatten(clean(text.slice(0, MAX_PLAIN)))
  }

  /** Returns a text as its author wrote it, shortened, for messages. */
  describe(text: string): string {
    const written = splitReferences(text.slice(0, 200)).map((part) => {
      if (typeof part === 'string') return part
      return `{{${this.references[part]?.name ?? ''}}}`
    })
    return flatten(written.join(''))
  }

  /** Returns the source with each variable replaced by its placeholder. Malformed ones stay, with a warning. */
  extract(source: string, options: ExtractOptions = {}): string {
    const { backslashEscapes = false, decode } = options
    return clean(source).replace(VARIABLE, (whole, body: string, offset: number, all: string) => {
      if (backslashEscapes && isEscaped(all, offset)) return whole
      const reference = readReference(decode === undefined ? body : decode(body))
      if (reference !== null) return referenceMark(this.add(reference))
      this.warn(
        'MALFORMED_VARIABLE',
        `${whole.slice(0, 80)} is not a variable and stays as text; write {{name}} or {{name | 'fallback'}}.`,
      )
      return whole
    })
  }
}

/** Normalizes line ends to `\n` and replaces NUL, lone surrogates and placeholder characters. */
function clean(source: string): string {
  return source
    .toWellFormed()
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/[\0\uFDD0-\uFDD5]/g, '\uFFFD')
}
