import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { connect as connectTls } from 'node:tls'

import { replyLine, type SmtpReply } from './replies.ts'

/** Where a relay is and how it is spoken to, from `smtp(s)://user:password@host:port?starttls=required`. */
export type Relay = {
  host: string
  port: number
  /** TLS from the first byte. */
  implicitTls: boolean
  /** No email without STARTTLS, and the certificate must be right. */
  tlsRequired: boolean
  credentials: { user: string; password: string } | null
}

/**
 * A conversation that did not end in an acceptance. `reply` is the server's refusal; without one the connection
 * failed. `ambiguous`: the final dot was written, so the email may have been taken.
 */
export class SmtpFailure extends Error {
  readonly stage: 'connect' | 'mail' | 'rcpt' | 'data' | 'dot'
  readonly reply: SmtpReply | undefined

  constructor(stage: SmtpFailure['stage'], what: string | SmtpReply) {
    super(typeof what === 'string' ? what : replyLine(what))
    this.name = 'SmtpFailure'
    this.stage = stage
    this.reply = typeof what === 'string' ? undefined : what
  }

  get ambiguous(): boolean {
    return this.stage === 'dot' && this.reply === undefined
  }
}

/** What a sender decides while a conversation goes on. */
export type SendGate = {
  /** performance.now() after which nothing may be sent any more: another sender may hold the email then. */
  deadline: number
  /** Waits for the right to send one more; called when the recipient was accepted, right before DATA. */
  beforeData: () => Promise<void>
  /** Hears that the end of the email was written: from here on it may be out, whatever happens. */
  onEnd: () => void
}

/** RFC 5321 4.5.3.2.6 gives a server ten minutes for its answer to the final dot. */
const AFTER_DOT_MS = 600_000
const COMMAND_MS = 30_000
const CONNECT_MS = 10_000
const MAXIMUM_REPLY = 65_536
const SMALL_MAIL = 65_536

