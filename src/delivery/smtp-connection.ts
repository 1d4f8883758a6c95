import { hostname } from 'node:os'

import { inBytes, needsUtf8 } from './headers.ts'
import { isLoopback, type Relay } from './relay.ts'
import type { SmtpReply } from './replies.ts'
import { COMMAND_MS, NoUtf8, openSmtpWire, SmtpFailure, type SmtpWire } from './smtp-wire.ts'

/** What a caller of `send` controls during a conversation. */
export type SendGate = {
  /** The performance.now() after which the email must not be completed: another sender may hold it then. */
  deadline: number
  /**
   * Waits for the right to send one more email. Called once the recipient is accepted, right before DATA. Null without
   * a limit.
   */
  beforeData: (() => Promise<void>) | null
  /** Whether somebody waits for the email: it goes before others that wait for a connection. */
  isUrgent: boolean
  /** Called when the end of the email was written: from then on it may have been sent, whatever happens. */
  onEnd: () => void
}

/** RFC 5321 4.5.3.2.6 gives a server ten minutes for its answer to the final dot. */
const AFTER_DOT_MS = 600_000
const SMALL_MAIL = 65_536
/**
 * A relay that was silent for longer (ms) may have closed the connection. It would be unknown whether it took an email
 * that was sent whole.
 */
const FRESH_MS = 5_000
/** The code for a bad sequence of commands (RFC 5321 4.2.4), which says nothing about the email. */
const OUT_OF_ORDER = 503
/** The codes with which a server without extensions answers EHLO; it expects HELO then (RFC 5321 3.2). */
const UNKNOWN_COMMAND: ReadonlySet<number> = new Set([500, 502])
/** STARTTLS is not available for the time being (RFC 3207 4). */
const NO_TLS_NOW = 454
const DATA = 'DATA\r\n'
const END = '.\r\n'

/** A connection to a relay, for one email at a time. Open it with `openSmtpConnection`. */
export class SmtpConnection {
  readonly #relay: Relay
  readonly #wire: SmtpWire
  #extensions = new Map<string, string>()
  /** When the relay last answered a complete email, or was ready for the first, in performance.now() milliseconds. */
  #heardAt = 0
  /** How many complete emails it has carried. */
  used = 0

  constructor(relay: Relay, wire: SmtpWire) {
    this.#relay = relay
    this.#wire = wire
  }

  get isOpen(): boolean {
    return this.#wire.isOpen
  }

