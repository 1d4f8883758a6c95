import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'

import anyTest, { type ExecutionContext, type TestFn } from 'ava'
import fc from 'fast-check'
import { sql } from 'kysely'
import { simpleParser } from 'mailparser'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { pino } from 'pino'

import { selfSigned } from '../scripts/services/certificate.ts'
import { MESSAGE_BYTES, type SubmissionOptions } from '../smtp/submission.ts'
import { execute } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { QUICK } from './helpers/mailroom.ts'
import { type InboundDoor, openSubmission, type Submitted, submittedBy } from './helpers/reports.ts'
import { startSmtpSink } from './helpers/smtp-sink.ts'
import { ANY_WORDS, plain, Talk } from './helpers/smtp-talk.ts'

type Context = { api: TestApi; door: InboundDoor; organization: TestOrganization }

const test = anyTest as TestFn<Context>

test.before(async (t) => {
  const api = await startApi()
  t.context = { api, door: await openDoor(api), organization: await api.organization() }
})
test.after.always(async (t) => {
  await t.context.door.close()
  await t.context.api.close()
})

async function openDoor(
  { services, url }: TestApi,
  { apiUrl = url, ...options }: Partial<SubmissionOptions> & { apiUrl?: string } = {},
): Promise<InboundDoor> {
  return await openSubmission(services, apiUrl, options)
}

/** Opens a submission listener whose API delivers to a sink of its own. */
async function openWay(t: ExecutionContext<Context>, options: { utf8?: boolean } = {}) {
  const sink = await startSmtpSink({}, options)
  const api = await startApi({ RELAY_URL: sink.url })
  const lanes = await startLanes(api.services, { workerName: 'test', lane: QUICK, reviveMs: 50 })
  const door = await openDoor(api)
  t.teardown(async () => {
    await door.close()
    await lanes.stop()
    await api.close()
    await sink.close()
  })
  return { sink, api, door, organization: await api.organization() }
}

async function stored({ services }: TestApi, organizationId: string): Promise<Submitted[]> {
  return await submittedBy(services, organizationId)
}

function transport({ port, cert }: InboundDoor, token: string) {
  return createTransport({
    host: 'localhost',
    port,
    requireTLS: true,
    tls: { ca: cert },
    auth: { user: 'any-name', pass: token },
  })
}

function message(organization: TestOrganization, lines: readonly string[], body = 'Hello\r\n'): string {
  return [`From: hello@${organization.domain}`, 'Subject: A note', ...lines, '', body].join('\r\n')
}

/**
 * Submits one message on a new connection. Returns the reply to the end of the data, or the first refusal before it.
 */
async function submit(t: Context, organization: TestOrganization, raw: string, to = 'ada@reader.example') {
  const talk = await Talk.loggedIn(t.door, organization.token)
  try {
    await talk.say(`MAIL FROM:<bounces@${organization.domain}>`)
    const recipient = await talk.say(`RCPT TO:<${to}>`)
    if (!recipient.startsWith('250')) return recipient
    await talk.say('DATA')
    talk.write(`${raw}\r\n.\r\n`)
    return await talk.reply()
  } finally {
    talk.close()
  }
}

test('a client submits an email: both parts, reply address, umlauts; it is stored untracked before 250', async (t) => {
  const { api, door } = t.context
  const organization = await api.organization()
  const info = await transport(door, organization.token).sendMail({
    from: { name: 'Zoë "Z" Shop', address: `hello@${organization.domain}` },
    to: 'ada@reader.example',
    replyTo: 'answers@reader.example',
    subject: 'Grüße aus Łódź',
    text: 'Plain words.\n.\n..dots\n',
    html: '<p>Rich <b>words</b> – ünïcode</p>',
  })
  t.regex(info.response, /^250 2\.6\.0 queued as eml_/)
  const [email, ...more] = await stored(api, organization.id)
  t.is(more.length, 0)
  t.like(email, {
    recipient: 'ada@reader.example',
    fromName: 'Zoë "Z" Shop',
    fromEmail: `hello@${organization.domain}`,
    replyTo: 'answers@reader.example',
    tracking: false,
    source: { subject: 'Grüße aus Łódź', content: '<p>Rich <b>words</b> – ünïcode</p>', contentType: 'HTML' },
  })
  t.is(email?.source.text?.trim(), 'Plain words.\n.\n..dots')
})

