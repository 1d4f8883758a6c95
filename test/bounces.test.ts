import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import test from 'ava'

import { readDeliveryStatus } from '../smtp/reports/delivery-status.ts'
import { readReport } from '../smtp/reports/read-report.ts'
import { bounceVerdict } from '../src/delivery/replies.ts'

const FOLDER = join(import.meta.dirname, 'bounces')
const RETURN_PATH = `${'a'.repeat(64)}@send.shop.example`

/** The expected kind of each message in the corpus; for bounces also status code and category. */
const EXPECTED: Record<string, string> = {
  'arf-aol': 'COMPLAINT',
  'arf-fraud': 'COMPLAINT',
  'arf-not-spam': 'AUTOMATIC',
  'arf-yahoo': 'COMPLAINT',
  'barracuda-blocked': 'BOUNCE 5.7.1 POLICY',
  'challenge-response': 'AUTOMATIC',
  'dmarc-failure-report': 'AUTOMATIC',
  'dmarc-refused': 'BOUNCE 5.7.26 POLICY',
  'domino-not-listed': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'exchange-2003-words': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'exchange-delayed': 'DELAY 4.4.7',
  'exchange-edge-blocked': 'BOUNCE 5.4.1 INTERNAL',
  'exchange-expired': 'BOUNCE 5.4.316 TRANSIENT',
  'exchange-mailbox-full': 'BOUNCE 5.2.2 MAILBOX_FULL',
  'exchange-recipient-not-found': 'BOUNCE 5.1.10 NO_SUCH_USER',
  'exim-delay': 'DELAY 4.4.7',
  'exim-delay-unexplained': 'DELAY 4.0.0',
  'exim-dsn-blocked': 'BOUNCE 5.7.1 POLICY',
  'exim-retry-timeout': 'BOUNCE 4.4.7 TRANSIENT',
  'exim-unrouteable': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'expired-for-good': 'BOUNCE 5.4.7 TRANSIENT',
  'fields-in-text': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'german-gateway': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'gmail-delay': 'DELAY 4.4.1',
  'gmail-delay-words': 'DELAY 4.0.0',
  'gmail-disabled': 'BOUNCE 5.2.1 POLICY',
  'gmail-not-found': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'gmail-over-quota': 'BOUNCE 4.2.2 MAILBOX_FULL',
  'groupwise-not-found': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'hotmail-jmrp': 'COMPLAINT',
  'html-only': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'left-the-company': 'AUTOMATIC',
  'mimecast-invalid-recipient': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'mimecast-rejected': 'BOUNCE 5.7.1 POLICY',
  'outlook-blocked-list': 'BOUNCE 5.7.1 POLICY',
  'outlook-no-mailbox': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'postfix-delayed': 'DELAY 4.4.1',
  'postfix-delivered': 'AUTOMATIC',
  'postfix-domain-not-found': 'BOUNCE 5.4.4 INTERNAL',
  'postfix-expired-greylist': 'BOUNCE 4.7.1 TRANSIENT',
  'postfix-loop': 'BOUNCE 5.4.6 TRANSIENT',
  'postfix-no-such-user': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'postfix-sender-refused': 'BOUNCE 5.1.8 SENDER_REFUSED',
  'postfix-sender-unlisted': 'BOUNCE 5.1.0 SENDER_REFUSED',
  'exim-sender-verify': 'BOUNCE 5.1.1 SENDER_REFUSED',
  'postfix-quota': 'BOUNCE 5.2.2 MAILBOX_FULL',
  'proofpoint-content': 'BOUNCE 5.6.0 CONTENT',
  'qmail-host-not-found': 'BOUNCE 5.1.2 NO_SUCH_USER',
  'qmail-no-mailbox': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'qmail-over-quota': 'BOUNCE 5.2.2 MAILBOX_FULL',
  'read-receipt': 'AUTOMATIC',
  reply: 'REPLY',
  'reply-about-bounces': 'REPLY',
  'reply-quoting-a-bounce': 'REPLY',
  'reply-with-a-bounce': 'REPLY',
  'sendmail-user-unknown': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'sendmail-warning': 'DELAY 4.4.1',
  'ses-permanent': 'BOUNCE 5.1.1 NO_SUCH_USER',
  'ses-transient-words': 'BOUNCE 4.4.7 TRANSIENT',
  'ticket-receipt': 'AUTOMATIC',
  'too-large': 'BOUNCE 5.3.4 CONTENT',
  'unknown-words': 'BOUNCE 5.0.0 POLICY',
  'utf8-global-dsn': 'BOUNCE 5.1.1 NO_SUCH_USER',
  vacation: 'AUTOMATIC',
  'vacation-german': 'AUTOMATIC',
  'vacation-outlook': 'AUTOMATIC',
  'virus-warning': 'BOUNCE 5.6.0 CONTENT',
  'yahoo-deferred': 'BOUNCE 4.7.0 TRANSIENT',
  'yahoo-disabled': 'BOUNCE 5.2.1 POLICY',
  'yahoo-no-account': 'BOUNCE 5.1.1 NO_SUCH_USER',
}
/** Messages with a sender. Messages from servers have an empty one (RFC 5321, 4.5.5). */
const FROM_MAILBOXES = new Set([
  'reply',
  'reply-about-bounces',
  'reply-quoting-a-bounce',
  'reply-with-a-bounce',
])