  /**
   * Reads the greeting and sends EHLO, STARTTLS where it is offered or required, and AUTH where there are credentials.
   */
  async begin(): Promise<void> {
    await this.#wire.demand('connect', 220)
    await this.#hello()
    if (!this.#relay.implicitTls) await this.#secure()
    if (this.#relay.credentials) await this.#authenticate(this.#relay.credentials)
    this.#heardAt = performance.now()
  }

  /**
   * Sends one email and returns the acceptance. Throws `SmtpFailure`; `isOpen` then says whether the connection is
   * still usable.
   */
  async send(from: string, to: string, data: string, gate: SendGate): Promise<SmtpReply> {
    try {
      return await this.#converse(from, to, data, gate)
    } catch (error) {
      // A transaction that the relay has begun would disturb the next email.
      if (!(error instanceof SmtpFailure)) this.#wire.destroy()
      throw error
    }
  }

  async #converse(from: string, to: string, data: string, gate: SendGate): Promise<SmtpReply> {
    const size = this.#extensions.has('SIZE') ? ` SIZE=${data.length + 1_024}` : ''
    const utf8 = needsUtf8(to)
    if (utf8 && !this.#extensions.has('SMTPUTF8')) throw new NoUtf8(this.#relay.host)
    const sender = `MAIL FROM:<${from}>${size}${utf8 ? ' SMTPUTF8' : ''}\r\n`
    const recipient = `RCPT TO:<${inBytes(to)}>\r\n`
    const pipelined = this.#extensions.has('PIPELINING')
    if (pipelined && this.#takesWhole(data, gate)) return await this.#whole(sender + recipient, data, gate)
    const withData = pipelined && gate.beforeData === null
    this.#wire.write('mail', pipelined ? `${sender}${recipient}${withData ? DATA : ''}` : sender)
    const sending = await this.#replyToMail('mail', left(gate))
    if (!pipelined && isAccepted(sending)) this.#wire.write('rcpt', recipient)
    const isAnswered = pipelined ? sending.code !== 421 : isAccepted(sending)
    const receiving = isAnswered ? await this.#wire.reply('rcpt', left(gate)) : sending
    const refusal = refusedBy(sending, receiving)
    if (refusal) {
      if (withData && refusal.reply.code !== 421) await this.#endEmpty(gate)
      await this.#refuse(refusal.stage, refusal.reply)
    }
    await gate.beforeData?.()
    if (!withData) this.#wire.write('data', DATA)
    const ready = await this.#wire.reply('data', left(gate))
    if (ready.code !== 354) await this.#refuse('data', ready)
    return await this.#content(data, gate)
  }

  #takesWhole({ length }: string, { beforeData }: SendGate): boolean {
    const isFresh = performance.now() - this.#heardAt < FRESH_MS
    return this.#extensions.has('CHUNKING') && beforeData === null && length <= SMALL_MAIL && isFresh
  }

  /** Sends a whole email at once (RFC 3030 4.2), which saves a round trip. From then on it may have been sent. */
  async #whole(envelope: string, data: string, gate: SendGate): Promise<SmtpReply> {
    this.#beforeDot(gate)
    this.#wire.write('dot', `${envelope}BDAT ${data.length} LAST\r\n${data}`)
    gate.onEnd()
    const sending = await this.#replyToMail('dot', COMMAND_MS)
    const receiving = sending.code === 421 ? sending : await this.#wire.reply('dot', COMMAND_MS)
    const refusal = refusedBy(sending, receiving)
    if (refusal) {
      // The refusal is known already, so a failure to read on does not matter.
      if (sending.code !== 421)
        await this.#wire.reply(refusal.stage, COMMAND_MS).catch(() => this.#wire.destroy())
      return await this.#refuse(refusal.stage, refusal.reply)
    }
    return await this.#accepted(await this.#wire.reply('dot', AFTER_DOT_MS))
  }

  async #replyToMail(stage: SmtpFailure['stage'], withinMs: number): Promise<SmtpReply> {
    const reply = await this.#wire.reply(stage, withinMs)
    if (reply.code === OUT_OF_ORDER) this.#wire.fail('mail', 'the relay was in the middle of something else')
    return reply
  }

  /** Says goodbye without waiting for an answer. */
  quit(): void {
    this.#wire.quit()
  }