test('what leaves is written anew: both parts as they were meant, variables filled, nothing counted', async (t) => {
  const { sink, door, organization } = await openWay(t)
  await transport(door, organization.token).sendMail({
    from: `hello@${organization.domain}`,
    to: 'ada@reader.example',
    subject: 'For {{email}}',
    text: 'Words for {{email}}\n  as they stand',
    html: '<p>Other words, <a href="https://shop.example/x">a link</a></p>',
    headers: { 'X-Secret': 'kept back' },
  })
  const [arrived] = await eventually('the email', () => (sink.accepted().length > 0 ? sink.accepted() : null))
  const raw = arrived?.raw.toString() ?? ''
  const mail = await simpleParser(raw)
  t.is(mail.subject, 'For ada@reader.example')
  t.is(mail.text?.trim(), 'Words for ada@reader.example\n  as they stand')
  t.true(String(mail.html).includes('<a href="https://shop.example/x">a link</a>'))
  for (const absent of ['X-Secret', 'List-Unsubscribe', '/o/', '/c/']) t.false(raw.includes(absent), absent)
})

test('plain text alone is sent as it stands, and as HTML that means the same', async (t) => {
  const { api, door } = t.context
  const organization = await api.organization()
  await transport(door, organization.token).sendMail({
    from: `hello@${organization.domain}`,
    to: 'ada@reader.example',
    subject: 'Backup <done>',
    text: 'Took 3 < 4 minutes & no "errors"\nBye',
  })
  const [email] = await stored(api, organization.id)
  t.is(email?.source.text?.trim(), 'Took 3 < 4 minutes & no "errors"\nBye')
  t.regex(email?.source.content ?? '', /Took 3 &lt; 4 minutes &amp; no "errors"<br>\nBye/)
})

test('an HTML part without a word is as none: the text is sent', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const lines = ['MIME-Version: 1.0', 'Content-Type: multipart/alternative; boundary=b']
  const body =
    '--b\r\nContent-Type: text/plain\r\n\r\nWords\r\n--b\r\nContent-Type: text/html\r\n\r\n \r\n\r\n--b--\r\n'
  t.regex(await submit(t.context, organization, message(organization, lines, body)), /^250 /)
  const [email] = await stored(api, organization.id)
  t.regex(email?.source.content ?? '', /Words/)
  const html = message(organization, ['Content-Type: text/html'], ' \r\n')
  t.regex(await submit(t.context, organization, html), /^550 5\.6\.0 .*neither a text nor an HTML part/)
})

test('an address that is none is refused as invalid at once, in the words of the contract', async (t) => {
  const { door, organization } = t.context
  const talk = await Talk.loggedIn(door, organization.token)
  t.teardown(() => talk.close())
  t.regex(await talk.say('MAIL FROM:<nonsense>'), /^550 5\.1\.7 /)
  t.regex(await talk.say(`MAIL FROM:<a@${organization.domain}>`), /^250 /)
  for (const to of ['nonsense', '', '"a b"@reader.example']) {
    t.regex(await talk.say(`RCPT TO:<${to}>`), /^550 5\.1\.3 /, to)
  }
  t.regex(await talk.say('RCPT TO:<ada@reader.example>'), /^250 /)
})

test('the same message again is the same email; a key decides before the Message-ID', async (t) => {
  const { api, door } = t.context
  const organization = await api.organization()
  const mailer = transport(door, organization.token)
  const mail: SendMailOptions = {
    from: `hello@${organization.domain}`,
    to: 'ada@reader.example',
    subject: 'Once',
    text: 'Once',
    messageId: '<one@client.test>',
    date: new Date(0),
  }
  const first = await mailer.sendMail(mail)
  const again = await mailer.sendMail(mail)
  t.is(again.response, first.response)
  await mailer.sendMail({ ...mail, to: 'lin@reader.example' })
  await mailer.sendMail({ ...mail, headers: { 'X-Idempotency-Key': 'order-1' } })
  await mailer.sendMail({
    ...mail,
    messageId: '<two@client.test>',
    headers: { 'X-Idempotency-Key': 'order-1' },
  })
  t.is((await stored(api, organization.id)).length, 3)
  const changed = await t.throwsAsync(mailer.sendMail({ ...mail, text: 'Something else' }))
  t.regex(changed?.message ?? '', /550 5\.6\.0 .*same Message-ID/)
  t.notRegex(changed?.message ?? '', /Idempotency/)
  const keyed = { ...mail, text: 'Something else', headers: { 'X-Idempotency-Key': 'order-1' } }
  const other = await t.throwsAsync(mailer.sendMail(keyed))
  t.regex(other?.message ?? '', /550 5\.6\.0 .*same X-Idempotency-Key/)
})

test('what the plan has no email left for is put off', async (t) => {
  const { api, door } = t.context
  const organization = await api.organization({ customLimits: { emailsPerMonth: 1 } })
  const mailer = transport(door, organization.token)
  const mail = { from: `hello@${organization.domain}`, to: 'ada@reader.example', text: 'Hello' }
  await mailer.sendMail({ ...mail, subject: 'One' })
  const refused = await t.throwsAsync(mailer.sendMail({ ...mail, subject: 'Two' }))
  t.regex(refused?.message ?? '', /452 4\.7\.0 .*1 email a month and none is left/)
})

