import type { EmailParts } from './email-parts.ts'
import { decodeAttribute } from './escape.ts'
import { writePreheader } from './frame.ts'
import { type HtmlAttribute, type HtmlToken, scanHtml, type StartTag } from './html-scan.ts'
import { HtmlText } from './html-text.ts'
import { hasReference, splitReferences } from './references.ts'
import { seenLinks } from './seen.ts'
import { PIXEL, type Template } from './template.ts'
import { compileUrl, isWebUrl } from './url.ts'

/** Attributes that hold one address. With a variable in it, the whole address is checked. */
const ADDRESS_ATTRIBUTES = new Set([
  'href',
  'src',
  'action',
  'formaction',
  'background',
  'poster',
  'cite',
  'data',
  'longdesc',
  'xlink:href',
])

/** How variables in a raw piece of HTML are written: escaped as HTML or CSS, or left out with a warning. */
type Place = 'html' | 'css' | 'nowhere'

/** Writes a user's HTML, given as `tokens`: unchanged except for variables, counted links and the pixel. */
export class HtmlSourceWriter {
  readonly #parts: EmailParts
  readonly #text: HtmlText
  readonly #seen: ReadonlySet<HtmlToken>

  constructor(parts: EmailParts, tokens: readonly HtmlToken[]) {
    this.#parts = parts
    this.#seen = seenLinks(tokens)
    this.#text = new HtmlText(parts)
  }

  /** Writes one token; `hasText` says whether it also goes into the text part. */
  write(token: HtmlToken, hasText: boolean): void {
    switch (token.type) {
      case 'text':
        this.#kept(token.raw, 'html')
        if (hasText) this.#text.write(token.raw)
        return
      case 'start': {
        const target = this.#start(token)
        if (hasText) this.#text.start(token, target)
        return
      }
      case 'end':
        this.#kept(token.raw, 'nowhere')
        if (hasText) this.#text.end(token.name)
        return
      case 'content':
        return this.#kept(token.raw, contentPlace(token.element))
      case 'comment':
        return this.#comment(token.raw, token.inner)
      case 'declaration':
        return this.#kept(token.raw, 'nowhere')
    }
  }

  /** Writes a comment. Outlook reads the content of conditional comments as HTML, so it is processed as such. */
  #comment(raw: string, inner: string | null): void {
    if (inner === null) return this.#kept(raw, 'html')
    const from = raw.indexOf(']>') + 2
    this.#kept(raw.slice(0, from), 'nowhere')
    const tokens = scanHtml(inner)
    const writer = new HtmlSourceWriter(this.#parts, tokens)
    for (const token of tokens) {
      if (token.type === 'comment') this.#kept(token.raw, 'html')
      else writer.write(token, false)
    }
    this.#kept(raw.slice(from + inner.length), 'nowhere')
  }

  #kept(raw: string, place: Place): void {
    const { html, table } = this.#parts
    for (const part of splitReferences(raw)) {
      if (typeof part === 'string') html.fixed(part)
      else if (place !== 'nowhere') html.slot({ kind: place, reference: part })
      else this.#misplaced(table.references[part]?.name ?? '')
    }
  }

  #misplaced(name: string): void {
    this.#parts.table.warn(
      'MISPLACED_VARIABLE',
      `{{${name}}} was left out: it stands in a script, a tag or an attribute where no value is safe; move it into text.`,
    )
  }

  /** Writes a start tag. Returns the index of the link target it opens, or null. */
  #start(tag: StartTag): number | null {
    let target: number | null = null
    let written = 0
    for (const attribute of tag.attributes) {
      const isLink = target === null && isLinkAttribute(tag, attribute)
      if (!isLink && !hasReference(tag.raw.slice(attribute.from - tag.from, attribute.to - tag.from)))
        continue
      this.#kept(tag.raw.slice(written, attribute.from - tag.from), 'nowhere')
      written = attribute.to - tag.from
      if (isLink) target = this.#link(tag, attribute)
      else this.#attribute(tag, attribute)
    }
    this.#kept(tag.raw.slice(written), 'nowhere')
    return target
  }

  #link(tag: StartTag, attribute: HtmlAttribute): number | null {
    const target = this.#parts.links.add(decodeAttribute(attribute.value), this.#seen.has(tag))
    const before = `${writtenName(tag, attribute)}="`
    if (target !== null) this.#parts.html.slot({ kind: 'link', target, before, after: '"' })
    return target
  }

  /** Writes an attribute that holds a variable. */
  #attribute(tag: StartTag, attribute: HtmlAttribute): void {
    const { html, links } = this.#parts
    const name = writtenName(tag, attribute)
    if (hasReference(name)) return this.#dropReferences(name + attribute.value)
    if (ADDRESS_ATTRIBUTES.has(attribute.name)) {
      const url = links.address(decodeAttribute(attribute.value))
      if (url !== null) html.slot({ kind: 'address', url, before: `${name}="`, after: '"' })
      return
    }
    const quote = attribute.quote === '' ? '"' : attribute.quote
    html.fixed(`${name}=${quote}`)
    const value = attribute.quote === '' ? attribute.value.replaceAll('"', '&quot;') : attribute.value
    this.#kept(value, attributePlace(tag, attribute))
    html.fixed(quote)
  }

  #dropReferences(text: string): void {
    for (const part of splitReferences(text)) {
      if (typeof part === 'number') this.#misplaced(this.#parts.table.references[part]?.name ?? '')
    }
  }
}