  async #hello(): Promise<void> {
    this.#wire.write('connect', `EHLO ${helloName()}\r\n`)
    const reply = await this.#wire.reply('connect', COMMAND_MS)
    this.#extensions = new Map()
    if (UNKNOWN_COMMAND.has(reply.code)) {
      this.#wire.write('connect', `HELO ${helloName()}\r\n`)
      await this.#wire.demand('connect', 250)
      return
    }
    if (reply.code !== 250) this.#wire.fail('connect', reply)
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
      this.#wire.fail('connect', 'the relay does not offer STARTTLS, which is required')
    }
    this.#wire.write('connect', 'STARTTLS\r\n')
    const ready = await this.#wire.reply('connect', COMMAND_MS)
    // Where TLS is not required, the email goes without it, as to a relay that does not offer it.
    if (ready.code === NO_TLS_NOW && !this.#relay.tlsRequired) return
    if (ready.code !== 220) this.#wire.fail('connect', ready)
    await this.#wire.encrypt()
    await this.#hello()
  }

  async #authenticate({ user, password }: { user: string; password: string }): Promise<void> {
    const methods = this.#extensions.get('AUTH')?.split(' ') ?? []
    if (!this.#wire.isEncrypted && !isLoopback(this.#relay.host)) {
      this.#wire.fail('connect', 'the relay offers no TLS, and a password is not sent in the clear')
    }
    if (methods.includes('PLAIN')) {
      this.#wire.write('connect', `AUTH PLAIN ${base64(`\0${user}\0${password}`)}\r\n`)
    } else {
      this.#wire.write('connect', 'AUTH LOGIN\r\n')
      await this.#wire.demand('connect', 334)
      this.#wire.write('connect', `${base64(user)}\r\n`)
      await this.#wire.demand('connect', 334)
      this.#wire.write('connect', `${base64(password)}\r\n`)
    }
    await this.#wire.demand('connect', 235)
  }

  async #content(data: string, gate: SendGate): Promise<SmtpReply> {
    const whole = withEnd(data)
    if (whole.length > SMALL_MAIL) {
      await this.#drained(whole.slice(0, -END.length), gate)
      this.#beforeDot(gate)
      this.#wire.write('dot', END)
    } else {
      this.#beforeDot(gate)
      this.#wire.write('dot', whole)
    }
    gate.onEnd()
    return await this.#accepted(await this.#wire.reply('dot', AFTER_DOT_MS))
  }

  async #accepted(answer: SmtpReply): Promise<SmtpReply> {
    this.used += 1
    this.#heardAt = performance.now()
    if (!isAccepted(answer)) await this.#refuse('dot', answer)
    return answer
  }

  /** Ends a DATA command that was sent before the refusal came. Without a recipient nothing is sent (RFC 2920 3.1). */
  async #endEmpty(gate: SendGate): Promise<void> {
    try {
      const ready = await this.#wire.reply('data', left(gate))
      if (ready.code !== 354) return
      this.#wire.write('data', END)
      await this.#wire.reply('data', left(gate))
    } catch {
      // The refusal is known already, so a failure to read on does not matter.
      this.#wire.destroy()
    }
  }

  /**
   * Throws when the deadline has passed: this is the last moment to withhold the email, and another sender may have it
   * afterwards.
   */
  #beforeDot(gate: SendGate): void {
    if (performance.now() < gate.deadline) return
    this.#wire.fail('data', 'the time to send this email was over before its end was written')
  }

  async #drained(body: string, gate: SendGate): Promise<void> {
    const timer = setTimeout(() => this.#wire.destroy(), left(gate))
    try {
      await this.#wire.drain(body)
    } catch {
      // A relay that refuses an email in its middle answers and closes the connection.
      const answer = await this.#wire.reply('data', COMMAND_MS).catch(() => null)
      throw new SmtpFailure('data', answer ?? 'the connection broke while the email was written')
    } finally {
      clearTimeout(timer)
    }
  }

  /** Throws the refusal of one email. The connection stays usable when RSET works; 421 announces that it closes. */
  async #refuse(stage: SmtpFailure['stage'], reply: SmtpReply): Promise<never> {
    const failure = new SmtpFailure(stage, reply)
    if (reply.code === 421) {
      this.#wire.destroy()
      throw failure
    }
    try {
      this.#wire.write(stage, 'RSET\r\n')
      const reset = await this.#wire.reply(stage, COMMAND_MS)
      if (reset.code !== 250) this.#wire.destroy()
    } catch {
      this.#wire.destroy()
    }
    throw failure
  }
}

/** Connects, says EHLO and authenticates; throws `SmtpFailure` of stage `connect`. */
export async function openSmtpConnection(relay: Relay): Promise<SmtpConnection> {
  const connection = new SmtpConnection(relay, await openSmtpWire(relay))
  await connection.begin()
  return connection
}

function left(gate: SendGate): number {
  return Math.max(1, Math.min(COMMAND_MS, gate.deadline - performance.now()))
}

/** Returns which of the two commands was refused, with its reply; null when both were accepted. */
function refusedBy(
  sending: SmtpReply,
  receiving: SmtpReply,
): { stage: 'mail' | 'rcpt'; reply: SmtpReply } | null {
  if (!isAccepted(sending)) return { stage: 'mail', reply: sending }
  return isAccepted(receiving) ? null : { stage: 'rcpt', reply: receiving }
}

/**
 * Returns whether a reply accepts its command. The first digit decides (RFC 5321 4.2): an email that was accepted
 * with another code than 250 must not be sent again.
 */
function isAccepted({ code }: SmtpReply): boolean {
  return code >= 200 && code < 300
}

/**
 * Returns a message with its dots stuffed and its final dot (RFC 5321 4.5.2). Messages composed here have no line that
 * begins with a dot, so most are only checked.
 */
function withEnd(data: string): string {
  const whole = data + END
  if (whole.indexOf('\r\n.') === data.length - 2 && !whole.startsWith('.')) return whole
  const stuffed = data.replaceAll('\r\n.', '\r\n..')
  return `${stuffed.startsWith('.') ? '.' : ''}${stuffed}${END}`
}

function helloName(): string {
  const name = hostname()
  return /^[A-Za-z0-9.-]{1,255}$/.test(name) ? name : '[127.0.0.1]'
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
