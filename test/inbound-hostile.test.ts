import anyTest, { type TestFn } from 'ava'
import fc from 'fast-check'
import { sql } from 'kysely'

import { INBOUND_BYTES } from '../smtp/inbound.ts'
import { readReport } from '../smtp/reports/read-report.ts'
import { row } from '../src/database.ts'
import type { TestOrganization } from './helpers/api.ts'
import { openPostOffice, type PostOffice, readReportFile, type SentEmail } from './helpers/reports.ts'
import { ANY_WORDS, Talk } from './helpers/smtp-talk.ts'

type Context = { office: PostOffice; organization: TestOrganization; email: SentEmail }
const test = anyTest as TestFn<Context>

test.before(async (t) => {
  const office = await openPostOffice()
  const organization = await office.api.organization()
  t.context = { office, organization, email: await office.send(organization) }
})
test.after.always(async (t) => {
  await t.context.office?.close()
})

/** Messages that are expensive to parse. Each must be refused, or yield nothing special. */
const BOMBS: Record<string, () => string> = {
  'parts in parts in parts': () =>
    multipart(Array.from({ length: 900 }, (_, at) => `--b${at}\r\n${boundary(at + 1)}\r\n`).join('')),
  'tens of thousands of parts': () => multipart('--b0\r\n\r\nx\r\n'.repeat(200_000)),
  'messages in messages': () => `${'Content-Type: message/rfc822\r\n\r\n'.repeat(20_000)}x`,
  'a header of megabytes': () => `Subject: ${'x'.repeat(3_000_000)}\r\n\r\nx`,
  'fields by the ten thousand': () => `${'X: y\r\n'.repeat(21_000)}\r\nx`,
  'recipients by the ten thousand': () => `To: ${'a@b.example, '.repeat(9_000)}x@y.example\r\n\r\nx`,
  'comments in comments': () => `To: ${'('.repeat(100_000)}\r\n\r\nx`,
  'parameters by the thousand': () => `Content-Type: text/plain; ${'a*1=b; '.repeat(15_000)}\r\n\r\nx`,
  'one line of megabytes': () => `From: mailer-daemon@x.example\r\n\r\n${'user '.repeat(900_000)}`,
  'markup that never ends': () =>
    `From: mailer-daemon@x.example\r\nContent-Type: text/html\r\n\r\n${'<a '.repeat(1_500_000)}`,
  'a status of a hundred thousand recipients': () =>
    report('Action: delayed\r\nStatus: 4.4.1\r\n\r\n'.repeat(100_000)),
  'folded lines without end': () => report(`Status: 4.4.1\r\n${' x\r\n'.repeat(500_000)}`),
  'bytes that are no text': () => String.fromCharCode(...Array.from({ length: 50_000 }, (_, at) => at % 256)),
}

function boundary(at: number): string {
  return `Content-Type: multipart/mixed; boundary=b${at}\r\n`
}

function multipart(parts: string): string {
  return `MIME-Version: 1.0\r\n${boundary(0)}\r\n${parts}`
}

function report(fields: string): string {
  return `MIME-Version: 1.0\r\n${boundary(0)}\r\n--b0\r\nContent-Type: message/delivery-status\r\n\r\n${fields}\r\n--b0--\r\n`
}

test.serial('bombs of every kind end quickly, in bounded memory, and change nothing', async (t) => {
  const { office, email } = t.context
  const before = process.memoryUsage().rss
  for (const [name, make] of Object.entries(BOMBS)) {
    const began = process.cpuUsage()
    const reply = await office.report(make(), email.returnPath)
    const { user, system } = process.cpuUsage(began)
    t.regex(reply, /^(?:250|5\d\d) /, name)
    t.true((user + system) / 1e6 < 5, `${name} took ${(user + system) / 1e6} s of a processor`)
  }
  t.true(process.memoryUsage().rss - before < 600e6)
  t.is((await office.email(email.id)).status, 'SENT')
})

test('a message over the limit is refused, announced or not, and the next one is taken', async (t) => {
  const { office, email } = t.context
  const talk = await Talk.open(office.door.port)
  t.regex(await talk.say('EHLO mx.test'), new RegExp(`SIZE ${INBOUND_BYTES}`))
  t.regex(await talk.say(`MAIL FROM:<> SIZE=${INBOUND_BYTES + 1}`), /^552 /)
  talk.close()
  const large = `Subject: x\r\n\r\n${'x'.repeat(76)}\r\n`.padEnd(INBOUND_BYTES + 1_000, 'y\r\n')
  t.regex(await office.report(large, email.returnPath), /^552 5\.3\.4 /)
  t.regex(await office.bring('vacation', email), /^250/)
})