test('login: only after STARTTLS, PLAIN and LOGIN, any user name, a token that may send', async (t) => {
  const { api, door, organization } = t.context
  const open = await Talk.open(door.port)
  const greeting = await open.say('EHLO client.test')
  for (const word of [
    'PIPELINING',
    '8BITMIME',
    'SMTPUTF8',
    'ENHANCEDSTATUSCODES',
    `SIZE ${MESSAGE_BYTES}`,
    'STARTTLS',
  ]) {
    t.true(greeting.includes(word), word)
  }
  t.false(greeting.includes('AUTH'), 'a login is not offered over an open line')
  t.regex(await open.say(`AUTH PLAIN ${plain('x', organization.token)}`), /^530 5\.7\.0 /)
  t.regex(await open.say('MAIL FROM:<a@b.example>'), /^530 5\.7\.0 /)
  open.close()

  const talk = await Talk.secured(door)
  t.regex(await talk.say('MAIL FROM:<a@b.example>'), /^530 5\.7\.0 /)
  for (const wrong of ['pl_wrong', '', 'two words', 'pl_\u20ac']) {
    const reply = await talk.say(`AUTH PLAIN ${plain('x', wrong)}`)
    t.regex(reply, /^535 5\.7\.8 .*password/, wrong)
    t.notRegex(reply, /Authorization|Bearer/)
  }
  t.regex(await talk.say(`AUTH PLAIN ${plain('', organization.token)}`), /^535 5\.7\.8 /)
  const reader = await organization.tokenWith(['subscribers'])
  t.regex(await talk.say(`AUTH PLAIN ${plain('x', reader)}`), /^535 5\.7\.8 .*emails/)
  await talk.say('AUTH LOGIN')
  await talk.say(Buffer.from('anything').toString('base64'))
  t.regex(await talk.say(Buffer.from(organization.token).toString('base64')), /^235 2\.7\.0 /)
  talk.close()
  const { body } = await api.request('GET', '/api/v2/tokens/current', { token: reader })
  t.deepEqual(body.permissions, ['subscribers'])
})

test('commands that come together are answered together, in one TLS record, whatever the answers are', async (t) => {
  const { door, organization } = t.context
  const talk = await Talk.loggedIn(door, organization.token)
  t.teardown(() => talk.close())
  const before = talk.pieces
  const commands = ['MAIL FROM:<a@b.example>', 'RCPT TO:<c@d.example>', 'RCPT TO:<e@f.example>', 'DATA']
  talk.write(`${commands.join('\r\n')}\r\n`)
  for (const code of [250, 250, 550, 354]) t.regex(await talk.reply(), new RegExp(`^${code} `))
  t.is(talk.pieces - before, 1)
})

