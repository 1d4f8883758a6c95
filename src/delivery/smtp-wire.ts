import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

import { mustVerify, type Relay } from './relay.ts'
import { replyLine, type SmtpReply } from './replies.ts'

/** How long a relay may take for the answer to a command. */
export const COMMAND_MS = 30_000
const CONNECT_MS = 10_000
const MAXIMUM_REPLY = 65_536

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

type Stage = SmtpFailure['stage']

/** The bytes of a conversation: commands out, whole replies in, encryption in between. Open it with `openSmtpWire`. */
export class SmtpWire {
  readonly #relay: Relay
  #socket: Socket
  #lines: string[] = []
  #partial = ''
  #waiter: { resolve: (reply: SmtpReply) => void; reject: (error: Error) => void } | undefined
  #broken: Error | undefined

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

  /** Writes what may be long; resolves when all of it has left, rejects when the connection broke. */
  async drain(text: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#socket.write(text, 'latin1', (error) => (error ? reject(error) : resolve()))
    })
  }

  /** The next reply; without one in time the connection is given up. */
  async reply(stage: Stage, withinMs: number): Promise<SmtpReply> {
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

  /** The next reply, which must have this code: nothing can be said after any other. */
  async demand(stage: Stage, code: number): Promise<SmtpReply> {
    const reply = await this.reply(stage, COMMAND_MS)
    if (reply.code !== code) this.fail(stage, reply)
    return reply
  }

  /** Ends the conversation for this reason. */
  fail(stage: Stage, what: string | SmtpReply): never {
    this.destroy()
    throw new SmtpFailure(stage, what)
  }

  /** The TLS handshake, after the relay agreed to it. What it said before then is not trusted. */
  async encrypt(): Promise<void> {
    if (this.#partial !== '' || this.#lines.length > 0) {
      this.fail('connect', 'the relay sent something between STARTTLS and the handshake')
    }
    const plain = this.#socket
    plain.removeAllListeners('data')
    const secured = connectTls({
      socket: plain,
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

/** Connects, encrypted where the relay is so from the first byte; throws SmtpFailure of stage `connect`. */
export async function openSmtpWire(relay: Relay): Promise<SmtpWire> {
  const address = { host: relay.host, port: relay.port }
  const socket = relay.implicitTls
    ? connectTls({ ...address, ...serverName(relay), rejectUnauthorized: mustVerify(relay) })
    : connectTcp({ ...address, noDelay: true })
  const wire = new SmtpWire(relay, socket)
  await settled(socket, relay.implicitTls ? 'secureConnect' : 'connect')
  return wire
}

/** A certificate is asked for by name; an address has none. */
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
