import type { EmailParts } from './email-parts.ts'
import { decodeAttribute, decodeHtmlText } from './escape.ts'
import type { StartTag } from './html-scan.ts'
import { OpenElements } from './open-elements.ts'
import { coverIn, isHidden, UNCOVERED } from './seen.ts'

/** Block elements, and the number of blank lines around each in the text part. */
const BLOCKS: ReadonlyMap<string, number> = new Map([
  ...[
    'p',
    'h1',
    'h2',
    'h3',
    'h4',
    'h5',
    'h6',
    'ul',
    'ol',
    'dl',
    'blockquote',
    'pre',
    'table',
    'figure',
    'hr',
  ].map((name): [string, number] => [name, 1]),
  ...[
    'div',
    'section',
    'article',
    'header',
    'footer',
    'main',
    'nav',
    'aside',
    'address',
    'center',
    'form',
  ].map((name): [string, number] => [name, 0]),
  ...['tr', 'li', 'dt', 'dd', 'figcaption', 'fieldset', 'body'].map((name): [string, number] => [name, 0]),
])

type List = {
  readonly ordered: boolean
  next: number
  itemOpen: boolean
}

function attributeOf(tag: StartTag, name: string): string | null {
  return tag.attributes.find((attribute) => attribute.name === name)?.value ?? null
}

/** Derives the text part from the tokens of an HTML source. */
export class HtmlText {
  readonly #parts: EmailParts
  readonly #lists: List[] = []
  #quotes = 0
  #preformatted = 0
  #link: { target: number; mark: number } | null = null
  /** The open elements, and how each is hidden, as preheaders are. */
  readonly #covers = new OpenElements(UNCOVERED)

  constructor(parts: EmailParts) {
    this.#parts = parts
  }

  write(raw: string): void {
    const cover = this.#covers.value
    if (isHidden(cover)) return
    // The space keeps the elements apart between which it stands.
    if (cover.isTiny) return this.#parts.text.text(' ')
    const text = decodeHtmlText(raw)
    if (this.#preformatted === 0) return this.#parts.text.text(text)
    for (const [index, line] of text.split('\n').entries()) {
      if (index > 0) this.#parts.text.lineBreak()
      this.#parts.text.text(line)
    }
  }

  start(tag: StartTag, target: number | null): void {
    const { name } = tag
    if (isHidden(this.#covers.open(name, (parent) => coverIn(parent, tag)))) return
    const gap = BLOCKS.get(name)
    if (gap !== undefined) this.#parts.text.endBlock(this.#lists.length > 0 && name !== 'p' ? 0 : gap)
    this.#open(tag, target)
  }

  #open(tag: StartTag, target: number | null): void {
    const { text } = this.#parts
    switch (tag.name) {
      case 'br':
        return text.lineBreak()
      case 'hr':
        text.literalLine('-'.repeat(24))
        return text.endBlock(1)
      case 'img':
        return this.#parts.alternative(decodeAttribute(attributeOf(tag, 'alt') ?? ''))
      case 'a':
        this.#closeLink()
        if (target !== null) this.#link = { target, mark: text.mark }
        return
      case 'ul':
      case 'ol':
        this.#lists.push({ ordered: tag.name === 'ol', next: 1, itemOpen: false })
        return
      case 'li':
        return this.#item()
      case 'blockquote':
        this.#quotes += 1
        return text.open('> ', '> ')
      case 'pre':
        this.#preformatted += 1
        return
      default:
    }
  }

  end(name: string): void {
    const around = this.#covers.value
    // An end tag without an open element is hidden where its place is.
    if (isHidden(this.#covers.close(name) ?? around)) return
    if (name === 'a') return this.#closeLink()
    if (name === 'td' || name === 'th') return this.#parts.text.text(' ')
    const gap = BLOCKS.get(name)
    if (gap === undefined) return
    const underline = name === 'h1' ? '=' : name === 'h2' ? '-' : ''
    this.#parts.text.endBlock(this.#lists.length > 1 && name !== 'p' ? 0 : gap, underline)
    this.#close(name)
  }

  #close(name: string): void {
    if (name === 'li') return this.#closeItem()
    if (name === 'pre') this.#preformatted = Math.max(0, this.#preformatted - 1)
    if (name === 'ul' || name === 'ol') {
      this.#closeItem()
      this.#lists.pop()
    }
    if (name === 'blockquote' && this.#quotes > 0) {
      this.#quotes -= 1
      this.#parts.text.close()
    }
  }

  #item(): void {
    this.#closeItem()
    const list = this.#lists.at(-1)
    if (list === undefined) return
    const marker = list.ordered ? `${list.next}. ` : '- '
    list.next += 1
    list.itemOpen = true
    this.#parts.text.open(marker, ' '.repeat(marker.length))
  }

  #closeItem(): void {
    const list = this.#lists.at(-1)
    if (list?.itemOpen !== true) return
    list.itemOpen = false
    this.#parts.text.close()
  }

  #closeLink(): void {
    const link = this.#link
    this.#link = null
    if (link !== null) this.#parts.addressAfter(link.target, link.mark, false)
  }
}