test('what one message may be: each refusal has its reply, and nothing is stored', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const other = await api.organization()
  const attachment = ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=b']
  const parts = (type: string, extra = '') =>
    `--b\r\nContent-Type: text/plain\r\n\r\nHi\r\n--b\r\nContent-Type: ${type}\r\n${extra}\r\nAAAA\r\n--b--\r\n`
  const cases: [name: string, raw: string, reply: RegExp, to?: string][] = [
    ['no From', 'Subject: x\r\n\r\nHello\r\n', /^550 5\.1\.7 /],
    ['two senders', message(organization, []).replace('From: ', 'From: a@b.example, '), /^550 5\.1\.7 /],
    [
      'two From headers',
      message(organization, [`From: other@${organization.domain}`]),
      /^550 5\.1\.7 .*more than one From/,
    ],
    ...['Reply-To: a@reader.example', 'subject: Another', 'X-Idempotency-Key: key'].map(
      (line): [string, string, RegExp] => [
        `a repeated header: ${line}`,
        message(organization, [line, line]),
        /^550 5\.6\.0 .*more than one (Reply-To|Subject|X-Idempotency-Key)/,
      ],
    ),
    ['a foreign domain', message(other, []), /^550 5\.7\.1 /],
    [
      'an attachment',
      message(organization, attachment, parts('application/pdf', 'Content-Disposition: attachment\r\n')),
      /^552 5\.6\.1 /,
    ],
    [
      'an inline image',
      message(
        organization,
        attachment,
        parts('image/png', 'Content-ID: <i>\r\nContent-Disposition: inline\r\n'),
      ),
      /^552 5\.6\.1 /,
    ],
    [
      'a file of HTML that is shown in place',
      message(
        organization,
        attachment,
        parts('text/html', 'Content-Disposition: inline; filename=a.html\r\n'),
      ),
      /^552 5\.6\.1 /,
    ],
    [
      'HTML beside the text',
      message(organization, attachment, parts('text/html')),
      /^552 5\.6\.1 .*alternative/,
    ],
    [
      'a group to reply to',
      message(organization, ['Reply-To: Team: a@reader.example, b@reader.example;']),
      /^550 5\.6\.0 .*Reply-To.*group/,
    ],
    ['an empty group to reply to', message(organization, ['Reply-To: Nobody:;']), /^550 5\.6\.0 .*group/],
    [
      'two to reply to',
      message(organization, ['Reply-To: a@reader.example, b@reader.example']),
      /^550 5\.6\.0 .*Reply-To.*one address/,
    ],
    ['an empty From', message(organization, []).replace(/^From: .*/, 'From: '), /^550 5\.1\.7 .*empty/],
    ['no words', message(organization, [], ''), /^550 5\.6\.0 /],
    ['no subject', message(organization, []).replace('Subject: A note\r\n', ''), /^550 5\.6\.0 /],
    ['a bare LF', message(organization, [], 'one\ntwo\r\n'), /^550 5\.6\.0 .*LF/],
    ['a bare CR', message(organization, [], 'one\rtwo\r\n'), /^550 5\.6\.0 .*CR/],
    ['a long line', message(organization, [], `${'x'.repeat(999)}\r\n`), /^550 5\.6\.0 .*998/],
    [
      'an endless header',
      message(
        organization,
        Array.from({ length: 900 }, (_, n) => `X-${n}: ${'y'.repeat(80)}`),
      ),
      /^550 5\.6\.0 .*header/,
    ],
    ['a NUL', message(organization, [], 'a\0b\r\n'), /^550 5\.6\.0 .*NUL/],
    ['too much', message(organization, [], `${'word '.repeat(150)}\r\n`.repeat(1_400)), /^552 5\.3\.4 /],
    [
      'too much once it is HTML',
      message(organization, [], `${'&'.repeat(98)}\r\n`.repeat(9_850)),
      new RegExp(`^552 5\\.3\\.4 .*HTML.*${MESSAGE_BYTES} bytes`),
    ],
    [
      'a key that is none',
      message(organization, [`X-Idempotency-Key: ${'k'.repeat(257)}`]),
      /^550 5\.6\.0 .*X-Idempotency-Key.*256/,
    ],
    ['a recipient that is none', message(organization, []), /^550 /, 'ada@nowhere'],
  ]
  for (const [name, raw, reply, to] of cases) {
    t.regex(await submit(t.context, organization, raw, to), reply, name)
  }
  const talk = await Talk.loggedIn(t.context.door, organization.token)
  t.regex(await talk.say(`MAIL FROM:<a@b.example> SIZE=${MESSAGE_BYTES + 1}`), /^552 5\.3\.4 /)
  await talk.say('MAIL FROM:<a@b.example>')
  await talk.say('RCPT TO:<ada@reader.example>')
  t.regex(await talk.say('RCPT TO:<lin@reader.example>'), /^550 5\.5\.3 /)
  talk.close()
  t.deepEqual(await stored(api, organization.id), [])
})

test('a Reply-To without an address is as none', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  for (const empty of ['Reply-To:', 'Reply-To: <>', 'Reply-To: ,']) {
    t.regex(await submit(t.context, organization, message(organization, [empty])), /^250 2\.6\.0 /, empty)
  }
  const emails = await stored(api, organization.id)
  t.deepEqual(
    emails.map(({ replyTo }) => replyTo),
    [null, null, null],
  )
})

test('exactly the limit of bytes is taken', async (t) => {
  const organization = await t.context.api.organization()
  const head = message(organization, [], '')
  const line = `${'x'.repeat(98)}\r\n`
  const room = MESSAGE_BYTES - head.length - 2
  const body = line.repeat(Math.floor(room / 100)) + 'y'.repeat(room % 100)
  t.is(head.length + body.length + 2, MESSAGE_BYTES)
  t.regex(await submit(t.context, organization, head + body), /^250 2\.6\.0 /)
  t.regex(await submit(t.context, organization, `${head}${body}z`), /^552 5\.3\.4 /)
})

test('nothing is smuggled: what only looks like the end of a message ends nothing', async (t) => {
  const { api, door } = t.context
  const organization = await api.organization()
  const inner = `MAIL FROM:<x@${organization.domain}>\r\nRCPT TO:<victim@reader.example>\r\nDATA\r\nFrom: hello@${organization.domain}\r\nSubject: smuggled\r\n\r\nno\r\n.\r\n`
  for (const end of ['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r', '\r\n.\r', '\r.\r\n', '\n\0.\n']) {
    const talk = await Talk.loggedIn(door, organization.token)
    await talk.say(`MAIL FROM:<x@${organization.domain}>`)
    await talk.say('RCPT TO:<ada@reader.example>')
    await talk.say('DATA')
    talk.write(`${message(organization, [], 'outer')}${end}${inner}`)
    t.regex(await talk.reply(), /^550 5\.6\.0 /, JSON.stringify(end))
    talk.close()
  }
  t.deepEqual(await stored(api, organization.id), [])
})

