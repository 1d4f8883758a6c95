import { getCACertificates, setDefaultCACertificates } from 'node:tls'

import test, { type ExecutionContext } from 'ava'
import { SMTPServer } from 'smtp-server'

import { selfSigned } from '../scripts/services/certificate.ts'
import { freePort } from '../scripts/services/ports.ts'
import { readRelays } from '../src/delivery/relay.ts'
import { createSmtpProvider, type MailProvider } from '../src/delivery/smtp-provider.ts'
import { SmtpFailure } from '../src/delivery/smtp-wire.ts'
import { createLogger } from '../src/log.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'
import { type Sink, type SinkBehaviour, startSmtpSink } from './helpers/smtp-sink.ts'

const LOG = createLogger('test', 'silent')
const NOBODY = { code: 550, text: '5.1.1 nobody' }

async function relay(
  t: ExecutionContext,
  behaviour: SinkBehaviour = {},
  options: { port?: number; utf8?: boolean } = {},
): Promise<Sink> {
  const sink = await startSmtpSink(behaviour, options)
  t.teardown(() => sink.close())
  return sink
}

function provider(t: ExecutionContext, ...urls: string[]): MailProvider {
  const opened = createSmtpProvider(urls.join(' '), LOG)
  t.teardown(() => opened.close())
  return opened
}

type SendOptions = { to?: string; urgent?: boolean; withinMs?: number; beforeData?: () => Promise<void> }

async function send(to: MailProvider, number: number, options: SendOptions = {}) {
  return await to.send(
    `return-${number}@send.shop.example`,
    options.to ?? `reader-${number}@reader.example`,
    `Message-ID: <${number}@shop.example>\r\nSubject: Hi\r\n\r\nHello\r\n`,
    {
      deadline: performance.now() + (options.withinMs ?? 20_000),
      isUrgent: options.urgent ?? false,
      beforeData: options.beforeData ?? null,
      onEnd: () => {},
    },
  )
}

async function refusal(...sending: Parameters<typeof send>): Promise<SmtpFailure> {
  try {
    await send(...sending)
  } catch (error) {
    if (error instanceof SmtpFailure) return error
  }
  throw new Error('the email was taken')
}

async function sendMany(to: MailProvider, count: number, from = 0): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, index) => send(to, from + index)))
}

test('one URL is one relay, and a list has weights, priorities and connections', (t) => {
  t.deepEqual(readRelays('smtp://127.0.0.1:1025'), [
    {
      host: '127.0.0.1',
      port: 1025,
      implicitTls: false,
      tlsRequired: false,
      credentials: null,
      weight: 1,
      priority: 1,
      connections: 20,
    },
  ])
  const several = readRelays(
    'smtps://a:p%40ss,word@one.example?weight=3, smtp://two.example:587?starttls=required\n smtp://[::1]?priority=2&connections=5',
  )
  t.like(several[0], { host: 'one.example', port: 465, weight: 3, credentials: { password: 'p@ss,word' } })
  t.like(several[1], { host: 'two.example', port: 587, tlsRequired: true })
  t.like(several[2], { host: '::1', port: 25, priority: 2, connections: 5 })
})

const WRONG: Record<string, RegExp> = {
  'relay.example:25': /RELAY_URL is not a relay; give smtp:/,
  'smtp://one.example http://u:secret@two.example': /is not a relay \(relay 2\)/,
  'smtp://u:secret@one.example?weight=0': /weight=0; give a whole number from 1 to 1000/,
  'smtp://one.example smtp://two.example?connections=many': /connections=many \(relay 2\)/,
  'smtp://one.example?pool=2': /parameter pool; those there are: starttls, weight, priority, connections/,
  'smtp://one.example?starttls=yes': /starttls=yes; it can only be required/,
  'smtp://one.example:25 smtp://one.example': /names one\.example:25 twice/,
  'smtp://u:%zz@one.example': /not written as URLs write it/,
}