/** Reads a relay's URL; the error names what is wrong with it, never its password. */
export function readRelay(text: string): Relay {
  const url = URL.parse(text)
  if (!url || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    throw new Error('RELAY_URL is not a relay; give smtp://host:port or smtps://user:password@host:port.')
  }
  const implicitTls = url.protocol === 'smtps:'
  return {
    host: url.hostname.replaceAll(/^\[|\]$/g, ''),
    port: Number(url.port) || (implicitTls ? 465 : 25),
    implicitTls,
    tlsRequired: url.searchParams.get('starttls') === 'required',
    credentials: url.username
      ? { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
      : null,
  }
}

/** One connection to a relay, for one email at a time. Open it with `openSmtpConnection`. */
export class SmtpConnection {
  readonly #relay: Relay
  #socket: Socket
  #lines: string[] = []
  #partial = ''
  #waiter: { resolve: (reply: SmtpReply) => void; reject: (error: Error) => void } | undefined
  #broken: Error | undefined
  #extensions = new Map<string, string>()
  /** How many emails it has carried. */
  used = 0

  constructor(relay: Relay, socket: Socket) {
    this.#relay = relay
    this.#socket = socket
    this.#listen(socket)
  }

  get isOpen(): boolean {
    return this.#broken === undefined && !this.#socket.destroyed
  }

  /** Greeting, EHLO, STARTTLS where it is offered or required, AUTH where there are credentials. */
  async begin(): Promise<void> {
    await this.#demand('connect', await this.#reply('connect', COMMAND_MS), 220)
    await this.#hello()
    if (!this.#relay.implicitTls) await this.#secure()
    if (this.#relay.credentials) await this.#authenticate(this.#relay.credentials)
  }

  /** Hands over one email and gives back the acceptance; throws SmtpFailure, after which `isOpen` says what is left. */
  async send(from: string, to: string, data: string, gate: SendGate): Promise<SmtpReply> {
    const size = this.#extensions.has('SIZE') ? ` SIZE=${data.length + 1_024}` : ''
    const sender = `MAIL FROM:<${from}>${size}\r\n`
    const recipient = `RCPT TO:<${to}>\r\n`
    const pipelined = this.#extensions.has('PIPELINING')
    this.#write('mail', pipelined ? sender + recipient : sender)
    const sending = await this.#reply('mail', left(gate))
    if (!pipelined && sending.code === 250) this.#write('rcpt', recipient)
    const receiving = pipelined || sending.code === 250 ? await this.#reply('rcpt', left(gate)) : sending
    if (sending.code !== 250) await this.#refuse('mail', sending)
    if (receiving.code !== 250 && receiving.code !== 251) await this.#refuse('rcpt', receiving)
    await gate.beforeData()
    this.#write('data', 'DATA\r\n')
    const ready = await this.#reply('data', left(gate))
    if (ready.code !== 354) await this.#refuse('data', ready)
    return await this.#content(data, gate)
  }

  /** Says goodbye without waiting for an answer. */
  quit(): void {
    if (!this.isOpen) return
    this.#socket.end('QUIT\r\n')
    this.#socket.setTimeout(1_000, () => this.#socket.destroy())
  }

  destroy(): void {
    this.#break(new Error('the connection was closed'))
  }

  async #content(data: string, gate: SendGate): Promise<SmtpReply> {
    const body = stuffDots(data)
    if (body.length > SMALL_MAIL) {
      await this.#drained(body, gate)
      this.#beforeDot(gate)
      this.#write('dot', '.\r\n')
    } else {
      this.#beforeDot(gate)
      this.#write('dot', `${body}.\r\n`)
    }
    gate.onEnd()
    const answer = await this.#reply('dot', AFTER_DOT_MS)
    this.used += 1
    if (answer.code !== 250) await this.#refuse('dot', answer)
    return answer
  }

  /** The last moment at which an email can still be withheld; after it, another sender may have it. */
  #beforeDot(gate: SendGate): void {
    if (performance.now() < gate.deadline) return
    this.destroy()
    throw new SmtpFailure('data', 'the time to send this email was over before its end was written')
  }

  async #drained(body: string, gate: SendGate): Promise<void> {
    const timer = setTimeout(() => this.destroy(), left(gate))
    try {
      await new Promise<void>((resolve, reject) => {
        this.#socket.write(body, 'latin1', (error) => (error ? reject(error) : resolve()))
      })
    } catch {
      throw new SmtpFailure('data', 'the connection broke while the email was written')
    } finally {
      clearTimeout(timer)
    }
  }

  async #hello(): Promise<void> {
    this.#write('connect', `EHLO ${helloName()}\r\n`)
    const reply = await this.#reply('connect', COMMAND_MS)
    await this.#demand('connect', reply, 250)
    this.#extensions = new Map(
      reply.text
        .split('\n')
        .slice(1)
        .map((line) => {
          const [name = '', ...parameters] = line.trim().split(/\s+/)
          return [name.toUpperCase(), parameters.join(' ').toUpperCase()] as const
        }),
    )
  }

  async #secure(): Promise<void> {
    if (!this.#extensions.has('STARTTLS')) {
      if (!this.#relay.tlsRequired) return
      this.destroy()
      throw new SmtpFailure('connect', 'the relay does not offer STARTTLS, which is required')
    }
    this.#write('connect', 'STARTTLS\r\n')
    await this.#demand('connect', await this.#reply('connect', COMMAND_MS), 220)
    if (this.#partial !== '' || this.#lines.length > 0) {
      this.destroy()
      throw new SmtpFailure('connect', 'the relay sent something between STARTTLS and the handshake')
    }
    const plain = this.#socket
    plain.removeAllListeners('data')
    const secured = connectTls({
      socket: plain,
      ...(isIP(this.#relay.host) === 0 && { servername: this.#relay.host }),
      rejectUnauthorized: mustVerify(this.#relay),
    })
    this.#socket = secured
    this.#listen(secured)
    await settled(secured, 'secureConnect')
    await this.#hello()
  }

  async #authenticate({ user, password }: { user: string; password: string }): Promise<void> {
    const methods = this.#extensions.get('AUTH')?.split(' ') ?? []
    const isEncrypted = 'encrypted' in this.#socket
    if (!isEncrypted && !isLoopback(this.#relay.host)) {
      this.destroy()
      throw new SmtpFailure('connect', 'the relay offers no TLS, and a password is not sent in the clear')
    }
    if (methods.includes('PLAIN')) {
      this.#write('connect', `AUTH PLAIN ${base64(`\0${user}\0${password}`)}\r\n`)
    } else {
      this.#write('connect', 'AUTH LOGIN\r\n')
      await this.#demand('connect', await this.#reply('connect', COMMAND_MS), 334)
      this.#write('connect', `${base64(user)}\r\n`)
      await this.#demand('connect', await this.#reply('connect', COMMAND_MS), 334)
      this.#write('connect', `${base64(password)}\r\n`)
    }
    await this.#demand('connect', await this.#reply('connect', COMMAND_MS), 235)
  }

  async #demand(stage: SmtpFailure['stage'], reply: SmtpReply, code: number): Promise<void> {
    if (reply.code === code) return
    this.destroy()
    throw new SmtpFailure(stage, reply)
  }

  /** A refusal of one email leaves the connection usable when RSET works; 421 announces its end. */
  async #refuse(stage: SmtpFailure['stage'], reply: SmtpReply): Promise<never> {
    const failure = new SmtpFailure(stage, reply)
    if (reply.code === 421) {
      this.destroy()
      throw failure
    }
    try {
      this.#write(stage, 'RSET\r\n')
      const reset = await this.#reply(stage, COMMAND_MS)
      if (reset.code !== 250) this.destroy()
    } catch {
      this.destroy()
    }
    throw failure
  }

  #write(stage: SmtpFailure['stage'], text: string): void {
    if (this.#broken) throw new SmtpFailure(stage, this.#broken.message)
    this.#socket.write(text, 'latin1')
  }

  async #reply(stage: SmtpFailure['stage'], withinMs: number): Promise<SmtpReply> {
    const buffered = this.#takeReply()
    if (buffered) return buffered
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<SmtpReply>((resolve, reject) => {
        if (this.#broken) return reject(this.#broken)
        this.#waiter = { resolve, reject }
        timer = setTimeout(() => this.#break(new Error('the relay did not answer in time')), withinMs)
      })
    } catch (error) {
      throw new SmtpFailure(stage, error instanceof Error ? error.message : 'the connection broke')
    } finally {
      clearTimeout(timer)
    }
  }

  #listen(socket: Socket): void {
    socket.on('data', (chunk) => this.#receive(chunk.toString('utf8')))
    socket.on('error', (error) => this.#break(error))
    socket.on('close', () => this.#break(new Error('the relay closed the connection')))
  }

  #receive(text: string): void {
    const lines = (this.#partial + text).split('\n')
    this.#partial = lines.pop() ?? ''
    this.#lines.push(...lines.map((line) => line.replace(/\r$/, '')))
    if (this.#partial.length > MAXIMUM_REPLY || this.#lines.length > 1_000) {
      return this.#break(new Error('the relay talks without end'))
    }
    if (!this.#waiter) return
    const reply = this.#takeReply()
    if (!reply) return
    const { resolve } = this.#waiter
    this.#waiter = undefined
    resolve(reply)
  }

  #takeReply(): SmtpReply | null {
    const end = this.#lines.findIndex((line) => !/^\d{3}-/.test(line))
    if (end < 0) return null
    const lines = this.#lines.splice(0, end + 1)
    const code = Number(/^[2-5]\d\d/.exec(lines[end] ?? '')?.[0] ?? Number.NaN)
    if (Number.isNaN(code)) {
      this.#break(new Error('the relay does not speak SMTP'))
      return null
    }
    return { code, text: lines.map((line) => line.slice(4)).join('\n') }
  }

  #break(error: Error): void {
    this.#broken ??= error
    this.#socket.destroy()
    const waiter = this.#waiter
    this.#waiter = undefined
    waiter?.reject(this.#broken)
  }
}

/** Connects, greets and authenticates; throws SmtpFailure of stage `connect`. */
export async function openSmtpConnection(relay: Relay): Promise<SmtpConnection> {
  const address = { host: relay.host, port: relay.port }
  const name = isIP(relay.host) === 0 ? { servername: relay.host } : {}
  const socket = relay.implicitTls
    ? connectTls({ ...address, ...name, rejectUnauthorized: mustVerify(relay) })
    : connectTcp({ ...address, noDelay: true })
  const connection = new SmtpConnection(relay, socket)
  await settled(socket, relay.implicitTls ? 'secureConnect' : 'connect')
  await connection.begin()
  return connection
}

async function settled(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error('no connection in time')), CONNECT_MS)
    const end = (error?: Error): void => {
      clearTimeout(timer)
      if (error) reject(new SmtpFailure('connect', `the relay cannot be reached: ${error.message}`))
      else resolve()
    }
    socket.once(event, () => end())
    socket.once('error', end)
    socket.once('close', () => end(new Error('the connection was closed')))
  })
}

/** Encryption that is merely offered is taken from anybody; what is demanded, or carries a password, is verified. */
function mustVerify(relay: Relay): boolean {
  return relay.implicitTls || relay.tlsRequired || (relay.credentials !== null && !isLoopback(relay.host))
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

function left(gate: SendGate): number {
  return Math.max(1, Math.min(COMMAND_MS, gate.deadline - performance.now()))
}

/** RFC 5321 4.5.2. */
function stuffDots(data: string): string {
  const stuffed = data.replaceAll('\r\n.', '\r\n..')
  return stuffed.startsWith('.') ? `.${stuffed}` : stuffed
}

function helloName(): string {
  const name = hostname()
  return /^[A-Za-z0-9.-]{1,255}$/.test(name) ? name : '[127.0.0.1]'
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
