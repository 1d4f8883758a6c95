import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import type { Readable } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { parseArgs } from 'node:util'

import { sql } from 'kysely'
import { SMTPServer } from 'smtp-server'

import type { Child } from '../scripts/services/child.ts'
import { freePort } from '../scripts/services/ports.ts'
import { execute, row } from '../src/database.ts'
import type { Load } from './shared/load.ts'
import { startPeer } from './shared/peer.ts'
import { median, percentile, report } from './shared/report.ts'
import { startSystem, type System } from './shared/system.ts'

/**
 * smtp-submission: messages per second by STARTTLS and AUTH, with 5 KB of text and HTML, stored before the 250, over
 * persistent connections and over one connection per message. The comparison is smtp-server alone, which accepts
 * everything and stores nothing. A second comparison shows the limit of any listener that forwards by HTTP: smtp-server
 * that hands each message, unread, to bare Koa with one INSERT. The benchmark proves that every 250 has its message.
 * The peers run first and last, with three runs of ours between.
 */
const CONNECTIONS = 16
const SECONDS = 4
const RUNS = 3
/** The processes whose processor time is reported. */
const PARTS = ['smtp', 'api', 'postgres'] as const
const WORDS = 'The engine weaves algebraic patterns just as the loom weaves flowers and leaves.'

const { values } = parseArgs({ options: { peer: { type: 'string' }, json: { type: 'string' } } })
type Door = { port: number; certificate: string; login: string }

async function measure(): Promise<void> {
  const system = await startSystem({ worker: false, smtp: true })
  const peers: Child[] = []
  try {
    const [peerPort, koaPort, forwardingPort] = [await freePort(), await freePort(), await freePort()]
    const tls = { SMTP_TLS_CERT: system.smtp.certFile, SMTP_TLS_KEY: system.smtp.keyFile }
    const { databaseUrl } = system.services.config
    peers.push(await startPeer(import.meta.filename, peerPort, tls, greets))
    peers.push(
      await startPeer(join(import.meta.dirname, 'tx-send.ts'), koaPort, { DATABASE_URL: databaseUrl }),
    )
    const forwarding = { ...tls, FORWARD_PORT: String(koaPort) }
    peers.push(await startPeer(import.meta.filename, forwardingPort, forwarding, greets))
    const certificate = readFileSync(system.smtp.certFile, 'utf8')
    const login = Buffer.from(`\0bench\0${system.token}`).toString('base64')
    const ours: Door = { port: system.smtp.port, certificate, login }
    const bare: Door = { port: peerPort, certificate, login }
    const forwarded: Door = { port: forwardingPort, certificate, login }
    let answered = 0
    for (const door of [bare, forwarded, ours]) {
      const warmUp = await keepSubmitting(door, { isReused: true, seconds: 2 })
      if (door === ours) answered += warmUp.answered
    }
    await execute(system.services.orm.em.fork(), sql`analyze`)
    const figures: Record<string, Record<string, number>> = {}
    const ratios: number[] = []
    for (const [name, isReused] of [
      ['connections that stay', true],
      ['one connection a message', false],
    ] as const) {
      const bareRuns = [await keepSubmitting(bare, { isReused, seconds: SECONDS })]
      const forwardedRun = await keepSubmitting(forwarded, { isReused, seconds: SECONDS })
      const ourRuns: Load[] = []
      const began = PARTS.map((part) => system.processorMs(part))
      for (let run = 0; run < RUNS; run++) {
        ourRuns.push(await keepSubmitting(ours, { isReused, seconds: SECONDS }))
        bareRuns.push(await keepSubmitting(bare, { isReused, seconds: SECONDS }))
      }
      const used = PARTS.map((part, at) => system.processorMs(part) - (began[at] ?? 0))
      const submitted = ourRuns.reduce((sum, run) => sum + run.answered, 0)
      answered += submitted
      const [mine, theirs] = [summary(ourRuns), summary(bareRuns)]
      figures[`smtp-submission, ${name}`] = {
        ...mine,
        ...Object.fromEntries(
          PARTS.map((part, at) => [
            `${part} CPU ms/msg`,
            Math.round(((used[at] ?? 0) / submitted) * 100) / 100,
          ]),
        ),
        'peak MB': system.memory('smtp').peak,
      }
      figures[`bare smtp-server, ${name}`] = theirs
      figures[`the same before bare Koa, ${name}`] = summary([forwardedRun])
      ratios.push(mine['msg/s'] / theirs['msg/s'])
    }
    await prove(system, answered)
    report({
      benchmark: 'smtp-submission',
      settings: { connections: CONNECTIONS, seconds: SECONDS, runs: RUNS, messageBytes: message(0).length },
      figures,
      ratio: Math.min(...ratios),
      must: '≥ 0.3×',
      aim: '≥ 0.6×',
    })
  } finally {
    for (const peer of peers) await peer.stop()
    await system.stop()
  }
}

/** Throws unless every 250 has its message and there are no other messages. */
async function prove({ services }: System, answered: number): Promise<void> {
  const stored = await row<{ messages: number }>(
    services.orm.em.fork(),
    sql`select count(*)::int as messages from message m join delivery_queue q on q.id = m.id`,
  )
  if (stored?.messages !== answered) {
    throw new Error(`${answered} messages were answered with 250, but the database has ${stored?.messages}`)
  }
}