function message(name: string): Buffer {
  const text = readFileSync(join(FOLDER, `${name}.eml`), 'utf8')
  return Buffer.from(text.replaceAll('{{RETURN_PATH}}', RETURN_PATH).replaceAll('\n', '\r\n'))
}

test('every message of the corpus is told apart', async (t) => {
  const names = readdirSync(FOLDER).map((file) => file.replace(/\.eml$/, ''))
  t.deepEqual(names.toSorted(), Object.keys(EXPECTED).toSorted())
  const told = await Promise.all(
    names.map(async (name) => {
      const report = await readReport(message(name), { isNullSender: !FROM_MAILBOXES.has(name) })
      const { kind, status, diagnostic } = report
      const category = kind === 'BOUNCE' ? bounceVerdict(status ?? '', diagnostic ?? '') : ''
      if (kind === 'BOUNCE') t.truthy(diagnostic, `${name} says why`)
      return [name, [kind, status, category].filter(Boolean).join(' ')] as const
    }),
  )
  t.deepEqual(Object.fromEntries(told), EXPECTED)
})

test('a failure counts although spaces stand in the empty line before its recipient', async (t) => {
  const recipients = [
    ['Final-Recipient: rfc822; a@reader.example', 'Action: delivered', 'Status: 2.0.0'],
    ['Final-Recipient: rfc822; b@reader.example', 'Action: failed', 'Status: 5.1.1'],
  ]
  for (const between of ['', ' ', '\t ', ' \r\n']) {
    const fields = [['Reporting-MTA: dns; mx.reader.example'], ...recipients]
      .map((group) => group.join('\r\n'))
      .join(`\r\n${between}\r\n`)
    t.like(readDeliveryStatus(fields, ''), { action: 'failed', status: '5.1.1' }, JSON.stringify(between))
  }
})

test('an absence or a complaint is the same whoever the envelope names', async (t) => {
  for (const name of [
    'vacation',
    'left-the-company',
    'ticket-receipt',
    'arf-yahoo',
    'postfix-no-such-user',
  ]) {
    const { kind } = await readReport(message(name), { isNullSender: false })
    t.is(kind, EXPECTED[name]?.split(' ')[0] as typeof kind, name)
  }
})

test('what a server writes into the text is read, by its name or by the null sender', async (t) => {
  const raw = message('fields-in-text').toString()
  const unnamed = raw.replace('MAILER-DAEMON@', 'gateway@')
  const untyped = message('utf8-global-dsn')
    .toString()
    .replace('MAILER-DAEMON@', 'gateway@')
    .replace(' report-type=delivery-status;', '')
  for (const [text, isNullSender, kind] of [
    [raw, false, 'BOUNCE'],
    [unnamed, true, 'BOUNCE'],
    [unnamed, false, 'REPLY'],
    [untyped, false, 'BOUNCE'],
  ] as const) {
    t.is((await readReport(Buffer.from(text), { isNullSender })).kind, kind)
  }
})

