import type { ReferenceTable } from './references.ts'
import { type UrlTemplate, compileLoaded, compileUrl, isWebUrl } from './url.ts'
import { SERVICE_VARIABLES } from './variables.ts'

/** One link of a document; `position` numbers the links whose clicks can be counted and is null for the others. */
export type LinkTarget = {
  readonly url: UrlTemplate
  readonly position: number | null
  /** The repeated part that contains the link: each item gets a link position of its own when it is filled. */
  readonly repeat?: number
}

/** The links of one email in document order. Each occurrence of an address is a link of its own. */
export class LinkTable {
  readonly targets: LinkTarget[] = []
  /** Whether there is an unsubscribe link that every recipient sees. */
  hasUnsubscribe = false
  /** The number of conditional and repeated parts around the current place. */
  parts = 0
  readonly #table: ReferenceTable
  #positions = 0

  constructor(table: ReferenceTable) {
    this.#table = table
  }

  /**
   * Registers a link's address, which may contain placeholders. Returns its target index, or null with a warning when
   * the address is not safe in mail. `isSeen` says whether the link has visible content.
   */
  add(source: string, isSeen = true): number | null {
    const url = compileUrl(source)
    if (url === null) return this.#refuse(source)
    const system = this.#systemVariable(url)
    if (system === 'unsubscribeUrl') this.#noteUnsubscribe(isSeen)
    const counted = system === null && (url.fixed === null ? !isMailOrPhone(url) : isWebUrl(url.fixed))
    const repeat = this.#table.repeats.at(-1)
    const position = counted && repeat === undefined ? this.#positions++ : null
    return (
      this.targets.push(
        Object.freeze({ url, position, ...(system === null && repeat !== undefined && { repeat }) }),
      ) - 1
    )
  }

  /**
   * Compiles an address that is loaded rather than followed, such as an image's. It must be a whole web address;
   * otherwise returns null with a warning.
   */
  address(source: string): UrlTemplate | null {
    return compileLoaded(source) ?? this.#refuse(source)
  }

  /** Returns whether the reference is one of the addresses that the service makes for each recipient. */
  isUrlVariable(reference: number): boolean {
    return SERVICE_VARIABLES.has(this.#table.references[reference]?.name ?? '')
  }

  /**
   * Returns the service variable that an address begins with, or that is all of it but a scheme; null for other
   * addresses. Such links lead to the service itself, so their clicks are not counted.
   */
  #systemVariable({ parts: [first, second] }: UrlTemplate): string | null {
    const variable = typeof second === 'object' && second.as === 'site' ? second : first
    if (typeof variable !== 'object') return null
    const name = this.#table.references[variable.reference]?.name ?? ''
    return SERVICE_VARIABLES.has(name) ? name : null
  }

  #noteUnsubscribe(isSeen: boolean): void {
    if (!isSeen) {
      this.#table.warn(
        'HIDDEN_UNSUBSCRIBE_LINK',
        'An unsubscribe link has no text or picture that is seen, so it does not count; give it a text that no style hides.',
      )
    } else if (this.parts === 0) this.hasUnsubscribe = true
    else {
      this.#table.warn(
        'HIDDEN_UNSUBSCRIBE_LINK',
        'An unsubscribe link stands in a block that not everybody sees, so it does not count; put one outside of conditions and repeats.',
      )
    }
  }

  #refuse(source: string): null {
    const shown = this.#table.describe(source).slice(0, 80)
    this.#table.warn(
      'UNSAFE_URL',
      `The address "${shown}" was left out; start it with https://, http://, mailto: or tel:.`,
    )
    return null
  }
}

function isMailOrPhone(url: UrlTemplate): boolean {
  const first = url.parts[0]
  return typeof first === 'string' && /^\s*(?:mailto|tel):/i.test(first)
}
