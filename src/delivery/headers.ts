import { domainToASCII } from 'node:url'

const MAXIMUM_LINE = 76
/**
 * Bytes of text in one encoded word: 76 characters minus `Subject: `, `=?utf-8?B?` and `?=`, in whole groups of base64.
 * A line with an encoded word has at most 76 characters (RFC 2047 2), and the first word is never moved below its name.
 */
const WORD_BYTES = 39
const ATOMS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*$/
const PRINTABLE = /^[\x20-\x7e]*$/
const UNPRINTABLE = /[^\x20-\x7e]+/g
/**
 * Control characters and line separators, which could end a header, and direction marks, which could reorder the text
 * after them.
 */
// oxlint-disable-next-line no-control-regex -- header injection begins with a control character
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]+/g

/**
 * Returns one header line with its line end. Other characters than printable ASCII become spaces, so that no value can
 * end its header.
 */
export function header(name: string, value: string): string {
  return finished(`${name}: ${value.replace(UNPRINTABLE, ' ').trim()}`)
}

/**
 * Returns the To header with its line end. An address beyond ASCII is written in UTF-8 (RFC 6532), one character per
 * byte.
 */
export function toHeader(name: string | null, email: string): string {
  const value = formatAddress(name, email)
  return PRINTABLE.test(value) ? header('To', value) : finished(`To: ${inBytes(value.replace(CONTROL, ' '))}`)
}

/** Returns text in UTF-8 with one character per byte, the form in which everything is sent to a relay. */
export function inBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** Returns whether an address needs SMTPUTF8 (RFC 6531). */
export function needsUtf8(address: string): boolean {
  return !PRINTABLE.test(address)
}

/**
 * Returns the free text of a header: unchanged when it is printable ASCII without `=?` or overlong words, else as
 * encoded words (RFC 2047).
 */
export function encodeText(text: string): string {
  const line = text.toWellFormed().replace(CONTROL, ' ').trim()
  if (PRINTABLE.test(line) && !line.includes('=?') && !(line.length >= 300 && /\S{300}/.test(line)))
    return line
  return encodeWords(line)
}

/**
 * Returns `Name <address>`, or only the address without a name. The name becomes an atom, a quoted string or encoded
 * words, as its characters require.
 */
export function formatAddress(name: string | null, email: string): string {
  const shown = (name ?? '').toWellFormed().replace(CONTROL, ' ').trim()
  const address = wireAddress(email)
  if (shown === '') return address
  if (!PRINTABLE.test(shown) || shown.includes('=?')) return `${encodeWords(shown)} <${address}>`
  const display = ATOMS.test(shown) ? shown : `"${shown.replaceAll(/["\\]/g, '\\$&')}"`
  return `${display} <${address}>`
}

/**
 * Returns the address with its domain in ASCII (punycode). For most addresses in other scripts, that makes all of it
 * ASCII.
 */
export function wireAddress(email: string): string {
  const at = email.lastIndexOf('@')
  const domain = email.slice(at + 1)
  return PRINTABLE.test(domain) ? email : `${email.slice(0, at)}@${domainToASCII(domain)}`
}

/** Returns the domain of an address in ASCII and lower case. */
export function domainOf(email: string): string {
  const address = wireAddress(email)
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase()
}

/**
 * Returns whether an address can be used in MAIL FROM and RCPT TO: one printable word that can be parsed in only one
 * way.
 */
export function isEnvelopeAddress(address: string): boolean {
  return address.length <= 320 && /^[^\s\p{C}\p{Z}<>()[\]\\,;:"@]+@[A-Za-z0-9.-]+$/u.test(address)
}

function encodeWords(text: string): string {
  const words: string[] = []
  let word = ''
  let bytes = 0
  for (const character of text) {
    const size = Buffer.byteLength(character)
    if (bytes + size > WORD_BYTES) {
      words.push(word)
      word = ''
      bytes = 0
    }
    word += character
    bytes += size
  }
  words.push(word)
  return words.map((part) => `=?utf-8?B?${Buffer.from(part).toString('base64')}?=`).join(' ')
}

function finished(line: string): string {
  return `${line.length <= MAXIMUM_LINE ? line : fold(line)}\r\n`
}

/** Folds a long line before spaces, which unfolding restores, but never right after the header name. */
function fold(line: string): string {
  const value = line.indexOf(' ') + 1
  if (!line.includes(' ', value)) return line
  const lines: string[] = []
  let current = ''
  for (const part of line.split(/(?= )/)) {
    const isFull = current.length + part.length > MAXIMUM_LINE
    const hasValue = lines.length > 0 ? current.trim() !== '' : current.trim().includes(' ')
    if (isFull && hasValue && part.trim() !== '') {
      lines.push(current)
      current = part
    } else current += part
  }
  lines.push(current)
  return lines.join('\r\n')
}