test('a report says by a signed address which email it is about', async (t) => {
  const token = 'a'.repeat(64)
  for (const name of [
    'arf-yahoo',
    'arf-aol',
    'arf-fraud',
    'hotmail-jmrp',
    'postfix-no-such-user',
    'postfix-quota',
  ]) {
    const { returned } = await readReport(message(name), { isNullSender: true })
    t.is(returned.returnPaths[0], token, name)
  }
})

/** Subjects of messages that have a sender and no header that identifies them as automatic. */
const SUBJECTS = {
  REPLY: [
    'Re: Vacation deals for July',
    'Re: On holiday with us?',
    'Re: Absent friends',
    'Re: Please confirm your booking',
    'RE[2]: Out of office: the new season',
    'AW: Automatische Antwort gesucht',
    'SV: Fuera de la oficina',
    'Fwd: Your message requires verification',
    'Vacation deals for July, please',
    'On holiday until when?',
    'Absent friends',
    'Oooh, lovely',
    'Please confirm your booking',
    'Confirm my booking',
    'I would like to confirm that you are open',
    'My order requires confirmation',
  ],
  AUTOMATIC: [
    'Out of Office: Hello',
    'Out of Office Re: Hello',
    'Automatic reply: Re: Hello',
    '[Auto-Reply] Hello',
    'Auto: Hello',
    'OOO: Hello',
    'Vacation: Hello',
    'Vacation reply',
    'On vacation',
    'On annual leave - Re: Hello',
    'I am out of the office until Monday',
    'Away from my desk',
    'Automatische Antwort: Hallo',
    'Abwesenheitsnotiz: Hallo',
    'Abwesend: Hallo',
    'Nicht im Büro: Hallo',
    'Réponse automatique : Bonjour',
    'Absence du bureau',
    'Absent : Bonjour',
    'Fuera de la oficina: Hola',
    'Respuesta automática: Hola',
    'Ausente: Hola',
    'Assente: Ciao',
    'Fuori sede: Ciao',
    'Risposta automatica: Ciao',
    'Resposta automática: Olá',
    'Fora do escritório: Olá',
    'Automatisch antwoord: Hallo',
    'Afwezig: Hallo',
    'Autosvar: Hej',
    'Automatiskt svar: Hej',
    'Odpowiedź automatyczna: Cześć',
    'Please confirm your message',
    '[Confirm] your email to Lin',
    'Your email requires verification verify#4711',
    'Sender verification',
  ],
} as const

test('an absence is told from an answer by its subject, where nothing else tells', async (t) => {
  for (const kind of ['REPLY', 'AUTOMATIC'] as const) {
    for (const subject of SUBJECTS[kind]) {
      const raw = `From: Lin <lin@reader.example>\r\nSubject: ${subject}\r\n\r\nHello`
      const told = await readReport(Buffer.from(raw), { isNullSender: false })
      t.is(told.kind, kind, subject)
    }
  }
})

test('what a program says of itself by a header decides, whatever the subject', async (t) => {
  for (const header of [
    'Auto-Submitted: auto-replied',
    'X-Autoreply: yes',
    'Precedence: bulk',
    'List-Id: <x.example>',
  ]) {
    const raw = `From: Lin <lin@reader.example>\r\n${header}\r\nSubject: Re: Hello\r\n\r\nHello`
    t.is((await readReport(Buffer.from(raw), { isNullSender: false })).kind, 'AUTOMATIC', header)
  }
  const raw = Buffer.from('From: Lin <lin@reader.example>\r\nSubject: Re: Hello\r\n\r\nHello')
  t.is((await readReport(raw, { isNullSender: true })).kind, 'AUTOMATIC', 'the null sender')
})
