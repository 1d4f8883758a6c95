import { createServer, type Socket } from 'node:net'

import test, { type ExecutionContext } from 'ava'

import { createSmtpProvider, type MailProvider } from '../src/delivery/smtp-provider.ts'
import { SmtpFailure } from '../src/delivery/smtp-wire.ts'
import { createLogger } from '../src/log.ts'
import { listenOnLoopback } from './helpers/listen.ts'

const LOG = createLogger('test', 'silent')

/**
 * Conversations with a scripted relay: the tests check the replies to each command, how the commands are split into
 * chunks, and whether the connection is kept.
 */
type Answers = {
  ehlo?: string
  mail?: string
  rcpt?: string
  data?: string
  /** Said at the first line of a message, and then the relay hangs up. */
  middle?: string
  end?: string
  rset?: string
}
/** `reads` counts the chunks that arrived without a reply in between. */
type Relay = {
  heard: string[]
  chunks: string[]
  reads: number
  connections: number
  provider: MailProvider
  url: string
}

async function startRelay(t: ExecutionContext, answers: Answers, pieces = 65_536): Promise<Relay> {
  const relay: Relay = {
    heard: [],
    chunks: [],
    reads: 0,
    connections: 0,
    url: '',
    provider: createSmtpProvider('smtp://127.0.0.1:1', LOG),
  }
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    relay.connections += 1
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    let unread = ''
    let inData = false
    const queue: string[] = ['220 relay\r\n']
    const say = (): void => {
      const next = queue.shift()
      if (next === undefined || socket.destroyed) return
      socket.write(next.slice(0, pieces), 'latin1')
      if (next.length > pieces) queue.unshift(next.slice(pieces))
      setImmediate(say)
    }
    say()
    const answerTo = (line: string): string => {
      const verb = line.slice(0, 4)
      if (verb === 'EHLO') return answers.ehlo ?? '250-relay\r\n250 PIPELINING\r\n'
      if (verb === 'HELO') return '250-relay\r\n250 PIPELINING\r\n'
      if (verb === 'STAR') return '454 4.7.0 no TLS now\r\n'
      if (verb === 'MAIL') return answers.mail ?? '250 ok\r\n'
      if (verb === 'RCPT') return answers.rcpt ?? '250 ok\r\n'
      if (verb === 'RSET') return answers.rset ?? '250 ok\r\n'
      if (verb === 'QUIT') return '221 bye\r\n'
      const answer = answers.data ?? '354 go on\r\n'
      inData = answer.startsWith('354')
      return answer
    }
    socket.on('data', (chunk) => {
      relay.reads += 1
      unread += chunk.toString('latin1')
      for (let end = unread.indexOf('\r\n'); end >= 0; end = unread.indexOf('\r\n')) {
        const line = unread.slice(0, end)
        unread = unread.slice(end + 2)
        relay.heard.push(line)
        const [, size] = /^BDAT (\d+) LAST$/.exec(line) ?? []
        if (size !== undefined) {
          relay.chunks.push(unread.slice(0, Number(size)))
          unread = unread.slice(Number(size))
          queue.push(answers.end ?? '250 taken\r\n')
        } else if (!inData) queue.push(answerTo(line))
        else if (answers.middle) {
          socket.end(answers.middle)
          socket.pause()
          return
        } else if (line === '.') {
          inData = false
          queue.push(answers.end ?? '250 taken\r\n')
        }
      }
      say()
    })
  })
  const port = await listenOnLoopback(server)
  relay.url = `smtp://127.0.0.1:${port}`
  relay.provider = createSmtpProvider(relay.url, LOG)
  t.teardown(() => {
    relay.provider.close()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return relay
}

const CHUNKING = '250-relay\r\n250-PIPELINING\r\n250 CHUNKING\r\n'
const MAIL = 'Subject: Hi\r\n\r\n.dot\r\n..two\r\nend\r\n'

async function send(relay: Relay, options: { limited?: boolean; data?: string; withinMs?: number } = {}) {
  const gate = {
    deadline: performance.now() + (options.withinMs ?? 10_000),
    beforeData: options.limited ? async () => {} : null,
    isUrgent: false,
    onEnd: () => {},
  }
  return await relay.provider.send('a@shop.example', 'b@reader.example', options.data ?? MAIL, gate)
}

async function refusal(relay: Relay, options: Parameters<typeof send>[1] = {}): Promise<SmtpFailure> {
  try {
    await send(relay, options)
  } catch (error) {
    if (error instanceof SmtpFailure) return error
  }
  throw new Error('the email was taken')
}

for (const pieces of [65_536, 1]) {
  test(`an email is handed over with its dots doubled, whatever the pieces of the answers (${pieces})`, async (t) => {
    const relay = await startRelay(
      t,
      { rcpt: '250-ok\r\n250-\r\n250 really\r\n', end: '250-\r\n250 taken\n' },
      pieces,
    )
    t.deepEqual(await send(relay), { code: 250, text: '\ntaken' })
    t.deepEqual(await send(relay, { limited: true }), { code: 250, text: '\ntaken' })
    t.is(relay.connections, 1)
    t.deepEqual(relay.heard.slice(4, 10), ['Subject: Hi', '', '..dot', '...two', 'end', '.'])
    t.deepEqual(relay.heard.slice(4, 10), relay.heard.slice(13, 19))
  })
}

test('an email that a relay took with another code of acceptance than 250 is taken', async (t) => {
  const answers = { mail: '251 ok\r\n', rcpt: '252 will try\r\n', end: '251 taken\r\n' }
  for (const ehlo of ['250 relay\r\n', '250-relay\r\n250 PIPELINING\r\n', CHUNKING]) {
    const relay = await startRelay(t, { ehlo, ...answers })
    t.deepEqual(await send(relay), { code: 251, text: 'taken' })
    t.deepEqual(await send(relay), { code: 251, text: 'taken' })
    t.is(relay.connections, 1)
  }
})

test('a relay that does not know EHLO is greeted with HELO, and is told one thing after the other', async (t) => {
  for (const ehlo of ['500 5.5.1 what?\r\n', '502 5.5.1 not here\r\n']) {
    const relay = await startRelay(t, { ehlo })
    t.is((await send(relay)).code, 250)
    t.deepEqual(
      relay.heard.slice(0, 5).map((line) => line.slice(0, 4)),
      ['EHLO', 'HELO', 'MAIL', 'RCPT', 'DATA'],
    )
  }
  const closed = await startRelay(t, { ehlo: '550 5.7.1 not you\r\n' })
  t.like(await refusal(closed), { stage: 'connect', reply: { code: 550 } })
})

test('a relay that has no TLS for the time being gets the email without, unless TLS is required', async (t) => {
  const relay = await startRelay(t, { ehlo: '250-relay\r\n250 STARTTLS\r\n' })
  t.is((await send(relay)).code, 250)
  relay.provider.close()
  relay.provider = createSmtpProvider(`${relay.url}?starttls=required`, LOG)
  t.like(await refusal(relay), { stage: 'connect', reply: { code: 454 } })
})

test('an answer beyond ASCII is read whole, wherever the network cuts it', async (t) => {
  const rcpt = Buffer.from('550 5.1.1 unbekannter Empfänger\r\n').toString('latin1')
  const relay = await startRelay(t, { rcpt }, 1)
  t.like(await refusal(relay), { reply: { text: '5.1.1 unbekannter Empfänger' } })
})

test('a relay that does not announce pipelining is asked one thing after the other', async (t) => {
  const relay = await startRelay(t, { ehlo: '250 relay\r\n', rcpt: '550 5.1.1 nobody\r\n' })
  t.like(await refusal(relay), { stage: 'rcpt', reply: { code: 550 } })
  t.deepEqual(
    relay.heard.map((line) => line.slice(0, 4)),
    ['EHLO', 'MAIL', 'RCPT', 'RSET'],
  )
})

test('whoever refuses a recipient and asks for the message all the same gets an empty one', async (t) => {
  const relay = await startRelay(t, { rcpt: '550 5.1.1 nobody\r\n', end: '554 5.5.1 no recipient\r\n' })
  for (const count of [1, 2]) {
    t.like(await refusal(relay), { stage: 'rcpt', reply: { code: 550, text: '5.1.1 nobody' } })
    t.is(relay.connections, 1)
    t.is(relay.heard.filter((line) => line === 'RSET').length, count)
  }
  t.false(relay.heard.includes('Subject: Hi'))
})

test('a refusal is told as it was, however the relay ends the conversation', async (t) => {
  const both = { mail: '550 5.7.1 not you\r\n', rcpt: '503 no\r\n', data: '503 no\r\n' }
  t.like(await refusal(await startRelay(t, both)), { stage: 'mail', reply: { code: 550 } })
  const busy = await startRelay(t, { mail: '421 4.3.2 closing\r\n', rcpt: '', data: '' })
  t.like(await refusal(busy), { stage: 'connect', reply: { code: 421 } })
  const full = await startRelay(t, { rcpt: '421 4.3.2 closing\r\n', data: '' })
  t.like(await refusal(full), { stage: 'rcpt', reply: { code: 421 } })
  const mute = await startRelay(t, { rcpt: '452 4.5.3 later\r\n', data: '' })
  t.like(await refusal(mute, { withinMs: 2_000 }), { stage: 'rcpt', reply: { code: 452 } })
  const late = await startRelay(t, { data: '451 4.3.0 not now\r\n' })
  t.like(await refusal(late), { stage: 'data', reply: { code: 451 } })
})

test('what is no SMTP, and what has no end, is given up', async (t) => {
  t.regex((await refusal(await startRelay(t, { mail: 'HTTP/1.1 400\r\n' }))).message, /does not speak SMTP/)
  const endless = await startRelay(t, { mail: '250-on\r\n'.repeat(9_000) })
  t.regex((await refusal(endless)).message, /talks without end/)
  const mute = await startRelay(t, { mail: '', rcpt: '', data: '' })
  t.regex((await refusal(mute, { withinMs: 2_000 })).message, /did not answer in time/)
})

test('a message too long for one write has its end apart, and its dots doubled', async (t) => {
  const relay = await startRelay(t, {})
  const body = `${'x'.repeat(70)}\r\n.y\r\n`.repeat(2_000)
  await send(relay, { data: `Subject: Long\r\n\r\n${body}` })
  t.is(relay.heard.filter((line) => line === '..y').length, 2_000)
  t.is(relay.heard.at(-1), '.')
})

test('a refusal in the middle of a long message is the reason, although the relay hangs up', async (t) => {
  const relay = await startRelay(t, { middle: '552 5.3.4 too big\r\n' })
  const failure = await refusal(relay, { data: `${'x'.repeat(70)}\r\n`.repeat(200_000) })
  t.like(failure, { stage: 'data', reply: { code: 552, text: '5.3.4 too big' } })
})

test('what a sender stumbles over leaves no connection behind that would refuse the next email', async (t) => {
  const relay = await startRelay(t, {})
  const stumble = async () => {
    throw new Error('the database is away')
  }
  const gate = {
    deadline: performance.now() + 10_000,
    beforeData: stumble,
    isUrgent: false,
    onEnd: () => {},
  }
  const sending = relay.provider.send('a@shop.example', 'b@reader.example', MAIL, gate)
  await t.throwsAsync(sending, { message: 'the database is away' })
  t.is((await send(relay)).code, 250)
  t.is(relay.connections, 2)
  const nested = await startRelay(t, { mail: '503 5.5.1 nested MAIL\r\n', rcpt: '', data: '' })
  t.like(await refusal(nested), { stage: 'mail', reply: undefined })
})

test('a relay that takes chunks is told all of an email at once, as it is (RFC 3030)', async (t) => {
  const relay = await startRelay(t, { ehlo: CHUNKING })
  t.is((await send(relay)).code, 250)
  const before = relay.reads
  t.is((await send(relay)).code, 250)
  t.is(relay.reads, before + 1)
  t.deepEqual(relay.chunks, [MAIL, MAIL])
  t.is(relay.connections, 1)
})

test('what waits for its turn, or is long, is told no relay before that one has taken its recipient', async (t) => {
  const relay = await startRelay(t, { ehlo: CHUNKING, rcpt: '550 5.1.1 nobody\r\n' })
  const long = `Subject: Long\r\n\r\n${'x'.repeat(70_000)}\r\n`
  for (const options of [{ limited: true }, { data: long }])
    t.like(await refusal(relay, options), { stage: 'rcpt', reply: { code: 550 } })
  t.deepEqual(relay.chunks, [])
})

test('of an email that was told at once, a refusal is what it is, and the relay goes on', async (t) => {
  const late = '503 5.5.1 no recipient\r\n'
  const cases = [
    [
      { mail: '550 5.7.1 not you\r\n', rcpt: late, end: late },
      { stage: 'mail', reply: { code: 550 } },
    ],
    [
      { rcpt: '550 5.1.1 nobody\r\n', end: late },
      { stage: 'rcpt', reply: { code: 550 } },
    ],
    [{ end: '552 5.3.4 too long\r\n' }, { stage: 'dot', reply: { code: 552 } }],
    [{ mail: '503 5.5.1 nested MAIL\r\n' }, { stage: 'mail', reply: undefined }],
  ] as const
  for (const [answers, seen] of cases) {
    const relay = await startRelay(t, { ehlo: CHUNKING, ...answers })
    t.like(await refusal(relay), seen)
    if (seen.reply === undefined) continue
    t.like(await refusal(relay), seen)
    t.is(relay.connections, 1)
  }
  const closing = await startRelay(t, { ehlo: CHUNKING, mail: '421 4.3.2 closing\r\n', rcpt: '', end: '' })
  t.like(await refusal(closing), { stage: 'connect', reply: { code: 421 }, ambiguous: false })
})

test('an email that was told at once and has no answer may have been taken', async (t) => {
  for (const answers of [{ mail: 'HTTP/1.1 400\r\n' }, { end: '250-ok\r\nwhat\r\n' }]) {
    const relay = await startRelay(t, { ehlo: CHUNKING, ...answers })
    t.true((await refusal(relay)).ambiguous)
    t.is(relay.chunks.length, 1)
  }
})

test.serial(
  'a relay that was silent for seconds may be gone, and hears the email only when it answers',
  async (t) => {
    const relay = await startRelay(t, { ehlo: CHUNKING })
    await send(relay)
    const now = performance.now.bind(performance)
    performance.now = () => now() + 6_000
    t.teardown(() => (performance.now = now))
    await send(relay)
    t.is(relay.chunks.length, 1)
    t.is(relay.heard.at(-1), '.')
  },
)
