const HTML_SPECIAL = /[&<>"']/g
const HTML_NEEDS_ESCAPE = /[&<>"']/
const HTML_ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for HTML text and for quoted attributes, with single or double quotes. */
export function escapeHtml(text: string): string {
  if (!HTML_NEEDS_ESCAPE.test(text)) return text
  return text.replace(HTML_SPECIAL, (character) => HTML_ESCAPES[character] ?? '')
}

/**
 * Reduces a value to characters that are safe in a style: enough for a colour, a length or a keyword, not for a
 * function call or the end of a declaration.
 */
export function escapeCss(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9#%., -]/g, '').trim()
}

const LATIN_1_NAMES =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest ' +
  'Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig ' +
  'agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'

/** Named entities that are common in mail; all others are left as they are. */
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ...LATIN_1_NAMES.split(' ').map((name, index): [string, string] => [
    name,
    String.fromCharCode(0xa0 + index),
  ]),
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
  ['OElig', 'Œ'],
  ['oelig', 'œ'],
  ['Scaron', 'Š'],
  ['scaron', 'š'],
  ['Yuml', 'Ÿ'],
  ['fnof', 'ƒ'],
  ['circ', 'ˆ'],
  ['tilde', '˜'],
  ['ensp', '\u2002'],
  ['emsp', '\u2003'],
  ['thinsp', '\u2009'],
  ['zwnj', '\u200C'],
  ['zwj', '\u200D'],
  ['ndash', '–'],
  ['mdash', '—'],
  ['lsquo', '‘'],
  ['rsquo', '’'],
  ['sbquo', '‚'],
  ['ldquo', '“'],
  ['rdquo', '”'],
  ['bdquo', '„'],
  ['dagger', '†'],
  ['Dagger', '‡'],
  ['bull', '•'],
  ['hellip', '…'],
  ['permil', '‰'],
  ['prime', '′'],
  ['lsaquo', '‹'],
  ['rsaquo', '›'],
  ['euro', '€'],
  ['trade', '™'],
  ['larr', '←'],
  ['uarr', '↑'],
  ['rarr', '→'],
  ['darr', '↓'],
  ['harr', '↔'],
  ['minus', '−'],
  ['infin', '∞'],
  ['ne', '≠'],
  ['le', '≤'],
  ['ge', '≥'],
  ['check', '✓'],
])

/** Returns a code point as text; controls, surrogates and noncharacters become U+FFFD. */
function fromCodePoint(code: number): string {
  const forbidden =
    !(code <= 0x10ffff) ||
    (code < 0x20 && code !== 9 && code !== 10) ||
    (code >= 0x7f && code < 0xa0) ||
    (code >= 0xd800 && code < 0xe000) ||
    (code >= 0xfdd0 && code < 0xfdf0)
  return forbidden ? '\uFFFD' : String.fromCodePoint(code)
}

const ENTITY = /&(?:#[xX]([0-9a-fA-F]{1,6})|#([0-9]{1,7})|([A-Za-z][A-Za-z0-9]{1,31}));/g

/** Decodes character references in one pass, so that `&amp;lt;` becomes the text `&lt;`. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(ENTITY, (whole, hex?: string, decimal?: string, name?: string) => {
    if (hex !== undefined) return fromCodePoint(Number.parseInt(hex, 16))
    if (decimal !== undefined) return fromCodePoint(Number(decimal))
    return ENTITIES.get(name ?? '') ?? whole
  })
}
