import { randomBytes } from 'node:crypto'

import { encodeText, formatAddress, header } from './headers.ts'

/** An email as it goes out: plain values, which the headers encode. */
export type MailParts = {
  /** Without angle brackets; the same for every attempt, so that a receiver can tell a repetition. */
  messageId: string
  date: Date
  from: { name: string | null; email: string }
  to: { name: string | null; email: string }
  replyTo: string | null
  subject: string
  html: string
  text: string
  /** The address of RFC 8058 for marketing mail. */
  unsubscribeUrl: string | null
}

const MAXIMUM_LINE = 76
const LONG_LINE = 900
const HEX = '0123456789ABCDEF'

/** Composes a multipart/alternative message with CRLF line ends and only ASCII bytes, ready for DATA but for its dots. */
export function composeMail(mail: MailParts): string {
  const boundary = `=_${randomBytes(15).toString('base64url')}`
  const headers = [
    header('From', formatAddress(mail.from.name, mail.from.email)),
    header('To', formatAddress(mail.to.name, mail.to.email)),
    ...(mail.replyTo ? [header('Reply-To', formatAddress(null, mail.replyTo))] : []),
    header('Subject', encodeText(mail.subject)),
    header('Date', formatDate(mail.date)),
    header('Message-ID', `<${mail.messageId}>`),
    ...(mail.unsubscribeUrl
      ? [
          header('List-Unsubscribe', `<${mail.unsubscribeUrl}>`),
          header('List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'),
        ]
      : []),
    header('MIME-Version', '1.0'),
    `Content-Type: multipart/alternative;\r\n boundary="${boundary}"\r\n`,
  ]
  const parts = [part('plain', mail.text), part('html', mail.html)]
  return `${headers.join('')}\r\n${parts.map((body) => `--${boundary}\r\n${body}`).join('')}--${boundary}--\r\n`
}

function part(subtype: string, text: string): string {
  const { encoding, body } = encodeBody(text)
  return `Content-Type: text/${subtype}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`
}

/** ASCII text with short lines stands as it is; everything else is quoted-printable, which every relay carries. */
function encodeBody(text: string): { encoding: '7bit' | 'quoted-printable'; body: string } {
  const lines = text.toWellFormed().replaceAll(/\r\n?|\n/g, '\r\n')
  // oxlint-disable-next-line no-control-regex -- ASCII is what 7bit means
  if (/^[\t\r\n\x20-\x7e]*$/.test(lines) && !hasLongLine(lines)) return { encoding: '7bit', body: lines }
  return { encoding: 'quoted-printable', body: lines.split('\r\n').map(quote).join('\r\n') }
}

/** Whether a line is longer than relays carry for sure; one pass, where a regular expression takes one a character. */
function hasLongLine(text: string): boolean {
  for (let start = 0; start < text.length;) {
    const end = text.indexOf('\r\n', start)
    const next = end === -1 ? text.length : end
    if (next - start >= LONG_LINE) return true
    start = next + 2
  }
  return false
}

function quote(line: string): string {
  const bytes = Buffer.from(line)
  let written = ''
  let width = 0
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] ?? 0
    const isLast = index === bytes.length - 1
    const isPlain = (byte > 32 && byte < 127 && byte !== 61) || ((byte === 32 || byte === 9) && !isLast)
    const shown = isPlain ? String.fromCharCode(byte) : `=${HEX[byte >> 4]}${HEX[byte & 15]}`
    if (width + shown.length > MAXIMUM_LINE - 1) {
      written += '=\r\n'
      width = 0
    }
    written += shown
    width += shown.length
  }
  return written
}

/** RFC 5322 3.3, in UTC. */
function formatDate(date: Date): string {
  return date.toUTCString().replace('GMT', '+0000')
}
