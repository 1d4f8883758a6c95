import { DOCUMENT_LIMITS } from '../../../schema/document.ts'
import type { ReferenceTable } from '../references.ts'

/**
 * Limits what one document may cost to render: nodes, and characters of all its texts together. Snippets that appear
 * many times, and objects that contain themselves, use it up as well.
 */
export class Budget {
  readonly #table: ReferenceTable
  #nodes = DOCUMENT_LIMITS.nodes
  #characters: number = DOCUMENT_LIMITS.bytes

  constructor(table: ReferenceTable) {
    this.#table = table
  }

  /** Takes one node from the budget. Returns false, with a warning, when none is left. */
  takeNode(): boolean {
    this.#nodes -= 1
    if (this.#nodes < 0) this.#warn(`has more than ${DOCUMENT_LIMITS.nodes} nodes`)
    return this.#nodes >= 0
  }

  /** Returns whether nodes may nest this deep; warns if not. */
  mayNest(depth: number): boolean {
    if (depth > DOCUMENT_LIMITS.depth) this.#warn(`is nested deeper than ${DOCUMENT_LIMITS.depth} nodes`)
    return depth <= DOCUMENT_LIMITS.depth
  }

  /** Returns as much of a text as the budget allows, with its variables as placeholders. */
  read(text: string, options?: Parameters<ReferenceTable['extract']>[1]): string {
    if (text === '') return ''
    const kept = text.slice(0, Math.max(0, this.#characters))
    this.#characters -= text.length
    if (kept.length < text.length) this.#warn(`has more than ${DOCUMENT_LIMITS.bytes} characters`)
    return this.#table.extract(kept, options)
  }

  #warn(what: string): void {
    this.#table.warn('TOO_LARGE', `The document ${what}; what is beyond was left out. Shorten it.`)
  }
}
