import type { Condition } from './conditions.ts'
import { escapeHtml } from './escape.ts'
import type { LinkTable } from './links.ts'
import { bracketedMark, linkMark, MARK, splitReferences, type ReferenceTable } from './references.ts'
import { type Part, type Template, TemplateBuilder } from './template.ts'
import { TextWriter } from './text-writer.ts'
import { isWebUrl } from './url.ts'

/** Collects the HTML part and the text part of one email, which are written in the same walk of the document. */
export class EmailParts {
  readonly html = new TemplateBuilder()
  readonly text = new TextWriter()
  readonly table: ReferenceTable
  readonly links: LinkTable
  readonly #parts: Part[] = []

  constructor(table: ReferenceTable, links: LinkTable) {
    this.table = table
    this.links = links
  }

  /** Writes text with variables to the HTML part, escaped for HTML text and quoted attributes. */
  escaped(text: string): void {
    for (const part of splitReferences(text)) {
      if (typeof part === 'string') this.html.fixed(escapeHtml(part))
      else this.html.slot({ kind: 'html', reference: part })
    }
  }

  /** Writes the same text to both parts. */
  both(text: string): void {
    this.escaped(text)
    this.text.text(text)
  }

  /**
   * Writes an image's alternative text in brackets to the text part. One of variables alone gets brackets around each
   * value, and none around an empty one.
   */
  alternative(alt: string): void {
    const parts = splitReferences(alt.trim())
    if (parts.some((part) => typeof part === 'string' && part.trim() !== '')) {
      return this.text.text(`[${alt.trim()}]`)
    }
    this.text.text(parts.map((part) => (typeof part === 'number' ? bracketedMark(part) : part)).join(''))
  }

  /** Writes a part that shows only under a condition. In the text part it has lines of its own. */
  when(condition: Condition, write: () => void): void {
    this.#part(Object.freeze({ kind: 'when', condition: Object.freeze(condition) }), 0, write)
  }

  /** Writes a part that repeats for each item of the list in the variable `list`. */
  each(list: string, write: () => void): void {
    const id = this.#parts.length
    if (this.table.repeats.length === 0) this.table.lists.add(list)
    this.table.repeats.push(id)
    this.#part(Object.freeze({ kind: 'each', id, list }), 1, write)
    this.table.repeats.pop()
  }

  #part(part: Part, gap: number, write: () => void): void {
    const index = this.#parts.push(part) - 1
    this.links.parts += 1
    this.html.open()
    this.text.openPart(index, gap)
    write()
    this.text.closePart()
    this.html.close(part)
    this.links.parts -= 1
  }

  /** Builds the text part, with slots for its variables and addresses. */
  buildText(): Template {
    const builder = new TemplateBuilder()
    const text = this.text.toString()
    const open: Part[] = []
    let from = 0
    for (const match of text.matchAll(MARK)) {
      builder.fixed(text.slice(from, match.index))
      const [mark, reference, bracket, target, dress, part] = match
      if (part !== undefined) this.#buildPart(builder, open, part)
      else if (bracket === '[')
        builder.slot({ kind: 'bracketed', reference: Number(reference), before: '[', after: ']' })
      else if (reference !== undefined) builder.slot({ kind: 'plain', reference: Number(reference) })
      else {
        const before = dress === '(' ? '(' : dress === ':' ? ': ' : ''
        builder.slot({ kind: 'plainLink', target: Number(target), before, after: dress === '(' ? ')' : '' })
      }
      from = match.index + mark.length
    }
    return builder.fixed(text.slice(from)).build()
  }

  /** Handles a part mark: one with an index begins that part, one without ends the part that began last. */
  #buildPart(builder: TemplateBuilder, open: Part[], index: string): void {
    const part = index === '' ? open.pop() : this.#parts[Number(index)]
    if (part === undefined) return
    if (index === '') builder.close(part)
    else {
      open.push(part)
      builder.open()
    }
  }

  /**
   * Writes a link's address to the text part, after the link's text (which began at `mark`), unless the text is the
   * address. `alone` says that the block contains nothing but the link.
   */
  addressAfter(target: number, mark: number, alone: boolean): void {
    const text = this.text.since(mark)
    // The spaces keep the address apart from the words around the link.
    if (text === '') return this.text.text(` ${linkMark(target)} `)
    const url = this.links.targets[target]?.url.fixed ?? null
    if (isSameAddress(text, url))
      return this.text.replaceSince(mark, isWebUrl(url ?? '') ? linkMark(target) : text)
    const reach = /^(?:mailto|tel):([^?]+)/i.exec(url ?? '')?.[1]
    if (reach !== undefined) return this.text.text(` (${reach})`)
    this.text.text(alone ? linkMark(target, ':') : ` ${linkMark(target, '(')}`)
  }
}

function bareAddress(text: string): string {
  return text.replace(/^(?:https?:\/\/(?:www\.)?|mailto:|tel:)/i, '').replace(/\/$/, '')
}

/** Returns whether a link's text is its address, so that the text part does not show it twice. */
function isSameAddress(text: string, url: string | null): boolean {
  return url !== null && bareAddress(text) === bareAddress(url)
}

/** Compiles text that is not HTML (a subject, a preview, a text part); its values are not escaped. */
export function plainTemplate(text: string): Template {
  const builder = new TemplateBuilder()
  for (const part of splitReferences(text)) {
    if (typeof part === 'string') builder.fixed(part)
    else builder.slot({ kind: 'plain', reference: part })
  }
  return builder.build()
}
