import {
  encodeText,
  formatAddress,
  header,
  isEnvelopeAddress,
  needsUtf8,
  toHeader,
  wireAddress,
} from './headers.ts'

/**
 * The parts of a message: header values as plain text, which `composeMail` encodes, and both bodies in
 * quoted-printable.
 */
export type MailParts = {
  /** Without angle brackets. Every attempt has the same, so that a receiver can recognize a repetition. */
  messageId: string
  date: Date
  from: { name: string | null; email: string }
  to: { name: string | null; email: string }
  replyTo: string | null
  subject: string
  html: string
  text: string
  /** The one-click unsubscribe URL (RFC 8058) of marketing mail; null for other mail. */
  unsubscribeUrl: string | null
}

/**
 * A message with CRLF line ends and one character per byte; only the recipient may be beyond ASCII. The empty line
 * between headers and body is in neither.
 */
export type ComposedMail = { headers: string; body: string }

/** Safe in every message: no line of a quoted-printable part contains `=_` (RFC 2045 6.7). */
const BOUNDARY = '=_alternative'
const BEFORE_TEXT = `--${BOUNDARY}\r\n${partHeaders('plain')}`
const BEFORE_HTML = `\r\n--${BOUNDARY}\r\n${partHeaders('html')}`
const AFTER_HTML = `\r\n--${BOUNDARY}--\r\n`
const STRUCTURE = `MIME-Version: 1.0\r\nContent-Type: multipart/alternative;\r\n boundary="${BOUNDARY}"\r\n`

/**
 * Composes a multipart/alternative message. Both parts are always quoted-printable: no relay encodes them again, no
 * line begins with a dot or with the boundary, and fixed text can be encoded before the values are known.
 */
export function composeMail(mail: MailParts): ComposedMail {
  const headers =
    header('From', formatAddress(mail.from.name, mail.from.email)) +
    toHeader(mail.to.name, mail.to.email) +
    replyHeader(mail.replyTo) +
    header('Subject', encodeText(mail.subject)) +
    header('Date', formatDate(mail.date)) +
    header('Message-ID', `<${mail.messageId}>`) +
    (mail.unsubscribeUrl ? unsubscribeHeaders(mail.unsubscribeUrl) : '') +
    STRUCTURE
  return { headers, body: BEFORE_TEXT + mail.text + BEFORE_HTML + mail.html + AFTER_HTML }
}

function partHeaders(subtype: string): string {
  return `Content-Type: text/${subtype}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n`
}

/**
 * Returns the Reply-To header, or '' when the stored value is not a usable address: it would only mislead people who
 * reply.
 */
function replyHeader(replyTo: string | null): string {
  const address = wireAddress(replyTo ?? '')
  return isEnvelopeAddress(address) && !needsUtf8(address) ? header('Reply-To', address) : ''
}

function unsubscribeHeaders(url: string): string {
  return `${header('List-Unsubscribe', `<${url}>`)}List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n`
}

let dated = { second: -1, text: '' }

/** Formats a date in UTC (RFC 5322 3.3). The text is cached, because thousands of emails are sent within one second. */
function formatDate(date: Date): string {
  const second = Math.floor(date.getTime() / 1_000)
  if (second !== dated.second) dated = { second, text: date.toUTCString().replace('GMT', '+0000') }
  return dated.text
}