let sent = 0

function message(number: number): string {
  const text = `${WORDS}\r\n`.repeat(25)
  const html = `<p>${WORDS}</p>\r\n`.repeat(28)
  return [
    'From: Shop <hello@postloom.test>',
    `To: reader-${number % 5_000}@example.com`,
    'Subject: Your order',
    `Message-ID: <${number}@client.example>`,
    'MIME-Version: 1.0',
    'Content-Type: multipart/alternative; boundary=b',
    '',
    `--b\r\nContent-Type: text/plain\r\n\r\n${text}`,
    `--b\r\nContent-Type: text/html\r\n\r\n${html}`,
    '--b--\r\n.\r\n',
  ].join('\r\n')
}

async function keepSubmitting(door: Door, options: { isReused: boolean; seconds: number }): Promise<Load> {
  const times: number[] = []
  const started = performance.now()
  const end = started + options.seconds * 1_000
  async function client(): Promise<void> {
    let talk: Talk | undefined
    while (performance.now() < end) {
      const began = performance.now()
      talk ??= await Talk.open(door)
      await talk.submit((sent += 1))
      times.push(performance.now() - began)
      if (!options.isReused) {
        talk.close()
        talk = undefined
      }
    }
    talk?.close()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, client))
  const elapsed = (performance.now() - started) / 1_000
  return {
    perSecond: times.length / elapsed,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    answered: times.length,
  }
}

/** An SMTP client. An unexpected reply ends the benchmark. */
class Talk {
  readonly #socket: Socket
  #text = ''
  #wake: () => void = () => undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk) => {
      this.#text += String(chunk)
      this.#wake()
    })
  }

  static async open({ port, certificate, login }: Door): Promise<Talk> {
    const plain = connect(port, '127.0.0.1')
    plain.setNoDelay(true)
    const open = new Talk(plain)
    await open.reply('220')
    await open.say('EHLO client.example\r\n', '250')
    await open.say('STARTTLS\r\n', '220')
    plain.removeAllListeners('data')
    const secured = connectTls({ socket: plain, ca: certificate, servername: 'localhost' })
    await new Promise<void>((resolve, reject) => {
      secured.once('secureConnect', resolve)
      secured.once('error', reject)
    })
    const talk = new Talk(secured)
    await talk.say('EHLO client.example\r\n', '250')
    await talk.say(`AUTH PLAIN ${login}\r\n`, '235')
    return talk
  }

  async submit(number: number): Promise<void> {
    const recipient = `reader-${number % 5_000}@example.com`
    this.#socket.write(`MAIL FROM:<hello@postloom.test>\r\nRCPT TO:<${recipient}>\r\nDATA\r\n`)
    for (const code of ['250', '250', '354']) await this.reply(code)
    await this.say(message(number), '250')
  }

  async say(text: string, code: string): Promise<void> {
    this.#socket.write(text)
    await this.reply(code)
  }

  async reply(code: string): Promise<void> {
    for (;;) {
      const whole = /^(?:\d{3}-[^\n]*\n)*\d{3} [^\n]*\n/.exec(this.#text)?.[0]
      if (whole !== undefined) {
        this.#text = this.#text.slice(whole.length)
        if (whole.startsWith(code)) return
        throw new Error(`expected ${code}, got: ${whole}`)
      }
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  close(): void {
    this.#socket.destroy()
  }
}

function summary(runs: readonly Load[]) {
  return {
    'msg/s': Math.round(median(runs.map(({ perSecond }) => perSecond))),
    'p50 ms': Math.round(median(runs.map(({ p50 }) => p50)) * 10) / 10,
    'p99 ms': Math.round(median(runs.map(({ p99 }) => p99)) * 10) / 10,
  }
}

/** Returns whether a server at the port sends a greeting. */
async function greets(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isUp = await new Promise<boolean>((resolve) => {
    socket.once('data', () => resolve(true))
    socket.once('error', () => resolve(false))
  })
  socket.destroy()
  return isUp
}

function servePeer(port: number): void {
  const forwardPort = process.env['FORWARD_PORT']
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  function forward(stream: Readable, to: string | undefined, done: (error: Error | null) => void): void {
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.once('end', () => {
      const asking = request({ host: '127.0.0.1', port: forwardPort, method: 'POST', agent }, (answer) => {
        answer.resume()
        answer.once('end', () => done(answer.statusCode === 200 ? null : new Error('not stored')))
      })
      asking.once('error', done)
      asking.end(JSON.stringify({ to, content: Buffer.concat(chunks).toString('latin1') }))
    })
  }
  const server = new SMTPServer({
    cert: readFileSync(process.env['SMTP_TLS_CERT'] ?? '', 'utf8'),
    key: readFileSync(process.env['SMTP_TLS_KEY'] ?? '', 'utf8'),
    disableReverseLookup: true,
    onAuth: (_login, _session, done) => done(null, { user: 'anyone' }),
    onData: (stream, session, done) => {
      if (forwardPort) return forward(stream, session.envelope.rcptTo[0]?.address, done)
      stream.resume()
      stream.once('end', () => done(null))
    },
  })
  server.on('error', () => undefined)
  server.listen(port, '127.0.0.1')
  process.once('SIGTERM', () => {
    for (const connection of server.connections) connection.close()
    server.close()
  })
}

if (values.peer) servePeer(Number(values.peer))
else await measure()
