import { decodeEntities } from '../escape.ts'
import { type HtmlToken, scanHtml } from '../html-scan.ts'
import { HtmlSourceWriter } from '../html-source.ts'
import type { Place } from '../rich/entries.ts'
import { inkOf } from '../rich/surface.ts'
import { readSource } from './inline.ts'
import type { Node, Spot, Walk } from './node.ts'

/** Elements that may stand in mail; of all others only the content stays. */
const KEPT = new Set(
  (
    'a abbr address article aside b bdi bdo big blockquote br center cite code dd del dfn div dl dt em figcaption figure ' +
    'font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p pre q s samp section small span strike ' +
    'strong sub sup table time tt u ul var wbr'
  ).split(' '),
)
/** These belong to a table of the block; without one they would end the cell that the block stands in. */
const IN_TABLES = new Set(['caption', 'col', 'colgroup', 'tbody', 'td', 'tfoot', 'th', 'thead', 'tr'])
const VOID = new Set(['br', 'col', 'hr', 'img', 'wbr'])
/** Elements that leave nothing behind; the contents of scripts and styles are tokens of their own. */
const REMOVED = new Set(['script', 'style', 'title', 'iframe', 'link', 'meta', 'base', 'object', 'embed'])
const RUNS = /^(?:on|formaction$|srcdoc$)/
// oxlint-disable-next-line no-control-regex
const IGNORED = /[\u0000-\u0020]+/g
/** Says a colour of text or ground. */
const COLORED = /color\s*[:=]/i
const SCHEME = /^(?:javascript|vbscript|data):/i

type StartTag = Extract<HtmlToken, { type: 'start' }>

/** The start tag without what runs when it is shown. */
function safeTag(tag: StartTag): string {
  let kept = ''
  let from = 0
  for (const attribute of tag.attributes) {
    const value = decodeEntities(attribute.value).replace(IGNORED, '')
    if (!RUNS.test(attribute.name) && !SCHEME.test(value)) continue
    kept += tag.raw.slice(from, attribute.from - tag.from)
    from = attribute.to - tag.from
  }
  return kept + tag.raw.slice(from)
}

/** The author's HTML as it may stand inside ours: without what runs or loads, every element closed in it. */
class Container {
  html = ''
  isChanged = false
  readonly #open: string[] = []
  readonly #counts = new Map<string, number>()

  write(token: HtmlToken): void {
    switch (token.type) {
      case 'text':
        this.html += token.raw
        return
      case 'start':
        return this.#start(token)
      case 'end':
        return this.#end(token.name)
      case 'comment':
        // What Outlook alone would read is lost; nobody misses other comments.
        this.isChanged ||= token.inner !== null
        return
      case 'content':
      case 'declaration':
    }
  }

  close(): void {
    while (this.#open.length > 0) this.#closeLast()
  }

  #start(tag: StartTag): void {
    const { name } = tag
    if (!KEPT.has(name) && !(IN_TABLES.has(name) && this.#count('table') > 0)) {
      this.isChanged ||= REMOVED.has(name)
      return
    }
    const safe = safeTag(tag)
    this.isChanged ||= safe !== tag.raw
    this.html += safe
    if (VOID.has(name)) return
    this.#open.push(name)
    this.#counts.set(name, this.#count(name) + 1)
  }

  #end(name: string): void {
    if (this.#count(name) === 0) return
    while (this.#open.length > 0) if (this.#closeLast() === name) return
  }

  #closeLast(): string {
    const name = this.#open.pop() ?? ''
    this.#counts.set(name, this.#count(name) - 1)
    this.html += `</${name}>`
    return name
  }

  #count(name: string): number {
    return this.#counts.get(name) ?? 0
  }
}

/** Writes a block of the author's own HTML. */
export function writeHtmlBlock(walk: Walk, node: Node, spot: Spot, { isLast }: Place): void {
  const { parts } = walk
  const container = new Container()
  for (const token of scanHtml(readSource(walk, node.content, spot.depth + 1))) container.write(token)
  container.close()
  if (container.isChanged) {
    parts.table.warn(
      'REMOVED_HTML',
      'A block of HTML holds scripts, style sheets, frames or comments for Outlook, which were left out; use inline styles.',
    )
  }
  // The author chose the colours of the block for the light card, and style sheets cannot change them in dark mode.
  const isColored = spot.surface.isCard && COLORED.test(container.html)
  const paper = isColored
    ? `<div style="background-color:#ffffff;color:${inkOf(spot.surface).text};color-scheme:light">\n`
    : ''
  parts.html.fixed(
    `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td class="pl-own" style="padding:0 0 ${isLast ? 0 : 16}px">\n${paper}`,
  )
  const tokens = scanHtml(container.html)
  const writer = new HtmlSourceWriter(parts, tokens)
  for (const token of tokens) writer.write(token, true)
  parts.html.fixed(`${isColored ? '</div>' : ''}</td></tr></table>\n`)
  parts.text.endBlock(1)
}
