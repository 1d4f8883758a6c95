import type { Condition } from './conditions.ts'
import type { UrlTemplate } from './url.ts'

/**
 * A place in an email that is filled for each recipient:
 * - `html`: text or the value of a quoted attribute
 * - `plain`: text of a header or of the text part
 * - `bracketed`: text of the text part in brackets
 * - `css`: a value in a style
 * - `address`: a URL attribute that is never counted
 * - `link`, `plainLink`: the address of `targets[target]`
 * - `pixel`: the address of the open pixel
 * - `when`: a part for some recipients only
 * - `each`: a part that repeats for the items of a list
 * `before` and `after` surround a value or address. They are left out with an empty value and an unsafe address.
 */
export type Slot =
  | { readonly kind: 'html' | 'plain' | 'css'; readonly reference: number }
  | {
      readonly kind: 'bracketed'
      readonly reference: number
      readonly before: string
      readonly after: string
    }
  | { readonly kind: 'address'; readonly url: UrlTemplate; readonly before: string; readonly after: string }
  | { readonly kind: 'link'; readonly target: number; readonly before: string; readonly after: string }
  | { readonly kind: 'plainLink'; readonly target: number; readonly before: string; readonly after: string }
  | { readonly kind: 'pixel'; readonly before: string; readonly after: string }
  | (Part & { readonly body: Template })

/**
 * A part of an email that is conditional or repeats. Its HTML and its text are separate templates; those of a repeated
 * part share its `id`. `list` is the name of the variable that holds the list.
 */
export type Part =
  | { readonly kind: 'when'; readonly condition: Condition }
  | { readonly kind: 'each'; readonly id: number; readonly list: string }

/** The open pixel; left out where opens are not counted. */
export const PIXEL: Slot = Object.freeze({
  kind: 'pixel',
  before: '<img src="',
  after: '" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0;overflow:hidden">',
})

/** Fixed texts and the slots between them: `statics` has one entry more than `slots`. */
export type Template = {
  readonly statics: readonly string[]
  readonly slots: readonly Slot[]
}

/** Builds a template in writing order; joins neighbouring fixed texts. */
export class TemplateBuilder {
  #statics: string[] = []
  #slots: Slot[] = []
  #fixed = ''
  readonly #outer: { statics: string[]; slots: Slot[] }[] = []

  fixed(text: string): this {
    this.#fixed += text
    return this
  }

  slot(slot: Slot): this {
    this.#statics.push(this.#fixed)
    this.#slots.push(Object.freeze(slot))
    this.#fixed = ''
    return this
  }

  /** Begins a part; everything written until `close` belongs to it. */
  open(): this {
    this.#statics.push(this.#fixed)
    this.#outer.push({ statics: this.#statics, slots: this.#slots })
    this.#start([], [])
    return this
  }

  close(part: Part): this {
    const body = this.build()
    const outer = this.#outer.pop()
    if (outer === undefined) return this
    this.#start(outer.statics, outer.slots)
    this.#slots.push(Object.freeze({ ...part, body }))
    return this
  }

  build(): Template {
    return Object.freeze({
      statics: Object.freeze([...this.#statics, this.#fixed].map(narrow)),
      slots: Object.freeze([...this.#slots]),
    })
  }

  #start(statics: string[], slots: Slot[]): void {
    this.#statics = statics
    this.#slots = slots
    this.#fixed = ''
  }
}

/**
 * Returns the same text stored with one byte per character if it is ASCII. A substring of a two-byte string stays
 * two-byte, and so does everything joined with it, which would double the memory and writing time of every email.
 */
export function narrow(text: string): string {
  if (text === '') return text
  // oxlint-disable-next-line no-control-regex -- ASCII is what this is about
  return /^[\u0000-\u007f]*$/.test(text) ? Buffer.from(text, 'latin1').toString('latin1') : text
}
