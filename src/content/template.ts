import type { Condition } from './conditions.ts'
import type { UrlTemplate } from './url.ts'

/**
 * A place in an email that is filled for each recipient. `html`: text or a quoted attribute's value;
 * `plain`: a header or the text part; `css`: a style's value; `address`: a whole URL attribute that is
 * never counted; `link` and `plainLink`: the address of `targets[target]`; `pixel`: the address that counts an open;
 * `when`: a part for some people only; `each`: a part that repeats for the items of a list.
 * `before` and `after` surround the address and are left out with it when its URL is not safe.
 */
export type Slot =
  | { readonly kind: 'html' | 'plain' | 'css'; readonly reference: number }
  | { readonly kind: 'address'; readonly url: UrlTemplate; readonly before: string; readonly after: string }
  | { readonly kind: 'link'; readonly target: number; readonly before: string; readonly after: string }
  | { readonly kind: 'plainLink'; readonly target: number; readonly before: string; readonly after: string }
  | { readonly kind: 'pixel'; readonly before: string; readonly after: string }
  | (Part & { readonly body: Template })

/**
 * A part of an email that not everybody sees, or not once. Its HTML and its text are two templates of the
 * same part; `id` tells that they are. `list` is the name of the variable that holds the list.
 */
export type Part =
  | { readonly kind: 'when'; readonly condition: Condition }
  | { readonly kind: 'each'; readonly id: number; readonly list: string }

/** The picture that counts an open; nothing where opens are not counted. */
export const PIXEL: Slot = Object.freeze({
  kind: 'pixel',
  before: '<img src="',
  after: '" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0;overflow:hidden">',
})

/** Fixed text around slots: `statics` has one entry more than `slots`. */
export type Template = {
  readonly statics: readonly string[]
  readonly slots: readonly Slot[]
}

/** Collects a template in writing order; neighbouring fixed texts become one. */
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

  /** Begins a part; what is written until `close` belongs to it. */
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
 * The same text with a byte for each character where that is possible. What was cut out of a text with wider characters
 * stays wide, and so does all that is joined with it, which doubles the memory of every email and the time to write it.
 */
export function narrow(text: string): string {
  if (text === '') return text
  // oxlint-disable-next-line no-control-regex -- ASCII is what this is about
  return /^[\u0000-\u007f]*$/.test(text) ? Buffer.from(text, 'latin1').toString('latin1') : text
}