test('conversations of any words: each 250 has its email, and over an open line nothing is taken at all', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const door = await openDoor(api, { failedLogins: 10_000, idleMs: 3_000 })
  t.teardown(() => door.close())
  const words = fc.constantFrom(
    ...ANY_WORDS,
    'HELO x',
    'STARTTLS',
    `AUTH PLAIN ${plain('x', organization.token)}`,
    `AUTH PLAIN ${plain('x', 'pl_wrong')}`,
    `MAIL FROM:<hello@${organization.domain}>`,
    'MAIL FROM:<>',
    'RCPT TO:<ada@reader.example>',
    'RCPT TO:<lin@reader.example>',
    'RCPT TO:<@relay.example:x@elsewhere.example>',
    message(organization, []),
  )
  const seen = { taken: 0, inTheOpen: 0 }
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(words, { maxLength: 14 }), async (isSecured, lines) => {
      const talk = isSecured ? await Talk.loggedIn(door, organization.token) : await Talk.open(door.port)
      // At the end, a message or a login may be open; the dots complete it. Commands after STARTTLS belong to the next
      // test.
      const said = isSecured ? lines : lines.filter((line) => line !== 'STARTTLS')
      talk.write(`${[...said, '.', '.', '.', 'QUIT'].join('\r\n')}\r\n`)
      for (let reply = await talk.reply(); reply !== ''; reply = await talk.reply()) {
        t.regex(reply, /^(?:[2-5]\d\d-[^\n]*\n)*[2-5]\d\d /)
        if (!isSecured && /^(?:235|354|250 2\.6)/.test(reply)) seen.inTheOpen += 1
        if (reply.startsWith('250 2.6.0 queued')) seen.taken += 1
      }
      talk.close()
    }),
    {
      numRuns: 60,
      // One conversation of each kind, because random words rarely form them.
      examples: [
        [true, ['MAIL FROM:<>', 'RCPT TO:<ada@reader.example>', 'DATA', message(organization, []), '.']],
        [false, ['EHLO x', `AUTH PLAIN ${plain('x', organization.token)}`, 'MAIL FROM:<>']],
      ],
    },
  )
  t.is(seen.inTheOpen, 0)
  t.true(seen.taken > 0)
  const emails = await stored(api, organization.id)
  t.is(emails.length, seen.taken)
  // A source route before an address is ignored (RFC 5321, appendix C).
  t.true(emails.every(({ recipient }) => /^(?:(?:ada|lin)@reader|x@elsewhere)\.example$/.test(recipient)))
})

test('commands sent in the open before TLS are never run', async (t) => {
  const { api, door } = t.context
  const organization = await api.organization()
  const talk = await Talk.open(door.port)
  await talk.say('EHLO client.test')
  talk.write(
    `STARTTLS\r\nEHLO evil.test\r\nAUTH PLAIN ${plain('x', organization.token)}\r\nMAIL FROM:<a@b.example>\r\n`,
  )
  t.regex(await talk.reply(), /^220 /)
  const upgraded = await talk.upgrade(door.cert).then(
    () => true,
    () => false,
  )
  // Either the handshake fails because of the injected bytes, or the session starts again without a login.
  if (upgraded) {
    await talk.say('EHLO client.test')
    t.regex(await talk.say('MAIL FROM:<a@b.example>'), /^530 5\.7\.0 /)
  } else t.is(await talk.reply(), '')
  talk.close()
})