for (const [text, message] of Object.entries(WRONG)) {
  test(`a wrong RELAY_URL says what is wrong with it, and no password: ${text}`, (t) => {
    const error = t.throws(() => readRelays(text))
    t.regex(error.message, message)
    t.notRegex(error.message, /secret/)
  })
}

test('email is shared by weight, and what is tried again goes the same way', async (t) => {
  const [small, large] = [await relay(t), await relay(t)]
  const sender = provider(t, small.url, `${large.url}?weight=3`)
  for (let from = 0; from < 400; from += 10) await sendMany(sender, 10, from)
  const share = small.journal.length / 400
  t.true(share > 0.15 && share < 0.35, String(share))
  const first = new Set(small.journal.map(({ recipient }) => recipient))
  small.clear()
  for (let from = 0; from < 400; from += 10) await sendMany(sender, 10, from)
  t.deepEqual(new Set(small.journal.map(({ recipient }) => recipient)), first)
})

test('while a relay cannot be used its email goes by the next, and comes back to it', async (t) => {
  const port = await freePort()
  const standIn = await relay(t)
  const sender = provider(t, `smtp://127.0.0.1:${port}`, `${standIn.url}?priority=2`)
  await sendMany(sender, 30)
  t.is(standIn.accepted().length, 30)
  t.is(sender.restMs(), 0)
  const main = await relay(t, {}, { port })
  await eventually('the first relay to be tried again', async () => {
    await send(sender, 31)
    return main.accepted().length > 0
  })
  standIn.clear()
  await sendMany(sender, 30, 40)
  t.is(standIn.journal.length, 0)
})

test('a relay that refuses the login or breaks off before the end is passed by, and nothing is lost or doubled', async (t) => {
  const guard = {
    ...selfSigned('localhost'),
    login: { user: 'shop', password: 'right', method: 'PLAIN' as const },
  }
  const closed = await startSmtpSink({}, { guard })
  t.teardown(() => closed.close())
  const broken = await relay(t, { onRecipient: () => 'drop' })
  const sound = await relay(t)
  const sender = provider(
    t,
    `smtp://shop:wrong@127.0.0.1:${closed.port}`,
    `${broken.url}?priority=2`,
    `${sound.url}?priority=3`,
  )
  await sendMany(sender, 40)
  t.is(sound.accepted().length, 40)
  t.is(new Set(sound.journal.map(({ recipient }) => recipient)).size, 40)
  t.is(closed.journal.length + broken.journal.length, 0)
})

/** Returns a provider whose relay is out of use after it broke off three emails, with `kept` intact connections. */
async function putOut(t: ExecutionContext, kept: number): Promise<{ unwell: Sink; sender: MailProvider }> {
  const unwell = await relay(t)
  const sender = provider(t, unwell.url)
  await sendMany(sender, kept + 3)
  unwell.behaviour = { onRecipient: () => 'drop' }
  for (const number of [101, 102, 103]) t.is((await refusal(sender, number)).reply, undefined)
  unwell.behaviour = {}
  unwell.clear()
  t.is(unwell.connections.total, kept + 3)
  await eventually('the relay to have rested', () => sender.restMs() === 0)
  return { unwell, sender }
}

test('a relay that was out of use and answers on a kept connection has its part of the email at once', async (t) => {
  for (const answer of ['accept', NOBODY] as const) {
    const { unwell, sender } = await putOut(t, 2)
    unwell.behaviour = { onRecipient: () => answer }
    const answered = send(sender, 1)
    await (answer === 'accept' ? answered : t.throwsAsync(answered, { instanceOf: SmtpFailure }))
    t.is(unwell.connections.total, 5)
    unwell.clear()
    unwell.behaviour = { onMessage: () => 'hang' }
    const stuck = [2, 3, 4, 5].map((number) => refusal(sender, number))
    await eventually('four emails to be under way', () => unwell.journal.length === 4)
    await unwell.close()
    await Promise.all(stuck)
  }
})

