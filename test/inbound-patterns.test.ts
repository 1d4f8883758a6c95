import test from 'ava'

import { readReport } from '../smtp/reports/read-report.ts'

/** Sizes in characters: nearly the largest header, and nearly all that is parsed of a message. */
const HEADER = 120_000
const BODY = 240_000
/**
 * Seconds of processor time. Quadratic work takes a second or more on these inputs; linear work, a few milliseconds.
 */
const MOST_SECONDS = 0.4

const filled = (piece: string, length: number): string => piece.repeat(Math.floor(length / piece.length))

function said(text: string, header = 'Subject: failure notice'): string {
  return `From: mailer-daemon@x.example\r\n${header}\r\n\r\n${text}`
}

function notified(fields: string, text = ''): string {
  const type = 'multipart/report; report-type=delivery-status; boundary=b'
  const part = `Content-Type: message/delivery-status\r\n\r\n${fields}`
  return said(
    `--b\r\n\r\n${text}\r\n--b\r\n${part}\r\n--b--\r\n`,
    `MIME-Version: 1.0\r\nContent-Type: ${type}`,
  )
}

function returned(header: string): string {
  const part = `Content-Type: message/rfc822\r\n\r\n${header}\r\n\r\nx`
  return said(`--b\r\n${part}\r\n--b--\r\n`, 'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b')
}

const subjects = [
  'deliver',
  'delivery status notification (',
  'mail delivery ',
  'returned ',
  'could not be ',
  'non-',
  'auto ',
  'auto-',
  'on ',
  'Re[1',
  'your message ',
  '[a',
  'automat',
  'please confirm ',
  '[confirm',
  'Re: ',
  'Re:',
  ' ',
  '=?utf-8?q?deliver?= ',
]
const words = [
  ' ',
  '\r\n',
  '>\r\n',
  '> ',
  '-',
  '- ',
  '>-',
  '<',
  '<a ',
  'a',
  '5.1',
  '550 ',
  '4',
  'final',
  'warning: ',
  'will be ',
  'user ',
  'user a b c ',
  `user ${'a'.repeat(79)} ${'b'.repeat(79)} `,
  'mailbox ',
  'mailbox is ',
  'domain ',
  'by due for ',
  'policy by a b c d ',
  'do not have a ',
  'could not be delivered for 1',
  'exceeds its mailbox storage disk ',
  'message has been ',
  'Final-Recipient:',
  'Final-Recipient:\r\n',
  'i am currently ',
]
const BOMBS: Record<string, string> = {
  ...Object.fromEntries(
    subjects.map((piece) => [`Subject: ${piece}`, said('x', `Subject: ${filled(piece, HEADER)}x`)]),
  ),
  ...Object.fromEntries(words.map((piece) => [`words: ${piece}`, said(`${filled(piece, BODY)}x`)])),
  markup: said(filled('<a', BODY), 'Content-Type: text/html'),
  'markup that is closed': said(filled('<a>', BODY), 'Content-Type: text/html'),
  'blanks that a decoder cuts off': said(
    `${filled(' ', 60_000)}x`,
    'Content-Transfer-Encoding: quoted-printable',
  ),
  'soft line ends': said(filled('=\r\n', BODY), 'Content-Transfer-Encoding: quoted-printable'),
  'a name': said('x').replace('mailer-daemon', `"${filled('mail delivery ', HEADER)}" <a`),
  'a local part': said('x').replace('mailer-daemon', `microsoftexchange${filled('a', HEADER)}`),
  'a local part with a sign': said('x').replace('mailer-daemon', filled('bounces+', HEADER)),
  'a type': said('x', `Content-Type: multipart/report; ${filled('delivery-statu', HEADER)}`),
  'a precedence': said('x', `Precedence: ${filled('auto', HEADER)}`),
  'statuses that say nothing, and words for each': notified(
    filled('Status: 5.0.0\r\n\r\n', 64_000),
    filled(`user ${'a'.repeat(70)} ${'b'.repeat(70)}\r\n`, 20_000),
  ),
  'a status': notified(`Status: ${filled('5.1.', 64_000)}`),
  'an action': notified(`Action: ${filled('failed', 64_000)}`),
  'a diagnostic': notified(`Action: failed\r\nDiagnostic-Code: ${filled('a', 64_000)}`),
  'a diagnostic of blanks': notified(`Action: failed\r\nDiagnostic-Code: a${filled(' \r\n ', 64_000)}`),
  'folded lines': notified(`Status: 5.0.0${filled('\r\n ', 64_000)}`),
  'empty lines': notified(`Status: 5.0.0${filled('\r\n', BODY)}x: y`),
  'a returned header': returned(filled('X: y\r\n', BODY)),
  'a returned header without an end': returned(filled('\r', BODY)),
  'a return path': returned(`Return-Path: ${filled('a', 64_000)}`),
  'a link': returned(`List-Unsubscribe: ${filled('/u/', 64_000)}`),
  'a long link': returned(`List-Unsubscribe: /u/${filled('a', 64_000)}`),
}

test('reading a report takes time in proportion to its length, whatever is in it', async (t) => {
  await readReport(Buffer.from(said('x')), { isNullSender: true })
  for (const [name, raw] of Object.entries(BOMBS)) {
    for (const isNullSender of [true, false]) {
      const began = process.cpuUsage()
      await readReport(Buffer.from(raw), { isNullSender })
      const { user, system } = process.cpuUsage(began)
      const seconds = (user + system) / 1e6
      t.true(seconds < MOST_SECONDS, `${JSON.stringify(name)} took ${seconds} s of a processor`)
    }
  }
})
