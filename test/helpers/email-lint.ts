import { contrast, readColor } from '../../src/content/rich/color.ts'

/** One tag as a browser sees it. */
type Tag = { name: string; isEnd: boolean; attributes: Map<string, string> }

const VOID = new Set(['area', 'base', 'br', 'col', 'hr', 'img', 'input', 'link', 'meta', 'wbr', '!doctype'])
const FORBIDDEN = new Set([
  'script',
  'link',
  'iframe',
  'object',
  'embed',
  'form',
  'base',
  'svg',
  'frame',
  'applet',
])
const ENTITIES: Record<string, string> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
}
const LEAST_CONTRAST = 3

function decode(text: string): string {
  return text.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity] ?? '')
}

/** Yields tags and the text between them. Independent of the product's own scanner. */
function* piecesOf(html: string): Generator<Tag | string> {
  const pattern =
    /<!--[^]*?-->|<(style|title)\b[^>]*>[^]*?<\/\1>|<(\/?)([!A-Za-z][^\s/>]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/g
  let from = 0
  for (const match of html.matchAll(pattern)) {
    yield html.slice(from, match.index)
    from = match.index + match[0].length
    const [, , end, name, rest] = match
    if (name === undefined) continue
    const attributes = new Map<string, string>()
    for (const [, key = '', double, single, bare] of (rest ?? '').matchAll(
      /([^\s=/>"']+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g,
    )) {
      attributes.set(key.toLowerCase(), decode(double ?? single ?? bare ?? ''))
    }
    yield { name: name.toLowerCase(), isEnd: end === '/', attributes }
  }
  yield html.slice(from)
}

/** Returns the document as Outlook for Windows reads it, or as other mail programs do. */
export function viewOf(html: string, isOutlook: boolean): string {
  return html
    .replaceAll(/<!--\[if !mso\]><!-->([^]*?)<!--<!\[endif\]-->/g, isOutlook ? '' : '$1')
    .replaceAll(/<!--\[if mso\]>([^]*?)<!\[endif\]-->/g, isOutlook ? '$1' : '')
}

function styleOf({ attributes }: Tag): Map<string, string> {
  const rules = (attributes.get('style') ?? '').split(';').flatMap((rule) => {
    const colon = rule.indexOf(':')
    return colon < 0 ? [] : [[rule.slice(0, colon).trim(), rule.slice(colon + 1).trim()] as const]
  })
  return new Map(rules)
}

function tagFaults(tag: Tag): string[] {
  const { name, attributes } = tag
  const faults: string[] = []
  const style = attributes.get('style') ?? ''
  if (FORBIDDEN.has(name)) faults.push(`<${name}> has no place in mail`)
  if (name === 'img' && !attributes.has('alt')) faults.push('an image has no alt')
  if (name === 'table' && !/^(?:presentation|table)$/.test(attributes.get('role') ?? '')) {
    faults.push('a table has no role')
  }
  for (const key of attributes.keys()) if (key.startsWith('on')) faults.push(`${key} runs a script`)
  for (const key of ['href', 'src']) {
    const address = attributes.get(key)
    if (address !== undefined && !/^(?:https?:\/\/|mailto:|tel:)/.test(address)) {
      faults.push(`${key} is ${JSON.stringify(address)}`)
    }
  }
  if (/url\(|expression|@import|position\s*:|javascript|behavior/i.test(style))
    faults.push(`style is ${style}`)
  const measures = ['style', 'width', 'height', 'colspan', 'arcsize']
    .map((key) => attributes.get(key))
    .join(' ')
  if (/NaN|null|Infinity|\[object/.test(measures)) {
    faults.push(`<${name}> has ${JSON.stringify([...attributes])}`)
  }
  return faults
}

type Ink = { name: string; color: string; background: string }

/** Checks one view: all elements closed, tags properly nested, and every text readable on its background. */
function viewFaults(html: string): string[] {
  const faults: string[] = []
  const open: Ink[] = [{ name: '', color: '#000000', background: '#ffffff' }]
  for (const piece of piecesOf(html)) {
    const { color, background } = open.at(-1) ?? { color: '#000000', background: '#ffffff' }
    if (typeof piece === 'string') {
      const isSeen = piece.replaceAll(/&\w+;|&#\d+;|\s/g, '') !== '' && color !== 'none'
      if (isSeen && contrast(color, background) < LEAST_CONTRAST) {
        faults.push(`${JSON.stringify(piece.slice(0, 40))} is ${color} on ${background}`)
      }
      continue
    }
    if (piece.isEnd) {
      const last = open.pop()?.name
      if (last !== piece.name) faults.push(`</${piece.name}> ends <${last}>`)
      continue
    }
    faults.push(...tagFaults(piece))
    if (VOID.has(piece.name) || piece.name === 'w:anchorlock') continue
    const style = styleOf(piece)
    const isHidden = style.get('display') === 'none'
    open.push({
      name: piece.name,
      color: isHidden ? 'none' : (readColor(style.get('color')) ?? color),
      background: readColor(style.get('background-color') ?? piece.attributes.get('fillcolor')) ?? background,
    })
  }
  const left = open.slice(1).map(({ name }) => name)
  return left.length === 0 ? faults : [...faults, `not closed: ${left.join(' ')}`]
}

/** Returns the faults in the HTML of an email, for Outlook and for other mail programs. */
export function lintEmail(html: string): string[] {
  const faults = [false, true].flatMap((isOutlook) => viewFaults(viewOf(html, isOutlook)))
  const sheets = [...html.matchAll(/<style[^>]*>([^]*?)<\/style>/g)].map(([, sheet]) => sheet)
  if (/@import|url\(/.test(sheets.join(''))) faults.push('a style sheet loads another')
  return [...new Set(faults)]
}