test('one email at a time tries a relay that is out of use, whatever ends that was under way before', async (t) => {
  const unwell = await relay(t)
  const sender = provider(t, unwell.url)
  await sendMany(sender, 5)
  const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const beforeData = async () => {
    reached.resolve()
    await held.promise
  }
  const under = send(sender, 6, { beforeData })
  await reached.promise
  unwell.behaviour = { onRecipient: () => 'drop' }
  for (const number of [101, 102, 103]) await refusal(sender, number)
  await eventually('the relay to have rested', () => sender.restMs() === 0)
  unwell.clear()
  unwell.behaviour = { onMessage: ({ recipient }) => (recipient.includes('-7@') ? 'hang' : 'accept') }
  const probe = refusal(sender, 7)
  await eventually('an email to try it', () => unwell.journal.length === 1)
  held.reject(new Error('the worker stops'))
  await t.throwsAsync(under, { message: 'the worker stops' })
  t.regex(
    (await refusal(sender, 8, { withinMs: 200 })).message,
    /no connection to the relay was free in time/,
  )
  await unwell.close()
  t.true((await probe).ambiguous)
})

test('an email whose end was written is given to no other relay, and a refusal is final', async (t) => {
  const mute = await relay(t, { onMessage: () => 'drop' })
  const other = await relay(t)
  t.true((await refusal(provider(t, mute.url, `${other.url}?priority=2`), 1)).ambiguous)
  const strict = await relay(t, { onRecipient: () => NOBODY })
  t.like(await refusal(provider(t, strict.url, `${other.url}?priority=2`), 2), { reply: { code: 550 } })
  const grey = await relay(t, { onRecipient: () => ({ code: 451, text: '4.7.1 greylisted' }) })
  t.like(await refusal(provider(t, grey.url, `${other.url}?priority=2`), 3), { reply: { code: 451 } })
  t.is(other.journal.length, 0)
})

test('a relay that grants few connections is used with as many, and holds nothing up', async (t) => {
  const narrow: Sink = await relay(t, {
    onConnect: () =>
      narrow.connections.open > 3 ? { code: 421, text: '4.7.0 too many connections' } : 'accept',
    onMessage: () => ({ afterMs: 5, reply: 'accept' }),
  })
  const sender = provider(t, `${narrow.url}?connections=12`)
  await sendMany(sender, 60)
  t.is(narrow.accepted().length, 60)
  t.is(sender.restMs(), 0)
  const before = narrow.connections.total
  await sendMany(sender, 60, 100)
  t.true(narrow.connections.total - before <= 3, String(narrow.connections.total - before))
})

test('never more connections are open than the setting says, and urgent email goes first', async (t) => {
  const slow = await relay(t, { onMessage: () => ({ afterMs: 20, reply: 'accept' }) })
  const sender = provider(t, `${slow.url}?connections=2`)
  const bulk = sendMany(sender, 20)
  await send(sender, 1_000, { urgent: true })
  t.true(slow.accepted().length <= 6, String(slow.accepted().length))
  await bulk
  t.is(slow.connections.peak, 2)
  t.is(slow.accepted().length, 21)
})

test('with no relay left the sender hears when to come back, and with none free in time that it was late', async (t) => {
  const nowhere = provider(t, `smtp://127.0.0.1:${await freePort()}`, `smtp://127.0.0.1:${await freePort()}`)
  t.like(await refusal(nowhere, 1), { stage: 'connect', reply: undefined })
  t.true(nowhere.restMs() > 0)
  const silent = await relay(t, { onMessage: () => 'hang' })
  const full = provider(t, `${silent.url}?connections=1`)
  const stuck = refusal(full, 2)
  await eventually('the email to be there', async () => silent.journal.length === 1)
  t.regex((await refusal(full, 3, { withinMs: 200 })).message, /no connection to the relay was free in time/)
  await silent.close()
  t.true((await stuck).ambiguous)
})

