import { parseHTML } from 'linkedom'

import { viewOf } from '../test/helpers/email-lint.ts'
import { markdownFallback, onOneLine } from './s6-attacks.ts'

/** The value of a harmless reader; the text occurs nowhere else. */
export const HARMLESS = 'QqAdaqQ'
/** The harmless value of Markdown fallbacks. */
export const HARMLESS_FALLBACK = 'QqFallbackqQ'

const ADDRESSES = new Set([
  'href',
  'src',
  'background',
  'action',
  'formaction',
  'poster',
  'srcset',
  'xlink:href',
])
/**
 * The characters that a value may have where it is not shown as text: the parser decodes nothing in styles, comments
 * and textareas.
 */
const RAW: Record<string, string> = { style: '[A-Za-z0-9#%., -]*', '!--': '[^<>]*', textarea: '[^<>]*' }
/** Tokens are signed, so they differ from email to email. */
const TOKEN = /[\w-]{80,}/g
const SCHEME = /^(?:https?:\/\/[^/?#\s]|mailto:.|tel:.)/i

/** One element as a browser sees it; `text` is its direct text. */
type Seen = { name: string; attributes: Map<string, string>; text: string }

/** The members of linkedom's nodes that are used here. */
type DomNode = {
  nodeType: number
  localName?: string
  data?: string
  attributes?: Iterable<{ name: string; value: string }>
  childNodes: Iterable<DomNode>
}

/**
 * Compares an email with hostile values with the one with harmless values. They must have the same elements with the
 * same attributes in the same order and the same URL hosts, and show each value completely, as text. Returns the
 * differences.
 */
export function differences(hostile: string, harmless: string, attack: string): string[] {
  return [false, true].flatMap((isOutlook) => {
    const [ours, theirs] = [harmless, hostile].map((html) => elementsOf(viewOf(html, isOutlook)))
    if (!ours || !theirs) return ['an email without HTML']
    const [expected, seen] = [ours, theirs].map((elements) => elements.map(shapeOf).join('\n'))
    if (expected !== seen) return [`other elements: ${firstDifference(expected ?? '', seen ?? '')}`]
    return ours.flatMap((element, index) => compareOne(element, theirs[index] ?? element, attack))
  })
}

/** Returns a text with the harmless values replaced by those of the attack. */
export function withValues(harmless: string, attack: string): string {
  return harmless
    .replaceAll(HARMLESS, () => onOneLine(attack))
    .replaceAll(HARMLESS_FALLBACK, () => markdownFallback(attack))
}

/** Collapses white space as a browser does. */
export function spaced(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

/** Returns the distinct words of an attribute, which is all that the parser keeps of a class. */
function tokensOf(value: string): string {
  return [...new Set(spaced(value).split(' '))].join(' ')
}

function compareOne(harmless: Seen, hostile: Seen, attack: string): string[] {
  const wrong: string[] = []
  const raw = RAW[hostile.name]
  const isWhole = raw
    ? holdsOnly(harmless.text, hostile.text, raw)
    : spaced(hostile.text) === spaced(withValues(harmless.text, attack))
  if (!isWhole) wrong.push(`text of ${hostile.name}: ${JSON.stringify(hostile.text)}`)
  for (const [name, value] of hostile.attributes) {
    const expected = harmless.attributes.get(name) ?? ''
    if (ADDRESSES.has(name)) {
      if (!isHarmlessAddress(value.replace(TOKEN, ''), expected.replace(TOKEN, '')))
        wrong.push(`${name}: ${JSON.stringify(value)}`)
    } else if (name === 'style') {
      if (!isHarmlessStyle(value, expected)) wrong.push(`style: ${JSON.stringify(value)}`)
    } else if (tokensOf(value) !== tokensOf(withValues(expected, attack)))
      wrong.push(`${name}: ${JSON.stringify(value)}`)
  }
  return wrong
}

/** Returns whether a URL leads to the web, to mail or to a telephone, and to the author's host. */
function isHarmlessAddress(value: string, expected: string): boolean {
  if (value === '' || value === expected) return true
  if (!SCHEME.test(value) || /[\p{Cc}\s"<>]/u.test(value)) return false
  if (!/^https?:/i.test(value)) return !/^mailto:/i.test(expected) || !value.includes('?')
  const [host, author] = [value, expected].map((url) => /^https?:\/\/([^/?#]*)/i.exec(url)?.[1] ?? '')
  if (host === undefined || author === undefined || /[@\\]/.test(host)) return false
  return !author.endsWith('x.test') || host === 'x.test' || host.endsWith('.x.test')
}

/** Returns whether a value in a style is a word or a color, and neither ends a declaration nor calls a function. */
function isHarmlessStyle(value: string, expected: string): boolean {
  return value === expected || holdsOnly(expected, value, RAW['style'] ?? '')
}

/** Returns whether `text` is `harmless` with a text of these characters in place of each harmless value. */
function holdsOnly(harmless: string, text: string, characters: string): boolean {
  const fixed = harmless.split(HARMLESS).map((part) => part.replaceAll(/[^\w\s]/g, '\\$&'))
  return new RegExp(`^${fixed.join(characters)}$`).test(text)
}

function shapeOf({ name, attributes }: Seen): string {
  // An unsafe URL is removed together with its attribute, so URL attributes are not compared.
  return [name, ...[...attributes.keys()].filter((attribute) => !ADDRESSES.has(attribute))].join(' ')
}

function elementsOf(html: string): Seen[] {
  // The nodes of linkedom have these members.
  const { document } = parseHTML(html) as unknown as { document: DomNode }
  const found: Seen[] = []
  walk(document, found)
  return found
}

function walk(node: DomNode, found: Seen[]): void {
  for (const child of node.childNodes) {
    if (child.nodeType === 3) {
      const parent = found.at(-1)
      if (parent) parent.text += child.data ?? ''
      continue
    }
    const attributes = new Map(Array.from(child.attributes ?? [], ({ name, value }) => [name, value]))
    const isComment = child.nodeType === 8
    found.push({
      name: isComment ? '!--' : (child.localName ?? `#${child.nodeType}`),
      attributes,
      text: isComment ? (child.data ?? '') : '',
    })
    if (!isComment) walk(child, found)
  }
}

function firstDifference(expected: string, seen: string): string {
  const [one, other] = [expected.split('\n'), seen.split('\n')]
  const at = one.findIndex((line, index) => line !== other[index])
  return `${JSON.stringify(other[at === -1 ? one.length : at] ?? '')} in place of ${JSON.stringify(one[at] ?? '')}`
}