test('a message that went round in a circle is refused', async (t) => {
  const { office, email } = t.context
  const raw = `${'Received: from a by b; Mon, 2 Mar 2026 09:15:00 +0000\r\n'.repeat(60)}${readReportFile('reply')}`
  t.regex(await office.report(raw, email.returnPath), /^554 5\.4\.6 /)
})

test('unknown addresses by the thousand are cut off, and others go on', async (t) => {
  const { office, organization } = t.context
  const email = await office.send(organization)
  const door = await office.openDoor({ unknownRecipients: 10 })
  t.teardown(() => door.close())
  const replies: string[] = []
  for (let at = 0; at < 1_000 && replies.at(-1) !== ''; at += 1) {
    const talk = await Talk.open(door.port, '127.0.0.3')
    await talk.say('EHLO guess.example')
    await talk.say('MAIL FROM:<>')
    replies.push(
      await talk.say(`RCPT TO:<${'a'.repeat(60)}${String(at).padStart(4, 'b')}@send.shop.example>`),
    )
    talk.close()
  }
  t.is(replies.length, 11, 'the next connection is ended at once')
  t.true(replies.slice(0, 10).every((reply) => reply.startsWith('550 5.1.1')))
  const raw = readReportFile('postfix-quota')
  t.regex(await office.report(raw, email.returnPath, { door, origin: '127.0.0.4' }), /^250/)
  t.is((await office.email(email.id)).status, 'BOUNCED')
})

test('conversations of any words hurt nobody, and smuggle nothing in', async (t) => {
  const { office, email } = t.context
  const words = fc.constantFrom(
    ...ANY_WORDS,
    'HELO',
    'MAIL FROM:<>',
    'MAIL FROM:<a@b.example> BODY=8BITMIME',
    `RCPT TO:<${email.returnPath}>`,
    'RCPT TO:<victim@elsewhere.example>',
    '',
    'EXPN list',
    'HELP',
    'TURN',
    'QUIT',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(words, { maxLength: 12 }), async (lines) => {
      const talk = await Talk.open(office.door.port, '127.0.0.5')
      talk.write(`${lines.join('\r\n')}\r\n`)
      talk.close()
    }),
    { numRuns: 40 },
  )
  for (const end of ['\n.\n', '\r.\r', '\n.\r\n', '\r\n.\n', '\r\n.\r']) {
    const talk = await Talk.open(office.door.port)
    for (const line of ['EHLO x', 'MAIL FROM:<>', `RCPT TO:<${email.returnPath}>`, 'DATA'])
      await talk.say(line)
    const second = `MAIL FROM:<>\r\nRCPT TO:<${email.returnPath}>\r\nDATA\r\nFrom: mailer-daemon@x\r\n\r\n550 5.1.1 user unknown`
    talk.write(`Subject: hello\r\n\r\nHello${end}${second}\r\n.\r\nNOOP\r\n`)
    t.regex(await talk.reply(), /^250 /, JSON.stringify(end))
    t.regex(await talk.reply(), /^250 /, 'the next reply is to NOOP: it was one message')
    talk.close()
  }
  t.is((await office.email(email.id)).status, 'SENT')
  const relayed = office.sink.journal.filter(({ recipient }) => recipient.includes('elsewhere'))
  t.is(relayed.length, 0)
})

test('what a report says is stored as text, whatever it says', async (t) => {
  const { office, organization } = t.context
  const email = await office.send(organization)
  const said = `550 5.1.1 \u0000 \u0007 \ud800 <script>'; drop table message; -- ${'x'.repeat(5_000)}`
  t.regex(
    await office.report(
      report(`Action: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; ${said}`),
      email.returnPath,
    ),
    /^250/,
  )
  const stored = await row<{ length: number; response: string }>(
    office.api.services.orm.em.fork(),
    sql`select length(response) as length, response from message where id = ${email.id}`,
  )
  t.true((stored?.length ?? 0) <= 1_000)
  t.regex(stored?.response ?? '', /^550 5\.1\.1 .*<script>'; drop table message/)
})

test('no bytes at all make the reading of reports throw or hang', async (t) => {
  const seed = readReportFile('postfix-no-such-user')
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(seed.length), fc.string({ unit: 'binary', maxLength: 30 })), { maxLength: 8 }),
      async (edits) => {
        const raw = edits.reduce((text, [at, more]) => text.slice(0, at) + more + text.slice(at + 3), seed)
        const { kind, status } = await readReport(Buffer.from(raw), { isNullSender: true })
        t.true(['BOUNCE', 'DELAY', 'AUTOMATIC', 'COMPLAINT'].includes(kind))
        if (status !== null) t.regex(status, /^[245]\.\d{1,3}\.\d{1,3}$/)
      },
    ),
    { numRuns: 300 },
  )
})