test('an address that fails to log in is held off; others are not', async (t) => {
  const { api, organization } = t.context
  const door = await openDoor(api, { failedLogins: 3 })
  t.teardown(() => door.close())
  const talk = await Talk.secured(door)
  for (let tries = 0; tries < 3; tries++) {
    t.regex(await talk.say(`AUTH PLAIN ${plain('x', `pl_${tries}`)}`), /^535 5\.7\.8 /)
  }
  t.regex(await talk.say(`AUTH PLAIN ${plain('x', organization.token)}`), /^421 4\.7\.0 /)
  const next = connect(door.port, '127.0.0.1')
  const greeting = await new Promise<string>((resolve) =>
    next.once('data', (chunk) => resolve(String(chunk))),
  )
  t.regex(greeting, /^421 4\.7\.0 /)
  const elsewhere = connect({ port: door.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  const welcome = await new Promise<string>((resolve) =>
    elsewhere.once('data', (chunk) => resolve(String(chunk))),
  )
  t.regex(welcome, /^220 /)
  for (const socket of [next, elsewhere]) socket.destroy()
})

test('an address beyond ASCII is taken and reaches a relay that takes it; one that does not is named', async (t) => {
  for (const utf8 of [true, false]) {
    const { sink, api, door, organization } = await openWay(t, { utf8 })
    const to = 'jürgen@bücher.example'
    const talk = await Talk.loggedIn(door, organization.token)
    t.regex(await talk.say(`MAIL FROM:<hello@${organization.domain}> SMTPUTF8`), /^250 /)
    t.regex(await talk.say(`RCPT TO:<${to}>`), /^250 /)
    await talk.say('DATA')
    const head = [`From: hello@${organization.domain}`, `To: Jürgen <${to}>`, 'Subject: Grüße']
    talk.write([...head, '', 'Hello', '.', ''].join('\r\n'))
    const reply = await talk.reply()
    t.regex(reply, /^250 2\.6\.0 /)
    talk.close()
    const id = /eml_\w+/.exec(reply)?.[0] ?? ''
    const email = await eventually('the email to leave or to fail', async () => {
      const { body } = await api.request('GET', `/api/v2/emails/${id}`, { token: organization.token })
      return body.last_event !== 'queued' && body
    })
    if (utf8) {
      t.is(email.last_event, 'sent')
      t.is(sink.accepted()[0]?.recipient, 'jürgen@xn--bcher-kva.example')
    } else {
      t.is(email.last_event, 'failed')
      t.regex(JSON.stringify(email), /5\.6\.7 127\.0\.0\.1 does not offer SMTPUTF8/)
    }
  }
})

test('where an address is held off, a token that held there before goes on', async (t) => {
  const { api } = t.context
  const [regular, stranger] = [await api.organization(), await api.organization()]
  const door = await openDoor(api, { failedLogins: 3 })
  t.teardown(() => door.close())
  const login = async (token: string): Promise<string> => {
    const talk = await Talk.secured(door)
    const reply = await talk.say(`AUTH PLAIN ${plain('x', token)}`)
    talk.close()
    return reply
  }
  t.regex(await login(regular.token), /^235 /)
  for (let tries = 0; tries < 3; tries++) t.regex(await login(`pl_${tries}`), /^535 5\.7\.8 /)
  t.regex(await login(regular.token), /^235 /)
  t.regex(await login(stranger.token), /^421 4\.7\.0 /)
  t.regex(await login('pl_4'), /^421 4\.7\.0 /)

  await execute(
    api.services.orm.em.fork(),
    sql`update api_token set revoked_at = now() where organization_id = ${regular.id}`,
  )
  t.regex(await login(regular.token), /^535 5\.7\.8 /)
  const next = await Talk.open(door.port)
  t.regex(next.greeting, /^421 4\.7\.0 /, 'nobody is left whom it would be greeted for')
  next.close()
})

test('behind a load balancer that is named clients count by themselves, and a network of IPv6 as one', async (t) => {
  const { api } = t.context
  const door = await openDoor(api, { failedLogins: 2, proxies: ['127.0.0.1'] })
  t.teardown(() => door.close())
  const comeFrom = (address: string) =>
    Talk.open(
      door.port,
      '127.0.0.1',
      `PROXY ${address.includes(':') ? 'TCP6' : 'TCP4'} ${address} ${address} 40000 587\r\n`,
    )
  for (const address of ['2001:db8:1:2::a', '2001:db8:1:2:ffff::b']) {
    const talk = await comeFrom(address)
    await talk.secure(door.cert)
    t.regex(await talk.say(`AUTH PLAIN ${plain('x', 'pl_wrong')}`), /^535 5\.7\.8 /, address)
    talk.close()
  }
  const greetings = new Map<string, RegExp>([
    ['2001:db8:1:2:3:4:5:6', /^421 4\.7\.0 /],
    ['2001:db8:1:3::a', /^220 /],
    ['203.0.113.7', /^220 /],
    ['::ffff:203.0.113.8', /^220 /],
  ])
  for (const [address, greeting] of greetings) {
    const talk = await comeFrom(address)
    t.regex(talk.greeting, greeting, address)
    talk.close()
  }
  const headless = await Talk.open(door.port, '127.0.0.1', 'EHLO client.test\r\n')
  t.notRegex(headless.greeting, /^220 /, 'who is named says on whose behalf')
  const stranger = await Talk.open(door.port, '127.0.0.2')
  t.regex(stranger.greeting, /^220 /)
  t.regex(await stranger.say('PROXY TCP4 203.0.113.9 203.0.113.9 40000 587'), /^5/)
  for (const talk of [headless, stranger]) talk.close()
})

test('the connections of an IPv6 network are counted as those of one address', async (t) => {
  const { api } = t.context
  const door = await openDoor(api, { proxies: ['127.0.0.1'] })
  t.teardown(() => door.close())
  const greetings = await Promise.all(
    Array.from({ length: 101 }, async (_, index) => {
      const address = `2001:db8:7:7::${index.toString(16)}`
      return await Talk.open(door.port, '127.0.0.1', `PROXY TCP6 ${address} ::1 40000 587\r\n`)
    }),
  )
  t.is(greetings.filter(({ greeting }) => greeting.startsWith('421 4.7.0 ')).length, 1)
  for (const talk of greetings) talk.close()
})

test('blanks are taken as they come, but not so many in so many lines that reading them takes seconds', async (t) => {
  const { organization } = t.context
  const quoted = ['Content-Type: text/plain', 'Content-Transfer-Encoding: quoted-printable']
  const body = (blanks: number, lines: number) => `${' '.repeat(blanks)}x\r\n`.repeat(lines)
  for (const lines of [body(60, 5_000), body(990, 50), `${' '.repeat(990)}\r\n`.repeat(900)]) {
    t.regex(await submit(t.context, organization, message(organization, quoted, `x\r\n${lines}`)), /^250 /)
  }
  const hostile = message(organization, quoted, body(990, 900))
  t.regex(await submit(t.context, organization, hostile), /^550 5\.6\.0 .*blanks/)
})

test('what comes in at once has bounds, of an address and of all; what does not fit is put off, and fits later', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const door = await openDoor(api, { bytesAtOnce: { all: 1_500_000, ofAddress: 900_000 } })
  t.teardown(() => door.close())
  const raw = message(organization, [], `${'x'.repeat(98)}\r\n`.repeat(6_000))
  const begin = async (from = '127.0.0.1'): Promise<Talk> => {
    const talk = await Talk.open(door.port, from)
    await talk.secure(door.cert)
    await talk.say(`AUTH PLAIN ${plain('x', organization.token)}`)
    talk.write('MAIL FROM:<a@b.example>\r\nRCPT TO:<ada@reader.example>\r\nDATA\r\n')
    for (const code of ['250', '250', '354']) t.true((await talk.reply()).startsWith(code))
    return talk
  }
  const send = async (from: string): Promise<string> => {
    const talk = await begin(from)
    talk.write(`${raw}\r\n.\r\n`)
    const reply = await talk.reply()
    talk.close()
    return reply
  }
  const isPutOff = async (from: string) => (await send(from)).startsWith('452 4.3.1 ')
  const first = await begin()
  first.write(raw)
  await eventually('another of the address to be put off', () => isPutOff('127.0.0.1'))
  t.regex(await send('127.0.0.2'), /^250 /, 'other addresses have room')
  const second = await begin('127.0.0.2')
  second.write(raw)
  await eventually('everybody to be put off', () => isPutOff('127.0.0.3'))
  for (const talk of [first, second]) {
    talk.write('\r\n.\r\n')
    t.regex(await talk.reply(), /^250 /)
    talk.close()
  }
  t.regex(await send('127.0.0.1'), /^250 /)
})

test('while the API is away nothing is accepted: 451 at the login and at the message', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const away = await openDoor(api, { apiUrl: 'http://127.0.0.1:9' })
  t.teardown(() => away.close())
  const talk = await Talk.secured(away)
  t.regex(await talk.say(`AUTH PLAIN ${plain('x', organization.token)}`), /^451 4\.3\.0 /)
  talk.close()
})