test('a relay that puts everything off is asked by fewer at once', async (t) => {
  const busy = await relay(t, { onRecipient: () => ({ code: 450, text: '4.7.1 slow down' }) })
  const sender = provider(t, `${busy.url}?connections=8`)
  await Promise.all(Array.from({ length: 60 }, (_, index) => refusal(sender, index)))
  const before = busy.connections.total
  busy.behaviour = {}
  await sendMany(sender, 20, 100)
  t.is(busy.connections.total, before)
  t.true(busy.connections.open <= 2, String(busy.connections.open))
})

/** Makes a server listen until the test ends, and returns its port. */
async function listenWithTls(t: ExecutionContext, server: SMTPServer): Promise<number> {
  // A client that rejects the certificate aborts the handshake.
  server.on('error', () => {})
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return await listenOnLoopback(server.server)
}

test('TLS from the first byte with a login: the certificate must be right, and then connections are kept', async (t) => {
  const certificate = selfSigned('localhost')
  const taken: string[] = []
  const server = new SMTPServer({
    secure: true,
    ...certificate,
    onAuth: ({ username, password }, _session, done) =>
      username === 'shop' && password === 'a secret'
        ? done(null, { user: username })
        : done(new Error('wrong name or password')),
    onData(stream, session, done) {
      taken.push(session.id)
      stream.resume()
      stream.once('end', () => done())
    },
  })
  const port = await listenWithTls(t, server)
  const url = (password: string) => `smtps://shop:${password}@localhost:${port}`
  t.regex((await refusal(provider(t, url('a%20secret')), 1)).message, /self-signed certificate/)
  setDefaultCACertificates([...getCACertificates('default'), certificate.cert])
  t.like(await refusal(provider(t, url('wrong')), 2), { stage: 'connect', reply: { code: 535 } })
  const sender = provider(t, url('a%20secret'))
  for (const number of [3, 4, 5]) t.is((await send(sender, number)).code, 250)
  t.deepEqual(
    taken,
    Array.from({ length: 3 }, () => taken[0] ?? ''),
  )
})

test('STARTTLS to a relay that is named by its IP address asks for a certificate of that address', async (t) => {
  const named = { right: selfSigned('127.0.0.1'), wrong: selfSigned('relay.example') }
  setDefaultCACertificates([...getCACertificates('default'), named.right.cert, named.wrong.cert])
  const replies: unknown[] = []
  for (const certificate of [named.right, named.wrong]) {
    const server = new SMTPServer({
      ...certificate,
      authOptional: true,
      onData(stream, _session, done) {
        stream.resume()
        stream.once('end', () => done())
      },
    })
    const port = await listenWithTls(t, server)
    const sender = provider(t, `smtp://127.0.0.1:${port}?starttls=required`)
    replies.push(await send(sender, 1).then(({ code }) => code, String))
  }
  t.is(replies[0], 250)
  t.regex(String(replies[1]), /IP: 127\.0\.0\.1 is not in the cert's list/)
})

test('an address beyond ASCII goes by the relays that take it, and is refused where none does', async (t) => {
  const [plain, able] = await Promise.all([relay(t, {}, { utf8: false }), relay(t)])
  const to = 'jürgen@reader.example'
  const both = provider(t, plain.url, able.url)
  for (let number = 0; number < 20; number++) t.is((await send(both, number, { to })).code, 250)
  t.is(able.accepted().filter(({ recipient }) => recipient === to).length, 20)
  t.is(plain.journal.length, 0)
  await sendMany(both, 20, 100)
  t.true(plain.journal.length > 0, 'for others the relay is as good as any')

  const alone = provider(t, plain.url)
  t.like(await refusal(alone, 1, { to }), { stage: 'rcpt', reply: { code: 550 } })
  t.regex((await refusal(alone, 1, { to })).message, /^550 5\.6\.7 127\.0\.0\.1 does not offer SMTPUTF8/)
  t.is((await send(alone, 2)).code, 250)
  const halfAway = provider(t, plain.url, `smtp://127.0.0.1:${await freePort()}`)
  t.like(await refusal(halfAway, 1, { to }), { stage: 'rcpt', reply: { code: 450 } })
})
