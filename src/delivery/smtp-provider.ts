import { hash } from 'node:crypto'

import type { Services } from '../services.ts'
import { type Envelope, RelayPool } from './relay-pool.ts'
import { nameOf, readRelays } from './relay.ts'
import type { SmtpReply } from './replies.ts'
import type { SendGate } from './smtp-connection.ts'
import { NoUtf8, SmtpFailure } from './smtp-wire.ts'

/** A relay as `host:port`, and whether emails go to it now. */
export type RelayState = { relay: string; isUsable: boolean }

/** Sends emails through relays. `send` resolves with the acceptance; a refusal rejects with `SmtpFailure`. */
export type MailProvider = {
  /** How many emails it can send at once. */
  places: number
  send(from: string, to: string, data: string, gate: SendGate): Promise<SmtpReply>
  /** Returns how long (ms) no relay can be used; 0 while one can. */
  restMs(): number
  relays(): RelayState[]
  close(): void
}

/** An email that waits for a connection. */
type Waiter = {
  mail: Envelope
  tried: Set<RelayPool>
  timer: NodeJS.Timeout
  start: (sending: Promise<SmtpReply> | null) => void
}

/** How often (ms) waiting emails check the relays again: one may allow more connections by now. */
const LOOK_MS = 1_000

/**
 * Creates a provider for the relays of RELAY_URL. An email goes to the usable relays of the lowest priority number, by
 * weight. A retry goes to the same relay, as greylisting requires. An email that a relay did not take goes to the next
 * one at once, unless its end was written: the relay may then have taken it.
 */
