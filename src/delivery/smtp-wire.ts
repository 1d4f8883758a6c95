import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { connect as connectTls } from 'node:tls'

import { mustVerify, type Relay } from './relay.ts'
import { replyLine, type SmtpReply } from './replies.ts'

/** How long (ms) a relay may take to answer a command. */
export const COMMAND_MS = 30_000
const CONNECT_MS = 10_000
const MAXIMUM_REPLY = 65_536
const CODE = /^[2-5]\d\d/
const CARRIAGE_RETURN = 13

/**
 * A conversation that did not end in an acceptance. `reply` is the server's refusal, or undefined when the connection
 * failed. `ambiguous` means that the end of the email was written without an answer, so it may have been taken.
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

/**
 * Thrown when the relay does not accept an address beyond ASCII (RFC 6531, X.6.7); another relay might. Nothing of the
 * email was sent.
 */
export class NoUtf8 extends SmtpFailure {
  constructor(host: string) {
    super('rcpt', { code: 550, text: `5.6.7 ${host} does not offer SMTPUTF8, which this address needs` })
    this.name = 'NoUtf8'
  }
}

type Stage = SmtpFailure['stage']
type Waiter = {
  stage: Stage
  /** In performance.now() milliseconds. */
  deadline: number
  resolve: (reply: SmtpReply) => void
  reject: (error: SmtpFailure) => void
}

/** Writes commands to a relay, reads whole replies and starts TLS. Open it with `openSmtpWire`. */
export class SmtpWire {
  readonly #relay: Relay
  #socket: Socket
  /** Text that was received and not yet read as a reply. */
  #unread = ''
  #waiter: Waiter | undefined
  #broken: Error | undefined
  /**
   * One timer for all waits. It is not cleared when a reply comes; when it fires, it checks the deadline of the wait of
   * that time.
   */
  #alarm: NodeJS.Timeout | undefined
  #alarmAt = 0

  constructor(relay: Relay, socket: Socket) {
    this.#relay = relay
    this.#socket = socket
    this.#listen(socket)
  }

  get isOpen(): boolean {
    return this.#broken === undefined && !this.#socket.destroyed
  }

  get isEncrypted(): boolean {
    return 'encrypted' in this.#socket
  }

  write(stage: Stage, text: string): void {
    if (this.#broken) throw new SmtpFailure(stage, this.#broken.message)
    this.#socket.write(text, 'latin1')
  }

  /** Writes a text that may be long. Resolves when all of it was sent; rejects when the connection broke. */
  async drain(text: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#socket.write(text, 'latin1', (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Returns the next reply. Without one within `withinMs`, closes the connection and throws `SmtpFailure`. */
  async reply(stage: Stage, withinMs: number): Promise<SmtpReply> {
    const buffered = this.#takeReply()
    if (buffered) return buffered
    if (this.#broken) throw new SmtpFailure(stage, this.#broken.message)
    const deadline = performance.now() + withinMs
    if (this.#alarm === undefined || this.#alarmAt > deadline) this.#setAlarm(deadline)
    return await new Promise<SmtpReply>((resolve, reject) => {
      this.#waiter = { stage, deadline, resolve, reject }
    })
  }

  /** Returns the next reply, which must have this code: the conversation cannot go on after any other. */
  async demand(stage: Stage, code: number): Promise<SmtpReply> {
    const reply = await this.reply(stage, COMMAND_MS)
    if (reply.code !== code) this.fail(stage, reply)
    return reply
  }

  /** Closes the connection and throws `SmtpFailure` with this reason. */
  fail(stage: Stage, what: string | SmtpReply): never {
    this.destroy()
    throw new SmtpFailure(stage, what)
  }

  /** Does the TLS handshake after the relay agreed to it. Text that came before the handshake is not trusted. */
  async encrypt(): Promise<void> {
    if (this.#unread !== '') {
      this.fail('connect', 'the relay sent something between STARTTLS and the handshake')
    }
    const plain = this.#socket
    plain.removeAllListeners('data')
    const secured = connectTls({
      socket: plain,
      host: this.#relay.host,
      ...serverName(this.#relay),
      rejectUnauthorized: mustVerify(this.#relay),
    })
    this.#socket = secured
    this.#listen(secured)
    await settled(secured, 'secureConnect')
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

  #listen(socket: Socket): void {
    const decoder = new StringDecoder('utf8')
    socket.on('data', (chunk) => this.#receive(decoder.write(chunk)))
    socket.on('error', (error) => this.#break(error))
    // `end` comes before `close`, which waits until everything was written, also when the relay no longer reads.
    for (const event of ['end', 'close']) {
      socket.on(event, () => this.#break(new Error('the relay closed the connection')))
    }
  }

  #receive(text: string): void {
    this.#unread += text
    if (this.#unread.length > MAXIMUM_REPLY) return this.#break(new Error('the relay talks without end'))
    if (!this.#waiter) return
    const reply = this.#takeReply()
    if (!reply) return
    const { resolve } = this.#waiter
    this.#waiter = undefined
    resolve(reply)
  }

  /**
   * Takes a whole reply from the received text, or returns null. Every line but the last has a hyphen after its code
   * (RFC 5321 4.2.1).
   */
  #takeReply(): SmtpReply | null {
    let text: string | undefined
    for (let at = 0; ;) {
      const end = this.#unread.indexOf('\n', at)
      if (end === -1) return null
      const line = this.#unread.slice(
        at,
        this.#unread.charCodeAt(end - 1) === CARRIAGE_RETURN ? end - 1 : end,
      )
      at = end + 1
      const words = line.slice(4)
      text = text === undefined ? words : `${text}\n${words}`
      if (line.charAt(3) === '-' && CODE.test(line)) continue
      this.#unread = this.#unread.slice(at)
      if (CODE.test(line)) return { code: Number(line.slice(0, 3)), text }
      this.#break(new Error('the relay does not speak SMTP'))
      return null
    }
  }

  #setAlarm(at: number): void {
    clearTimeout(this.#alarm)
    this.#alarmAt = at
    this.#alarm = setTimeout(() => this.#ring(), at - performance.now()).unref()
  }

  #ring(): void {
    this.#alarm = undefined
    if (!this.#waiter) return
    if (this.#waiter.deadline > performance.now()) this.#setAlarm(this.#waiter.deadline)
    else this.#break(new Error('the relay did not answer in time'))
  }

  #break(error: Error): void {
    this.#broken ??= error
    this.#socket.destroy()
    clearTimeout(this.#alarm)
    const waiter = this.#waiter
    this.#waiter = undefined
    waiter?.reject(new SmtpFailure(waiter.stage, this.#broken.message))
  }
}

/** Connects, with TLS from the first byte where the relay requires it; throws `SmtpFailure` of stage `connect`. */
export async function openSmtpWire(relay: Relay): Promise<SmtpWire> {
  const address = { host: relay.host, port: relay.port }
  const socket = relay.implicitTls
    ? connectTls({ ...address, ...serverName(relay), rejectUnauthorized: mustVerify(relay) }).setNoDelay()
    : connectTcp({ ...address, noDelay: true })
  const wire = new SmtpWire(relay, socket)
  await settled(socket, relay.implicitTls ? 'secureConnect' : 'connect')
  return wire
}

/** Returns the name for which the server should present a certificate (SNI); an IP address has none. */
function serverName({ host }: Relay): { servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {}
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
