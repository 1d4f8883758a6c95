import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

import type { Logger } from 'pino'
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server'
import { SMTPConnection, type SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js'

import { Throttle } from '../src/throttle.ts'
import { type CertificateFiles, readCertificate, watchCertificate } from './certificate.ts'
import { ConnectionLimit } from './connection-limit.ts'
import { REPLIES, Refusal } from './refusal.ts'

/** The subject of a reply that is counted. */
export type Replied = 'message' | 'login' | 'report' | 'recipient'

/** The options of every door. The times default to the constants below; tests shorten them. */
export type DoorOptions = {
  /** The name in the greeting. */
  name: string
  certificate: CertificateFiles
  log: Logger
  /** Addresses of load balancers, whose connections begin with a PROXY header that names the client. */
  proxies?: readonly string[]
  /** Called with every counted reply, for the metrics. */
  onReply?: (what: Replied, reply: number) => void
  idleMs?: number
  entryMs?: number
  messageMs?: number
  certificateLookMs?: number
}

/** The rules of one door: its limits, and what it does with a message. */
export type DoorRules = {
  banner: string
  /** The most bytes of one message. */
  bytes: number
  connections: { all: number; ofAddress: number }
  /** After `most` offences an address is refused for a while; `text` tells it so. */
  offences: { most: number; text: string }
  /** Whether a refused address may still connect. */
  isGreeted?: (address: string) => boolean
  what: 'message' | 'report'
  /** Takes a whole message; resolves with the text that follows 250. */
  accept: (stream: AsyncIterable<Buffer | string>, session: SMTPServerSession) => Promise<string>
  own: Pick<SMTPServerOptions, 'authMethods' | 'authOptional' | 'authRequiredMessage' | 'onAuth' | 'onRcptTo'>
}

const OFFENCES_WINDOW_MS = 10 * 60_000
/** The time for the next command to be complete, however slowly its bytes come. */
const IDLE_MS = 60_000
/** The time from connecting to a login, or to the first message where there is no login. */
const ENTRY_MS = 120_000
/** The time from DATA to the final dot. */
const MESSAGE_MS = 10 * 60_000
/** A message that is too large is read up to so many times its limit; then the connection ends. */
export const MOST_READ = 2
const CLOSE_MS = 4_000
/** The reply code by which smtp-server asks for TLS; RFC 3207 and the contract use 530. */
const WANTS_TLS = 538
/** By what smtp-server answers a malformed address with 501; the contract has 550 for every invalid address. */
const MALFORMED_ADDRESS = new Set<unknown>(['SENDER_SYNTAX_ERROR', 'MAILBOX_SYNTAX_ERROR'])

/* oxlint-disable no-underscore-dangle -- smtp-server shows its socket and its state under such names only */
type Times = { idleMs: number; entryMs: number; messageMs: number }

/**
 * A connection that ends when it is too slow, and whose refusals can have enhanced status codes of their own, where
 * smtp-server has one for each reply code.
 */
class Conversation extends SMTPConnection {
  readonly #times: Times
  readonly #entry: NodeJS.Timeout
  #due: NodeJS.Timeout | undefined

  constructor(door: Door, socket: Socket | TLSSocket, options: SMTPConnectionOptions | null, times: Times) {
    super(door, socket, options)
    this.#times = times
    this.#entry = setTimeout(
      () => this.send(421, '4.4.2 Too slow: log in or begin a message sooner'),
      times.entryMs,
    )
    socket.once('close', () => this.#stopWaiting())
  }

  override send(code: number, text?: string | string[], context?: string | false): void {
    this.#say(code, text, context)
    if (code === 235 || code === 354 || code === 421) clearTimeout(this.#entry)
    if (code !== 421) this.#expect(code === 354 ? this.#times.messageMs : this.#times.idleMs)
    // Without this, the rest of a message that was refused early would keep coming in.
    if (code >= 400 && this.#isInMessage()) this.close()
  }

  override close(): void {
    this.#stopWaiting()
    super.close()
  }

  #stopWaiting(): void {
    clearTimeout(this.#entry)
    clearTimeout(this.#due)
  }

  /** Sets the time within which the next command, or the end of a message, must be complete. */
  #expect(ms: number): void {
    clearTimeout(this.#due)
    if (this._closing || this._closed) return
    this.#due = setTimeout(() => {
      // This does nothing while the client waits for us, so the timer is set again.
      this._onTimeout()
      this.#expect(ms)
    }, ms)
  }

  #isInMessage(): boolean {
    return this._parser && this._parser._dataMode
  }

  #say(code: number, text?: string | string[], context?: string | false): void {
    if (this.secure) this.#holdBack(this._socket)
    if (code === WANTS_TLS) {
      const [reply, enhanced] = REPLIES.AUTH_REQUIRED
      super.send(reply, `${enhanced} Begin with STARTTLS; a token is not taken over an open line`, false)
      return
    }
    // A client that sees AUTH may send its token unencrypted before it reads the refusal.
    if (Array.isArray(text) && !this.secure) {
      return super.send(
        code,
        text.filter((line) => !line.startsWith('AUTH')),
        context,
      )
    }
    if (MALFORMED_ADDRESS.has(context)) return super.send(REPLIES.BAD_MESSAGE[0], text, context)
    const hasOwnCode = typeof text === 'string' && /^[245]\.\d{1,3}\.\d{1,3} /.test(text)
    super.send(code, text, hasOwnCode ? false : context)
  }

  /** Sends the replies to commands that came together as one TLS record. */
  #holdBack(socket: Socket): void {
    if (socket.writableCorked > 0) return
    socket.cork()
    process.nextTick(() => socket.uncork())
  }
}