export function createSmtpProvider(
  relayUrl: string,
  log: Pick<Services['log'], 'info' | 'warn'>,
): MailProvider {
  const waiting: Waiter[] = []
  let looking: NodeJS.Timeout | undefined
  const pools = readRelays(relayUrl).map((relay) => new RelayPool(relay, hear))
  const tiers = [...new Set(pools.map(({ relay }) => relay.priority))]
    .toSorted((one, other) => one - other)
    .map((priority) => pools.filter(({ relay }) => relay.priority === priority))

  const hasRoom = () => pools.some((pool) => pool.hasRoom())

  function hear(news: { relay: string; restMs: number; reason: string }): void {
    if (news.restMs === 0) log.info(news, 'a relay is in use again')
    else log.warn(news, 'a relay is out of use')
    serve()
  }

  /** Returns a relay with room for the email, `wait` when all usable relays are full, or null when none can be used. */
  function choose({ from }: Envelope, tried: ReadonlySet<RelayPool>): RelayPool | 'wait' | null {
    const left = (tier: RelayPool[]) => tier.filter((pool) => !tried.has(pool))
    for (const tier of tiers) {
      const roomy = left(tier).filter((pool) => pool.hasRoom())
      if (roomy.length > 0) return preferred(from, roomy)
      if (left(tier).some((pool) => pool.isHealthy)) return 'wait'
    }
    return left(pools).some((pool) => pool.isProbed) ? 'wait' : null
  }

  function sendOver(pool: RelayPool, mail: Envelope, tried: Set<RelayPool>): Promise<SmtpReply> {
    tried.add(pool)
    return pool
      .send(mail)
      .catch((error: unknown) => {
        // The relay only grants fewer connections than were asked for; one of them will become free.
        if (error instanceof SmtpFailure && error.stage === 'connect' && pool.isHealthy) tried.delete(pool)
        throw error
      })
      .finally(() => serve(pool.isHealthy ? hasRoom : undefined))
  }

  /** Sends over the first relay that has room. Returns null when no relay is left that could send the email. */
  async function attempt(mail: Envelope, tried: Set<RelayPool>): Promise<SmtpReply | null> {
    serve(hasRoom)
    const pool = choose(mail, tried)
    if (pool !== 'wait') return pool && (await sendOver(pool, mail, tried))
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        leave(waiter)
        reject(new SmtpFailure('connect', 'no connection to the relay was free in time'))
      }, mail.gate.deadline - performance.now())
      const waiter: Waiter = { mail, tried, timer, start: resolve }
      const before = mail.gate.isUrgent ? waiting.findIndex((other) => !other.mail.gate.isUrgent) : -1
      waiting.splice(before === -1 ? waiting.length : before, 0, waiter)
      looking ??= setInterval(() => serve(), LOOK_MS)
    })
  }

  /**
   * Gives free connections to waiting emails, in their order, and refuses those for which no relay is left. Pass
   * `hasRoom` when only a connection may have become free: then it ends once all are in use again.
   */
  function serve(goesOn = () => true): void {
    const inOrder = waiting.slice()
    for (const waiter of inOrder) {
      if (!goesOn()) return
      const pool = choose(waiter.mail, waiter.tried)
      if (pool === 'wait' || !leave(waiter)) continue
      waiter.start(pool && sendOver(pool, waiter.mail, waiter.tried))
    }
  }

  /** Removes a waiter and returns whether it still waited: starting one email may serve others meanwhile. */
  function leave(waiter: Waiter): boolean {
    const at = waiting.indexOf(waiter)
    if (at === -1) return false
    clearTimeout(waiter.timer)
    waiting.splice(at, 1)
    if (waiting.length > 0) return true
    clearInterval(looking)
    looking = undefined
    return true
  }

  return {
    places: Math.max(...tiers.map((tier) => tier.reduce((sum, { relay }) => sum + relay.connections, 0))),
    async send(from, to, data, gate) {
      const mail = { from, to, data, gate }
      const tried = new Set<RelayPool>()
      const unspoken: NoUtf8[] = []
      let failure: SmtpFailure | undefined
      for (;;) {
        try {
          const reply = await attempt(mail, tried)
          if (reply) return reply
        } catch (error) {
          if (!mayGoElsewhere(error)) throw error
          if (error instanceof NoUtf8) unspoken.push(error)
          // A failure of this email says more than a relay that cannot be reached.
          else if (failure === undefined || failure.stage === 'connect') failure = error
          if (performance.now() < gate.deadline) continue
        }
        if (unspoken.length > 0) throw unspoken[pools.length - 1] ?? UTF8_LATER
        throw failure ?? pools.find((pool) => pool.failure)?.failure ?? NO_RELAY
      }
    },
    relays: () => pools.map((pool) => ({ relay: nameOf(pool.relay), isUsable: pool.isHealthy })),
    restMs: () => Math.min(...pools.map((pool) => (pool.isHealthy ? 0 : pool.restMs))),
    close() {
      for (const waiter of waiting.splice(0)) {
        clearTimeout(waiter.timer)
        waiter.start(null)
      }
      clearInterval(looking)
      for (const pool of pools) pool.close()
    },
  }
}

const NO_RELAY = new SmtpFailure('connect', 'no relay can be used')
/** The failure when the relays that answered lack SMTPUTF8 and others cannot be reached. */
const UTF8_LATER = new SmtpFailure('rcpt', {
  code: 450,
  text: '4.6.7 no relay that offers SMTPUTF8, which this address needs, can be used',
})

/** Returns whether the relay certainly did not take the email and did not refuse it either. */
function mayGoElsewhere(error: unknown): error is SmtpFailure {
  if (!(error instanceof SmtpFailure)) return false
  return error.stage === 'connect' || error instanceof NoUtf8 || (error.stage !== 'dot' && !error.reply)
}

/**
 * Picks a relay by weighted rendezvous hashing: each email has its own order of relays, and each relay gets its share
 * of all emails.
 */
function preferred(key: string, pools: readonly RelayPool[]): RelayPool | null {
  const [first = null, ...others] = pools
  if (others.length === 0) return first
  const ranked = pools.map((pool) => ({
    pool,
    score: -pool.relay.weight / Math.log(chanceOf(`${key} ${nameOf(pool.relay)}`)),
  }))
  return ranked.reduce((best, one) => (one.score > best.score ? one : best)).pool
}

/** Returns a number between 0 and 1 that is always the same for the same text. */
function chanceOf(text: string): number {
  return (Number.parseInt(hash('sha1', text).slice(0, 12), 16) + 1) / (2 ** 48 + 2)
}
