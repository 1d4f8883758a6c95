import { nameOf, type Relay } from './relay.ts'
import type { SmtpReply } from './replies.ts'
import { openSmtpConnection, type SendGate, type SmtpConnection } from './smtp-connection.ts'
import { SmtpFailure } from './smtp-wire.ts'

/** An email on its way to a relay: return path, recipient, content. */
export type Envelope = { from: string; to: string; data: string; gate: SendGate }

/** Reports that a relay is out of use for `restMs`, or back in use (0). */
export type RelayNews = (news: { relay: string; restMs: number; reason: string }) => void

const IDLE_MS = 20_000
const SWEEP_MS = 5_000
const MAILS_A_CONNECTION = 500
const FIRST_REST_MS = 250
const LONGEST_REST_MS = 15_000
/** A connection that is refused within this time (ms) after a sign of life means that too many are open. */
const SIGN_OF_LIFE_MS = 10_000
/** How long (ms) until one connection more than the relay granted is tried. */
const REGROWTH_MS = 5_000
/** After so many broken conversations in a row, the relay is at fault and not their emails. */
const LOSSES = 3
/** After so many temporary refusals in a row, the relay gets fewer connections. */
const DEFERRALS = 10
/**
 * Codes of an overloaded server (RFC 3463: no storage, not accepting). Sent before a recipient is known, they concern
 * no single email.
 */
const OVERLOAD = /^4\.3\.[12]\b/

/**
 * The connections to one relay, and whether it can be used. A relay that grants no connection rests, each time twice as
 * long; then one email probes it. When it grants fewer connections than asked for, fewer are used.
 */
export class RelayPool {
  readonly relay: Relay
  readonly #news: RelayNews
  /** The connection that has been idle longest is first. */
  readonly #idle: { connection: SmtpConnection; since: number }[] = []
  #sweeping: NodeJS.Timeout | undefined
  /** Connections that are idle, used or being opened. */
  #open = 0
  #allowed: number
  #regrowAt = 0
  #isOut = false
  #restUntil = 0
  /** How often the relay was put out of use since it last answered an email. */
  #troubles = 0
  /** The email that probes the relay while it is out of use. */
  #probe: Envelope | null = null
  #failure: SmtpFailure | undefined
  #losses = 0
  #deferrals = 0
  /** When the relay last answered, or was first asked, in performance.now() milliseconds. */
  #aliveAt = 0

  constructor(relay: Relay, news: RelayNews) {
    this.relay = relay
    this.#news = news
    this.#allowed = relay.connections
  }

  /** Whether the relay is in use; one that is being probed is not yet. */
  get isHealthy(): boolean {
    return !this.#isOut
  }

  get isProbed(): boolean {
    return this.#probe !== null
  }

  /** Why the relay is out of use; undefined while it is in use. */
  get failure(): SmtpFailure | undefined {
    return this.isHealthy ? undefined : this.#failure
  }