test('a full queue is a reason to try again later', async (t) => {
  const api = await startApi({ LANE_RATE_TRANSACTIONAL: '1' })
  const door = await openDoor(api)
  t.teardown(async () => {
    await door.close()
    await api.close()
  })
  const organization = await api.organization()
  for (let count = 0; count <= 60; count++) {
    const body = { to: `p${count}@reader.example`, subject: 'x', content: 'x' }
    await api.request('POST', '/api/v1/emails', { token: organization.token, body })
  }
  await eventually('the refusal', async () => {
    const reply = await submit({ api, door, organization }, organization, message(organization, []))
    return reply.startsWith('452 4.7.0 ')
  })
  t.pass()
})

test('one connection carries many messages, commands in a row; an idle one is ended', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const door = await openDoor(api, { idleMs: 5_000 })
  t.teardown(() => door.close())
  const talk = await Talk.loggedIn(door, organization.token)
  for (let count = 0; count < 3; count++) {
    talk.write(`MAIL FROM:<a@b.example>\r\nRCPT TO:<p${count}@reader.example>\r\nDATA\r\n`)
    t.regex(await talk.reply(), /^250 2\.1\.0/)
    t.regex(await talk.reply(), /^250 2\.1\.5/)
    t.regex(await talk.reply(), /^354/)
    talk.write(`${message(organization, [])}\r\n.\r\n`)
    t.regex(await talk.reply(), /^250 2\.6\.0/)
  }
  t.is((await stored(api, organization.id)).length, 3)
  t.regex(await talk.reply(), /^421 4\.4\.2 /)
  t.is(await talk.reply(), '')
})

