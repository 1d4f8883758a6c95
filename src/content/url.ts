import { splitReferences } from './references.ts'

/**
 * How a variable's value is encoded in a URL. `url`: the value begins the URL, and its scheme is checked; `component`:
 * path, query or fragment, percent-encoded; `segment`: a path after a host, which must not extend the host; `host`:
 * part of the host name; `site`: all that follows a scheme, or a whole address, because link dialogs write a scheme
 * before every variable; `mailbox` and `phone`: the target of mailto: and tel:.
 */
export type UrlPosition = 'url' | 'component' | 'segment' | 'host' | 'site' | 'mailbox' | 'phone'

/** A part of a URL: fixed text as written, or a variable with the encoding that its position needs. */
export type UrlPart = string | { readonly reference: number; readonly as: UrlPosition }

/** A URL of a document: `fixed` without variables (null with them), otherwise filled for each recipient. */
export type UrlTemplate = {
  readonly fixed: string | null
  readonly parts: readonly UrlPart[]
}

const WEB_ADDRESS = /^(https?:\/\/[^\s/?#"<>\\^`{|}]+)(.*)$/i
/** Web addresses that need no correction (a fast path). */
const PLAIN_WEB_ADDRESS = /^https?:\/\/[\w.:-]+\/[!#-;=?-[\]_a-z~]*$/
const BARE_DOMAIN = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?(?:[/?#]|$)/i
const MAIL_OR_PHONE = /^(?:mailto|tel):./i
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
const NOT_IN_URLS = /[^\u0021\u0023-\u003b\u003d\u003f-\u005b\u005d\u005f\u0061-\u007a\u007e]/gu

function encodeUnsafe(text: string): string {
  return text.replace(NOT_IN_URLS, (character) => encodeURIComponent(character))
}

/**
 * Returns the text as an absolute http(s), mailto or tel URL; '' for any other scheme and for text that is not a URL.
 */
function safeUrl(text: string): string {
  if (PLAIN_WEB_ADDRESS.test(text)) return text
  const bare = text.toWellFormed().replace(CONTROLS, '').trim()
  if (BARE_DOMAIN.test(bare)) return safeUrl(`https://${bare}`)
  if (bare.startsWith('//')) return safeUrl(`https:${bare}`)
  if (MAIL_OR_PHONE.test(bare)) return encodeUnsafe(bare)
  const web = WEB_ADDRESS.exec(bare)
  return web === null ? '' : `${web[1] ?? ''}${encodeUnsafe(web[2] ?? '')}`
}

/** Returns whether a filled URL leads to a web page, so that its clicks can be counted. */
export function isWebUrl(url: string): boolean {
  return /^https?:/i.test(url)
}

/** Returns the position of a variable by the fixed text around it; null where no value can be safe. */
function positionAfter(before: string, after: string): UrlPosition | null {
  const start = before.replace(CONTROLS, '').trimStart()
  if (/^mailto:/i.test(start)) return start.includes('?') ? 'component' : 'mailbox'
  if (/^tel:/i.test(start)) return 'phone'
  const web = /^(?:https?:)?\/\/([^/?#]*)(.?)/i.exec(start)
  if (web === null) return BARE_DOMAIN.test(start) && /[/?#]/.test(start) ? 'component' : null
  if (web[2] !== '') return 'component'
  if (web[1] === '' && after === '') return 'site'
  const endsHost = after === '' || /^[/?#]/.test(after)
  return endsHost && /[A-Za-z0-9]$/.test(web[1] ?? '') ? 'segment' : 'host'
}

const MAX_URL_LENGTH = 4096
const MAX_URL_PARTS = 64

/** Compiles a URL that may contain variables; null when no value could make it a URL that mail may carry. */
export function compileUrl(source: string): UrlTemplate | null {
  if (source.length > MAX_URL_LENGTH) return null
  const pieces = splitReferences(source.trim())
  if (pieces.length > MAX_URL_PARTS) return null
  if (pieces.every((piece) => typeof piece === 'string')) {
    const fixed = safeUrl(source)
    return fixed === '' ? null : Object.freeze({ fixed, parts: Object.freeze([fixed]) })
  }
  const parts: UrlPart[] = []
  let before = ''
  for (const [index, piece] of pieces.entries()) {
    if (typeof piece === 'string') {
      parts.push(piece)
      before += piece
      continue
    }
    const next = pieces[index + 1]
    const as = placeOf(parts, before, next === undefined ? '' : next)
    if (as === null) return null
    parts.push(Object.freeze({ reference: piece, as }))
    if (as === 'host') before += 'x'
    if (as === 'segment') before += '/'
  }
  return Object.freeze({ fixed: null, parts: Object.freeze(parts) })
}

/** Compiles an address that is loaded, such as an image's; null unless it is a whole web address. */
export function compileLoaded(source: string): UrlTemplate | null {
  return /^\s*(?:(?:https?:)?\/\/|\uFDD0)/i.test(source) ? compileUrl(source) : null
}

function placeOf(parts: readonly UrlPart[], before: string, next: string | number): UrlPosition | null {
  const first = parts[0]
  if (first === undefined) return 'url'
  if (typeof first !== 'string') return 'component'
  return positionAfter(before, typeof next === 'string' ? next : 'x')
}

/** Percent-encodes a value. One that is only dots becomes empty: it would climb out of its path, encoded or not. */
function encodeComponent(value: string): string {
  return value === '.' || value === '..' ? '' : encodeURIComponent(value)
}

/** Reduces a value to characters of a host name. */
function encodeHost(value: string): string {
  return value.replaceAll(/[^A-Za-z0-9.:\u0080-\uFFFF-]|:(?!\d{1,5}$)/g, '')
}

function encodeFor(position: UrlPosition, value: string, before: string): string {
  if (value === '') return ''
  switch (position) {
    case 'url':
      return value
    case 'host':
      return encodeHost(value.replace(/^https?:\/\//i, '').replace(/[/?#].*$/, ''))
    case 'site': {
      const [host = ''] = /^[^/?#]*/.exec(value) ?? []
      return encodeHost(host) + value.slice(host.length)
    }
    case 'mailbox':
      return encodeURIComponent(value).replaceAll('%40', '@').replaceAll('%2B', '+')
    case 'phone':
      return value.replaceAll(/[^0-9A-Za-z+*.()-]/g, '')
    case 'segment':
      return `/${encodeComponent(value)}`
    case 'component':
      // A host from a variable must not be extended by the next variable.
      return `${/^[a-z]+:\/\/[^/?#]*$/i.test(before) ? '/' : ''}${encodeComponent(value)}`
  }
}

/** Fills a URL with values by reference index; returns '' when the result is not a safe URL. */
export function fillUrl(url: UrlTemplate, values: readonly string[]): string {
  if (url.fixed !== null) return url.fixed
  let filled = ''
  for (const part of url.parts) {
    if (typeof part === 'string') {
      filled += part
      continue
    }
    const value = values[part.reference] ?? ''
    filled = part.as === 'site' && isWebUrl(value) ? value : filled + encodeFor(part.as, value, filled)
  }
  return safeUrl(filled)
}