  /** How long (ms) until the relay may be probed. */
  get restMs(): number {
    return Math.max(0, this.#restUntil - performance.now())
  }

  hasRoom(): boolean {
    if (!this.isHealthy) return !this.isProbed && this.restMs === 0
    this.#regrow()
    return this.#open < this.#allowed || this.#idle.length > 0
  }

  /**
   * Sends over an idle connection or a new one, which is reserved before this returns its promise. Call it only right
   * after `hasRoom` returned true.
   */
  async send(mail: Envelope): Promise<SmtpReply> {
    if (!this.isHealthy) this.#probe = mail
    try {
      return await this.#sendOver(this.#takeIdle(), mail)
    } finally {
      if (this.#probe === mail) this.#probe = null
    }
  }

  close(): void {
    clearInterval(this.#sweeping)
    for (const { connection } of this.#idle.splice(0)) this.#drop(connection)
  }

  async #sendOver(kept: SmtpConnection | null, mail: Envelope): Promise<SmtpReply> {
    if (!kept) this.#open += 1
    if (this.#open === 1 && !kept) this.#aliveAt = performance.now()
    if (kept) {
      try {
        return await this.#converse(kept, mail)
      } catch (error) {
        // A relay may close an idle connection at any moment. No content of this email was sent yet, so it can be sent
        // over a new one.
        if (!isStale(error)) throw this.#judged(error, kept)
      }
    }
    const connection = await this.#connect()
    try {
      return await this.#converse(connection, mail)
    } catch (error) {
      throw this.#judged(error, connection)
    }
  }

  async #connect(): Promise<SmtpConnection> {
    try {
      const connection = await openSmtpConnection(this.relay)
      this.#aliveAt = performance.now()
      this.#revive()
      return connection
    } catch (error) {
      this.#open -= 1
      if (error instanceof SmtpFailure) this.#lessen(error)
      throw error
    }
  }

  async #converse(connection: SmtpConnection, { from, to, data, gate }: Envelope): Promise<SmtpReply> {
    const reply = await connection.send(from, to, data, gate)
    this.#aliveAt = performance.now()
    this.#troubles = 0
    this.#losses = 0
    this.#deferrals = 0
    this.#keep(connection)
    this.#revive()
    return reply
  }

  /** Updates the state of the relay after a failed conversation. Returns the error as the caller has to handle it. */
  #judged(error: unknown, connection: SmtpConnection): unknown {
    this.#keep(connection)
    if (!(error instanceof SmtpFailure)) return error
    const { stage, reply } = error
    if (reply && stage === 'mail' && (reply.code === 421 || OVERLOAD.test(reply.text))) {
      this.#lessen(error)
      return new SmtpFailure('connect', reply)
    }
    if (!reply) {
      this.#losses += 1
      if (this.#losses >= LOSSES) this.#rest(error)
    } else {
      this.#losses = 0
      this.#troubles = 0
      // A refusal of one email is a sign of life, unless it announces that the connection closes (421).
      if (reply.code !== 421) this.#revive()
      this.#deferrals = reply.code < 500 ? this.#deferrals + 1 : 0
      if (this.#deferrals > 0 && this.#deferrals % DEFERRALS === 0) this.#allow(this.#allowed >> 1)
    }
    return error
  }

  /** Puts the relay back in use because it granted a connection, or answered on a kept one. */
  #revive(): void {
    if (!this.#isOut) return
    this.#isOut = false
    this.#probe = null
    this.#restUntil = 0
    this.#losses = 0
    this.#allowed = this.relay.connections
    this.#news({ relay: nameOf(this.relay), restMs: 0, reason: 'it answers' })
  }

  /**
   * Handles a relay that granted no connection, or no email on one: either too many are open, or it cannot be used at
   * all.
   */
  #lessen(failure: SmtpFailure): void {
    const lives = performance.now() - this.#aliveAt < SIGN_OF_LIFE_MS
    if (this.isHealthy && this.#open > 0 && lives) this.#allow(this.#open)
    else this.#rest(failure)
  }

  #allow(connections: number): void {
    this.#allowed = Math.max(1, Math.min(this.#allowed, connections))
    this.#regrowAt = performance.now() + REGROWTH_MS
  }

  #regrow(): void {
    if (this.#allowed >= this.relay.connections || performance.now() < this.#regrowAt) return
    this.#allowed += 1
    this.#regrowAt = performance.now() + REGROWTH_MS
  }

  #rest(failure: SmtpFailure): void {
    // The relay already rests: conversations that were under way when it failed say nothing new.
    if (this.restMs > 0) return
    const restMs = Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** this.#troubles)
    this.#troubles += 1
    this.#isOut = true
    this.#failure = failure
    this.#restUntil = performance.now() + restMs
    this.#news({ relay: nameOf(this.relay), restMs, reason: failure.message })
  }

  #takeIdle(): SmtpConnection | null {
    for (let kept = this.#idle.pop(); kept; kept = this.#idle.pop()) {
      if (kept.connection.isOpen) return kept.connection
      this.#open -= 1
    }
    return null
  }

  #keep(connection: SmtpConnection): void {
    const isDone = connection.used >= MAILS_A_CONNECTION || this.#open > this.#allowed
    if (!connection.isOpen || isDone) return this.#drop(connection)
    this.#idle.push({ connection, since: performance.now() })
    this.#sweeping ??= setInterval(() => this.#closeIdle(), SWEEP_MS).unref()
  }

  #drop(connection: SmtpConnection): void {
    this.#open -= 1
    connection.quit()
  }

  /**
   * Closes idle connections in one regular sweep: a timer per email would be set and cleared thousands of times a
   * second.
   */
  #closeIdle(): void {
    const end = performance.now() - IDLE_MS
    for (let kept = this.#idle[0]; kept && kept.since <= end; kept = this.#idle[0]) {
      this.#idle.shift()
      this.#drop(kept.connection)
    }
    if (this.#idle.length > 0) return
    clearInterval(this.#sweeping)
    this.#sweeping = undefined
  }
}

function isStale(error: unknown): boolean {
  return error instanceof SmtpFailure && error.stage === 'mail' && (!error.reply || error.reply.code === 421)
}
