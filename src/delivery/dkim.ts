import { hash, sign } from 'node:crypto'
import { promisify } from 'node:util'

import type { SigningKey } from '../domain/domains/keys.ts'

/**
 * Headers that are signed one time more often than they occur, so that nobody can add another (RFC 6376 8.15): a second
 * From or an added Reply-To breaks the signature.
 */
const ALWAYS = [
  'from',
  'to',
  'cc',
  'reply-to',
  'subject',
  'date',
  'message-id',
  'mime-version',
  'content-type',
]
/**
 * Headers that are signed the same way, but only when present: a relay may add its own to mail that has none. RFC 8058
 * wants both signed.
 */
const WHERE_PRESENT = ['list-unsubscribe', 'list-unsubscribe-post']
const LINE = 76

const signAsync = promisify(sign)

/**
 * Returns the DKIM-Signature header of a message, with its line end (RFC 6376: rsa-sha256, relaxed/relaxed). Headers
 * and body are given as they are sent, with CRLF line ends, before dot stuffing. The RSA work runs in libuv's threads.
 */
export async function signMail(headers: string, body: string, key: SigningKey): Promise<string> {
  const present = readHeaders(headers)
  const names = [
    ...ALWAYS.flatMap((name) => [...(present.get(name) ?? []).map(() => name), name]),
    ...WHERE_PRESENT.flatMap((name) => (present.get(name) ?? []).flatMap(() => [name, name])),
  ]
  const unsigned = [
    `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=${key.domain};`,
    ` s=${key.selector}; t=${Math.floor(Date.now() / 1_000)};`,
    ...foldNames(names),
    ` bh=${hash('sha256', Buffer.from(relaxBody(body), 'latin1'), 'base64')};`,
    ' b=',
  ].join('\r\n')
  const signed = names.map((name) => present.get(name)?.pop() ?? '').join('') + relaxHeader(unsigned)
  const signature = await signAsync('sha256', Buffer.from(signed, 'latin1'), key.privateKey)
  return `${unsigned}${foldText(signature.toString('base64'))}\r\n`
}

/**
 * Returns the canonical lines of each header by name, in their order: signing takes the last one first (RFC 6376
 * 5.4.2).
 */
function readHeaders(headers: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const line of headers.split(/\r\n(?![\t ])/)) {
    if (line === '') continue
    const canonical = relaxHeader(line)
    const name = canonical.slice(0, canonical.indexOf(':'))
    const lines = found.get(name)
    if (lines) lines.push(`${canonical}\r\n`)
    else found.set(name, [`${canonical}\r\n`])
  }
  return found
}

/** Canonicalizes a header (RFC 6376 3.4.2); the result has no line end. */
function relaxHeader(line: string): string {
  const colon = line.indexOf(':')
  const value = line.slice(colon + 1).replaceAll(/[\t\r\n ]+/g, ' ')
  return `${line.slice(0, colon).trimEnd().toLowerCase()}:${value.trim()}`
}

/** Canonicalizes a body (RFC 6376 3.4.4). Most bodies need no change, and one look for blanks costs the least. */
function relaxBody(body: string): string {
  const isPlain = !body.includes('\t') && !/ [ \r]/.test(body)
  const relaxed = isPlain ? body : body.replaceAll(/[\t ]+/g, ' ').replaceAll(' \r\n', '\r\n')
  let end = relaxed.endsWith(' ') ? relaxed.length - 1 : relaxed.length
  while (relaxed.startsWith('\r\n', end - 2) && end >= 2) end -= 2
  return end === 0 ? '' : `${relaxed.slice(0, end)}\r\n`
}

function foldNames(names: readonly string[]): string[] {
  const lines = [' h=']
  for (const [index, name] of names.entries()) {
    const text = `${name}${index === names.length - 1 ? ';' : ':'}`
    const last = lines.at(-1) ?? ''
    if (last.length + text.length > LINE) lines.push(` ${text}`)
    else lines[lines.length - 1] = last + text
  }
  return lines
}

function foldText(text: string): string {
  return (text.match(/.{1,72}/g) ?? []).join('\r\n ')
}
