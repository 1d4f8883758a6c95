import { domainToASCII } from 'node:url'

const MAXIMUM_LINE = 76
/** Bytes of text in one encoded word: 75 characters less `=?utf-8?B?` and `?=`, in whole groups of base64. */
const WORD_BYTES = 45
const ATOMS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*$/
const PRINTABLE = /^[\x20-\x7e]*$/
const UNPRINTABLE = /[^\x20-\x7e]+/g
/** What ends a header or a line, and what turns the direction of all that follows, such as the address after a name. */
// oxlint-disable-next-line no-control-regex -- header injection begins with a control character
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]+/g

/** One header line with its end. The value is made printable ASCII first: no value, nor what is left of it on the wire, can end its header. */
export function header(name: string, value: string): string {
  return finished(`${name}: ${value.replace(UNPRINTABLE, ' ').trim()}`)
}

/** The To header with its end; what of the address is not ASCII is in UTF-8 (RFC 6532), a character for each byte. */
export function toHeader(name: string | null, email: string): string {
  const value = formatAddress(name, email)
  return PRINTABLE.test(value) ? header('To', value) : finished(`To: ${inBytes(value.replace(CONTROL, ' '))}`)
}

/** UTF-8 with a character for each byte, as everything goes over the wire. */
export function inBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** Whether an address needs SMTPUTF8 (RFC 6531). */
export function needsUtf8(address: string): boolean {
  return !PRINTABLE.test(address)
}

/** Free text of a header: as it is when printable ASCII, else as encoded words (RFC 2047). */
export function encodeText(text: string): string {
  const line = text.toWellFormed().replace(CONTROL, ' ').trim()
  if (PRINTABLE.test(line) && !line.includes('=?') && !(line.length >= 300 && /\S{300}/.test(line)))
    return line
  return encodeWords(line)
}

/** `Name <address>`; the name is an atom, a quoted string or encoded words, as its characters need. */
export function formatAddress(name: string | null, email: string): string {
  const shown = (name ?? '').toWellFormed().replace(CONTROL, ' ').trim()
  const address = wireAddress(email)
  if (shown === '') return address
  if (!PRINTABLE.test(shown) || shown.includes('=?')) return `${encodeWords(shown)} <${address}>`
  const display = ATOMS.test(shown) ? shown : `"${shown.replaceAll(/["\\]/g, '\\$&')}"`
  return `${display} <${address}>`
}

/** The address with its domain in ASCII, which is all of it that most servers ever see of another script. */
export function wireAddress(email: string): string {
  const at = email.lastIndexOf('@')
  const domain = email.slice(at + 1)
  return PRINTABLE.test(domain) ? email : `${email.slice(0, at)}@${domainToASCII(domain)}`
}

/** The domain of an address in ASCII and lower case. */
export function domainOf(email: string): string {
  const address = wireAddress(email)
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase()
}

/** Whether an address can stand in MAIL FROM and RCPT TO: one printable word with a single way to read it. */
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

/** Long lines are broken before a space, which unfolding gives back, but never right after the name. */
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
