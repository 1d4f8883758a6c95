import type { ReferenceTable } from './references.ts'
import type { UrlTemplate } from './url.ts'
import { compileUrl, isWebUrl } from './url.ts'
import { CONFIRM_VARIABLE } from './variables.ts'

/** One link as it stands in a document; `position` counts the links whose clicks can be counted. */
export interface LinkTarget {
  readonly url: UrlTemplate
  readonly position: number | null
}

const SYSTEM_VARIABLES = new Set(['unsubscribeUrl', 'onlineUrl', CONFIRM_VARIABLE])

/** The links of one email, in document order; each occurrence is a link of its own. */
export class LinkTable {
  readonly targets: LinkTarget[] = []
  hasUnsubscribe = false
  readonly #table: ReferenceTable
  #positions = 0

  constructor(table: ReferenceTable) {
    this.#table = table
  }

  /** Registers a link's address (placeholders inside); null and a warning when mail must not carry it. */
  add(source: string): number | null {
    const url = compileUrl(source)
    if (url === null) return this.#refuse(source)
    const system = this.#systemVariable(url)
    if (system === 'unsubscribeUrl') this.hasUnsubscribe = true
    const counted = system === null && (url.fixed === null ? !isMailOrPhone(url) : isWebUrl(url.fixed))
    const position = counted ? this.#positions++ : null
    return this.targets.push(Object.freeze({ url, position })) - 1
  }

  /** An address that is loaded rather than followed, such as an image's: it is a whole web address. */
  address(source: string): UrlTemplate | null {
    const isWhole = /^\s*(?:(?:https?:)?\/\/|\uFDD0)/i.test(source)
    return (isWhole ? compileUrl(source) : null) ?? this.#refuse(source)
  }

  /** Whether this reference is one of the addresses that the service makes for each recipient. */
  isUrlVariable(reference: number): boolean {
    return SYSTEM_VARIABLES.has(this.#table.references[reference]?.name ?? '')
  }

  /** Unsubscribe, confirmation and online view lead to the service itself, so wrapping them would count nothing. */
  #systemVariable(url: UrlTemplate): string | null {
    const first = url.parts[0]
    if (first === undefined || typeof first === 'string') return null
    const name = this.#table.references[first.reference]?.name ?? ''
    return SYSTEM_VARIABLES.has(name) ? name : null
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
