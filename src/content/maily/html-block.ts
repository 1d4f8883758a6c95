import { decodeAttribute } from '../escape.ts'
import { type HtmlToken, scanHtml, type StartTag } from '../html-scan.ts'
import { HtmlSourceWriter } from '../html-source.ts'
import { OpenElements } from '../open-elements.ts'
import type { Place } from '../rich/entries.ts'
import { inkOf } from '../rich/surface.ts'
import { readSource } from './inline.ts'
import type { Node, Spot, Walk } from './node.ts'

/** Elements that are kept; of all others only the content is. */
const KEPT = new Set(
  (
    'a abbr address article aside b bdi bdo big blockquote br center cite code dd del dfn div dl dt em figcaption figure ' +
    'font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p pre q s samp section small span strike ' +
    'strong sub sup table time tt u ul var wbr'
  ).split(' '),
)
/** Elements that are kept only inside a table of the block: elsewhere they would end the cell around the block. */
const IN_TABLES = new Set(['caption', 'col', 'colgroup', 'tbody', 'td', 'tfoot', 'th', 'thead', 'tr'])
/** Elements whose removal gets a warning. The contents of scripts and styles are separate tokens, which are dropped. */
const REMOVED = new Set(['script', 'style', 'title', 'iframe', 'link', 'meta', 'base', 'object', 'embed'])
const RUNS = /^(?:on|formaction$|srcdoc$)/
/** Matches characters that browsers ignore in a scheme; `decodeAttribute` writes U+FFFD for some of them. */
// oxlint-disable-next-line no-control-regex
const IGNORED = /[\u0000-\u0020\uFFFD]+/g
/** Matches HTML that sets a text or background colour. */
const COLORED = /color\s*[:=]/i
const SCHEME = /^(?:javascript|vbscript|data):/i
/** Matches attributes whose value is words for readers, which may begin with "Data:". */
const WORDS = /^(?:alt|title|summary|abbr|aria-.*)$/

/** Returns the start tag without attributes that run code: event handlers, and values with a script or data scheme. */
function safeTag(tag: StartTag): string {
  let kept = ''
  let from = 0
  for (const attribute of tag.attributes) {
    const value = decodeAttribute(attribute.value).replace(IGNORED, '')
    const isScript = SCHEME.test(value) && !WORDS.test(attribute.name)
    if (!RUNS.test(attribute.name) && !isScript) continue
    kept += tag.raw.slice(from, attribute.from - tag.from)
    from = attribute.to - tag.from
  }
  return kept + tag.raw.slice(from)
}

/**
 * Collects the author's HTML in a form that is safe inside ours: without code and frames, and with every element
 * closed.
 */
class Container {
  html = ''
  isChanged = false
  readonly #open = new OpenElements(null, (name) => {
    this.html += `</${name}>`
  })

  write(token: HtmlToken): void {
    switch (token.type) {
      case 'text':
        this.html += token.raw
        return
      case 'start':
        return this.#start(token)
      case 'end':
        this.#open.close(token.name)
        return
      case 'comment':
        // Only the loss of a conditional comment (for Outlook) changes how an email looks.
        this.isChanged ||= token.inner !== null
        return
      case 'content':
      case 'declaration':
    }
  }

  close(): void {
    this.#open.closeAll()
  }

  #start(tag: StartTag): void {
    const { name } = tag
    if (!KEPT.has(name) && !(IN_TABLES.has(name) && this.#open.has('table'))) {
      this.isChanged ||= REMOVED.has(name)
      return
    }
    const safe = safeTag(tag)
    this.isChanged ||= safe !== tag.raw
    this.#open.open(name, () => null)
    this.html += safe
  }
}

/** Writes a block of the author's HTML, after removing elements and attributes that are not safe in it. */
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
  // The author chose the block's colours for the light card, and dark mode's style sheet cannot change them.
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
