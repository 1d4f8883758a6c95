function names(text: string): ReadonlySet<string> {
  return new Set(text.split(' '))
}

/** Elements without content and end tag: the void elements of HTML, and obsolete ones that browsers treat alike. */
const VOID_ELEMENTS: ReadonlySet<string> = names(
  'area base br col embed hr img input link meta source track wbr basefont bgsound frame keygen param',
)

const ENTRY_ENDS = names('dt dd')
const CELL_ENDS = names('td th tr tbody tfoot')
const SECTION_ENDS = names('tbody tfoot')

/** Elements whose end tag may be omitted, and the start tags that then end them (HTML standard, section 13.1.2.4). */
const ENDED_BY: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  [
    'p',
    names(
      'address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form ' +
        'h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary table tbody td tfoot th tr ul',
    ),
  ],
  ['li', names('li')],
  ['dt', ENTRY_ENDS],
  ['dd', ENTRY_ENDS],
  ['td', CELL_ENDS],
  ['th', CELL_ENDS],
  ['tr', names('tr tbody tfoot')],
  ['thead', SECTION_ENDS],
  ['tbody', SECTION_ENDS],
  ['tfoot', SECTION_ENDS],
  ['head', names('body')],
])

/**
 * The stack of open elements of an HTML source, each with a value that is derived from its parent's. Every call takes
 * constant time on average, also for end tags without an open element.
 */
export class OpenElements<Value> {
  readonly #root: Value
  readonly #onClose: (name: string) => void
  readonly #elements: { readonly name: string; readonly value: Value }[] = []
  readonly #counts = new Map<string, number>()

  /** `root` is the value outside of all elements. `onClose` is called for each element that ends, innermost first. */
  constructor(root: Value, onClose: (name: string) => void = () => {}) {
    this.#root = root
    this.#onClose = onClose
  }

  /** The value of the innermost open element. */
  get value(): Value {
    return this.#elements.at(-1)?.value ?? this.#root
  }

  /** Opens an element, after closing those that its start tag ends. Returns its value, made by `valueIn`. */
  open(name: string, valueIn: (parent: Value) => Value): Value {
    while (ENDED_BY.get(this.#elements.at(-1)?.name ?? '')?.has(name) === true) this.#pop()
    const value = valueIn(this.value)
    if (VOID_ELEMENTS.has(name)) return value
    this.#elements.push({ name, value })
    this.#counts.set(name, this.#count(name) + 1)
    return value
  }

  /** Closes the innermost element of this name and all inside it. Returns its value; null when none is open. */
  close(name: string): Value | null {
    if (!this.has(name)) return null
    for (let last = this.#pop(); last !== undefined; last = this.#pop()) {
      if (last.name === name) return last.value
    }
    return null
  }

  /** Closes all elements. */
  closeAll(): void {
    while (this.#elements.length > 0) this.#pop()
  }

  /** Returns whether an element of this name is open. */
  has(name: string): boolean {
    return this.#count(name) > 0
  }

  #pop(): { readonly name: string; readonly value: Value } | undefined {
    const last = this.#elements.pop()
    if (last === undefined) return undefined
    this.#counts.set(last.name, this.#count(last.name) - 1)
    this.#onClose(last.name)
    return last
  }

  #count(name: string): number {
    return this.#counts.get(name) ?? 0
  }
}