function contentPlace(element: string): Place {
  if (element === 'script') return 'nowhere'
  return element === 'style' ? 'css' : 'html'
}

function attributePlace(tag: StartTag, { name, value }: HtmlAttribute): Place {
  if (name.startsWith('on') || name === 'srcdoc' || name === 'srcset') return 'nowhere'
  if (name === 'style') return /url\(/i.test(value) ? 'nowhere' : 'css'
  const refreshes = tag.name === 'meta' && tag.attributes.some((other) => other.name === 'http-equiv')
  return refreshes ? 'nowhere' : 'html'
}

function writtenName(tag: StartTag, attribute: HtmlAttribute): string {
  const from = attribute.from - tag.from
  return tag.raw.slice(from, from + attribute.name.length)
}

/**
 * Returns whether the attribute is a link that a reader follows: one with a variable, or a web address whose clicks are
 * counted.
 */
function isLinkAttribute(tag: StartTag, attribute: HtmlAttribute): boolean {
  if (attribute.name !== 'href') return false
  if (tag.name !== 'a' && tag.name !== 'area' && !tag.name.startsWith('v:')) return false
  if (hasReference(attribute.value)) return true
  const written = decodeAttribute(attribute.value).trim()
  return /^(?:https?:)?\/\//i.test(written) && isWebUrl(compileUrl(written)?.fixed ?? '')
}

/** Returns the index of the last end tag of this element, or -1. */
function lastEnd(tokens: readonly HtmlToken[], name: string): number {
  return tokens.findLastIndex((token) => token.type === 'end' && token.name === name)
}

const HEAD_ELEMENTS = new Set(['html', 'head', 'title', 'style', 'meta', 'link', 'base'])

/** Returns whether the token can stand before the body, which begins at the first that cannot if it has no tag. */
function isBeforeBody(token: HtmlToken): boolean {
  if (token.type === 'text') return token.raw.trim() === ''
  if (token.type === 'start' || token.type === 'end') return HEAD_ELEMENTS.has(token.name)
  return token.type !== 'content' || HEAD_ELEMENTS.has(token.element)
}

/** Returns the index where the preheader goes: first in the body, and never before a doctype, which must lead. */
function startOfBody(tokens: readonly HtmlToken[]): number {
  const body = tokens.findIndex((token) => token.type === 'start' && token.name === 'body')
  if (body >= 0) return body + 1
  const first = tokens.findIndex((token) => !isBeforeBody(token))
  return Math.max(first < 0 ? tokens.length : first, lastEnd(tokens, 'head') + 1)
}

/** Writes a user's HTML source, whose variables are already placeholders, and derives the text part from it. */
export function writeHtmlSource(parts: EmailParts, source: string, preview: string): Template {
  const tokens = scanHtml(source)
  const bodyStart = startOfBody(tokens)
  const bodyEnd = lastEnd(tokens, 'body')
  const pixelAt = bodyEnd >= 0 ? bodyEnd : lastEnd(tokens, 'html')
  const writer = new HtmlSourceWriter(parts, tokens)
  for (const [index, token] of tokens.entries()) {
    if (index === bodyStart) writePreheader(parts, preview)
    if (index === pixelAt) parts.html.slot(PIXEL)
    writer.write(token, true)
  }
  if (bodyStart >= tokens.length) writePreheader(parts, preview)
  if (pixelAt < 0) parts.html.slot(PIXEL)
  return parts.html.build()
}