/* oxlint-enable no-underscore-dangle */

/** An SMTP listener on top of smtp-server, with our replies and with limits for each address and for all of them. */
export class Door extends SMTPServer {
  readonly #rules: DoorRules
  readonly #offenders: Throttle
  readonly #log: Logger
  readonly #onReply: (what: Replied, reply: number) => void
  readonly #times: Times

  constructor({ name, certificate, log, proxies = [], ...options }: DoorOptions, rules: DoorRules) {
    const limit = new ConnectionLimit(rules.connections.ofAddress)
    const { idleMs = IDLE_MS, entryMs = ENTRY_MS, messageMs = MESSAGE_MS } = options
    super({
      name,
      banner: rules.banner,
      ...readCertificate(certificate),
      minVersion: 'TLSv1.2',
      size: rules.bytes,
      rejectOversized: true,
      hideENHANCEDSTATUSCODES: false,
      hideDSN: true,
      hideREQUIRETLS: true,
      disabledCommands: [...(rules.own.onAuth ? [] : ['AUTH']), 'VRFY', 'HELP', 'WIZ', 'SHELL', 'KILL'],
      disableReverseLookup: true,
      maxClients: rules.connections.all,
      socketTimeout: idleMs,
      useProxy: [...proxies],
      closeTimeout: CLOSE_MS,
      onConnect: ({ remoteAddress }, done) => {
        if (limit.open(remoteAddress))
          done(rules.isGreeted?.(remoteAddress) ? null : this.blocked(remoteAddress))
        else done(new Refusal(REPLIES.THROTTLED, 'Too many connections from this address'))
      },
      onClose: ({ remoteAddress }) => limit.close(remoteAddress),
      onData: (stream, session, done) => {
        rules.accept(stream, session).then(
          (text) => {
            this.count(rules.what, 250)
            done(null, text)
          },
          (error: unknown) => done(this.refusalOf(rules.what, error, session)),
        )
      },
      ...rules.own,
    })
    this.#rules = rules
    this.#times = { idleMs, entryMs, messageMs }
    this.#offenders = new Throttle(rules.offences.most, OFFENCES_WINDOW_MS)
    this.#log = log
    this.#onReply = options.onReply ?? (() => undefined)
    // A client that drops its connection is not our error.
    this.on('error', (error) => log.debug({ err: error }, 'a connection broke'))
    this.#renewCertificate(certificate, options.certificateLookMs)
  }

  override connect(socket: Socket | TLSSocket, options?: SMTPConnectionOptions | null): void {
    const conversation = new Conversation(this, socket, options ?? null, this.#times)
    this.connections.add(conversation)
    conversation.on('error', (error) => this.emit('error', error))
    conversation.on('connect', (data) => this.emit('connect', data))
    conversation.init()
  }

  /** Reports a reply to `onReply`. */
  count(what: Replied, reply: number): void {
    this.#onReply(what, reply)
  }

  /** Counts an offence, such as a failed login, of an address. */
  offended(address: string): void {
    this.#offenders.count(address)
  }

  /** Returns the refusal for an address with too many offences, or null. */
  blocked(address: string): Refusal | null {
    return this.#offenders.blockedMs(address) > 0
      ? new Refusal(REPLIES.THROTTLED, this.#rules.offences.text)
      : null
  }

  /** Returns the refusal to answer with, and counts it. Any other error is logged and answered without detail. */
  refusalOf(what: Replied, error: unknown, session: SMTPServerSession): Refusal {
    const refusal =
      error instanceof Refusal
        ? error
        : new Refusal(REPLIES.API_AWAY, 'Something failed on our side; try again in a moment')
    if (error !== refusal) this.#log.error({ err: error, session: session.id }, `a ${what} failed`)
    this.count(what, refusal.responseCode)
    this.#log.debug({ session: session.id, reply: refusal.responseCode }, `a ${what} was refused`)
    return refusal
  }

  /** Loads a renewed certificate as soon as its files change, until the server closes. */
  #renewCertificate(files: CertificateFiles, lookMs?: number): void {
    const unwatch = watchCertificate(
      files,
      () => {
        try {
          this.updateSecureContext(readCertificate(files))
          this.#log.info('the certificate was renewed')
        } catch (error) {
          this.#log.error({ err: error }, 'the renewed certificate cannot be used; the earlier one stays')
        }
      },
      lookMs,
    )
    this.server.once('close', unwatch)
  }
}
