import { decodeHTML, DecodingMode, replaceCodePoint } from 'entities/lib/decode.js'

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

/** Returns the text of a numeric reference; controls, surrogates and noncharacters become U+FFFD. */
function fromCodePoint(number: number): string {
  // HTML reads 128 to 159 as characters of windows-1252.
  const code = replaceCodePoint(number)
  const forbidden =
    (code < 0x20 && code !== 9 && code !== 10) ||
    (code >= 0x7f && code < 0xa0) ||
    (code >= 0xfdd0 && code < 0xfdf0)
  return forbidden ? '\uFFFD' : String.fromCodePoint(code)
}

const REFERENCE = /&(?:#(?:[xX]([0-9a-fA-F]+)|([0-9]+));?|[A-Za-z][A-Za-z0-9]*[;=]?)/g

function decode(text: string, mode: DecodingMode): string {
  if (!text.includes('&')) return text
  return text.replace(REFERENCE, (whole, hex?: string, decimal?: string) => {
    if (mode === DecodingMode.Strict && !whole.endsWith(';')) return whole
    // The library throws on numbers with hundreds of digits.
    if (hex !== undefined) return fromCodePoint(Number.parseInt(hex, 16))
    if (decimal !== undefined) return fromCodePoint(Number(decimal))
    return decodeHTML(whole, mode)
  })
}

/**
 * Decodes the character references of HTML text as browsers do, some of them also without `;`. Decodes in one pass, so
 * that `&amp;lt;` becomes the text `&lt;`.
 */
export function decodeHtmlText(text: string): string {
  return decode(text, DecodingMode.Legacy)
}

/** Decodes an attribute's value as browsers do: in `?a=1&copy=2`, for example, `&copy` is not a reference. */
export function decodeAttribute(value: string): string {
  return decode(value, DecodingMode.Attribute)
}

/** Decodes the character references of Markdown, which all end with `;`. */
export function decodeMarkdown(text: string): string {
  return decode(text, DecodingMode.Strict)
}