test('who never gets to a login is hung up on, whatever is said; who is slow over one line as well', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const [strict, patient] = [await openDoor(api, { entryMs: 1_500 }), await openDoor(api, { idleMs: 5_000 })]
  t.teardown(() => Promise.all([strict.close(), patient.close()]))
  const chatty = await Talk.open(strict.port)
  const slow = await Talk.loggedIn(patient, organization.token)
  const drip = setInterval(() => {
    chatty.write('NOOP\r\n')
    slow.write('N')
  }, 300)
  t.teardown(() => clearInterval(drip))
  let heard = await chatty.reply()
  while (heard.startsWith('250')) heard = await chatty.reply()
  t.regex(heard, /^421 4\.4\.2 .*log in/)
  t.is(await chatty.reply(), '')
  t.regex(await slow.reply(), /^421 4\.4\.2 /)
  t.is(await slow.reply(), '')
})

test('a message that never ends is cut off: after its time, and after twice its limit', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const door = await openDoor(api, { messageMs: 1_500 })
  t.teardown(() => door.close())
  for (const isFast of [false, true]) {
    const talk = await Talk.loggedIn(isFast ? t.context.door : door, organization.token)
    await talk.say('MAIL FROM:<a@b.example>')
    await talk.say('RCPT TO:<ada@reader.example>')
    await talk.say('DATA')
    const drip = setInterval(() => talk.write('slow\r\n'), 300)
    t.teardown(() => clearInterval(drip))
    if (isFast) talk.write(`${'fast '.repeat(150)}\r\n`.repeat(Math.ceil((2 * MESSAGE_BYTES) / 752) + 1))
    t.regex(await talk.reply(), isFast ? /^552 5\.3\.4 / : /^421 4\.4\.2 /)
    t.is(await talk.reply(), '')
  }
  t.deepEqual(await stored(api, organization.id), [])
})

test('a renewed certificate is shown without a restart, and a broken one changes nothing', async (t) => {
  const said: string[] = []
  const log = pino({ level: 'error' }, { write: (line) => said.push(line) })
  const door = await openDoor(t.context.api, { certificateLookMs: 20, log })
  t.teardown(() => door.close())
  const first = await fingerprint(door.port)
  const { key, cert } = selfSigned('localhost', '127.0.0.1')
  writeFileSync(door.keyFile, key)
  writeFileSync(door.certFile, cert)
  await eventually('the new certificate', async () => (await fingerprint(door.port)) !== first || undefined)
  const second = await fingerprint(door.port)
  said.length = 0
  writeFileSync(door.certFile, 'not a certificate')
  await eventually('the complaint', () => said.length > 0)
  t.is(await fingerprint(door.port), second)
})

/** Returns the fingerprint of the certificate that STARTTLS presents. */
async function fingerprint(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const next = () => new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))))
  await next()
  socket.write('EHLO client.test\r\n')
  await next()
  socket.write('STARTTLS\r\n')
  await next()
  const secured = connectTls({ socket, rejectUnauthorized: false })
  await new Promise<void>((resolve, reject) => {
    secured.once('secureConnect', resolve)
    secured.once('error', reject)
  })
  const { fingerprint256 } = secured.getPeerCertificate()
  secured.destroy()
  return fingerprint256
}

test('bombs of MIME are refused or read in bounded time', async (t) => {
  const organization = await t.context.api.organization()
  const nested = Array.from(
    { length: 4_000 },
    (_, depth) => `Content-Type: multipart/mixed; boundary=b${depth}\r\n\r\n--b${depth}\r\n`,
  ).join('')
  const many = `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\n\r\n'.repeat(60_000)}`
  for (const bomb of [nested, many]) {
    const raw = `From: hello@${organization.domain}\r\nSubject: bomb\r\n${bomb}`
    t.regex(await submit(t.context, organization, raw), /^(250|550|552) /)
  }
})

test('the text part is for our own door only', async (t) => {
  const { api, organization } = t.context
  const answer = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: 'ada@reader.example', subject: 'x', content: 'x', text: 'mine' },
    headers: { 'postloom-internal': 'guessed' },
  })
  t.is(answer.status, 422)
  t.is(answer.headers.get('smtp-reply'), null)
})

test('the text part that came with an email is kept whatever the type of its content', async (t) => {
  const { api, organization } = t.context
  const document = JSON.stringify({ type: 'doc', content: [{ type: 'paragraph' }] })
  for (const content of [{ content: 'x' }, { content: document, contentType: 'TIPTAP' }]) {
    const { token } = organization
    const headers = { 'postloom-internal': api.services.config.internalSecret }
    const mail = { to: 'ada@reader.example', subject: 'x', text: 'mine', ...content }
    const sent = await api.request('POST', '/api/v1/emails', { token, body: mail, headers })
    t.is(sent.status, 200, JSON.stringify(sent.body))
    const { body } = await api.request('GET', `/api/v2/emails/${sent.body.id}`, { token })
    t.is(body.source.text, 'mine')
  }
})
