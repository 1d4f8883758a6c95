import type { UrlTemplate } from './url.ts'

/**
 * A place in an email that is filled for each recipient. `html`: text or a quoted attribute's value;
 * `plain`: a header or the text part; `css`: a style's value; `address`: a whole URL attribute that is
 * never counted; `link` and `plainLink`: the address of `targets[target]`; `pixel`: the open pixel.
 * `before` and `after` surround the address and are left out with it when its URL is not safe.
 */
export type Slot =
  | { readonly kind: 'html' | 'plain' | 'css'; readonly reference: number }
  | { readonly kind: 'address'; readonly url: UrlTemplate; readonly before: string; readonly after: string }
  | { readonly kind: 'link'; readonly target: number; readonly before: string; readonly after: string }
  | { readonly kind: 'plainLink'; readonly target: number; readonly before: string; readonly after: string }
  | { readonly kind: 'pixel' }

/** Fixed text around slots: `statics` has one entry more than `slots`. */
export interface Template {
  readonly statics: readonly string[]
  readonly slots: readonly Slot[]
}

/** Collects a template in writing order; neighbouring fixed texts become one. */
export class TemplateBuilder {
  readonly #statics: string[] = []
  readonly #slots: Slot[] = []
  #fixed = ''

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

  build(): Template {
    return Object.freeze({
      statics: Object.freeze([...this.#statics, this.#fixed]),
      slots: Object.freeze([...this.#slots]),
    })
  }
}
