import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'
import type { Logger } from 'pino'

import { type EntityManager, NOTICE_VANISHED_HOST, notify } from '../database.ts'

/** The reasons to wake a process: intents for Temporal in the outbox, or email in a lane. */
const CHANNELS = ['outbox', 'transactional', 'bulk'] as const
export type Channel = (typeof CHANNELS)[number]

/** The first ring is sent at once; those that follow within this time (ms) become one. */
const QUIET_MS = 20
const RECONNECT_MS = 1_000

/** Wakes other processes for work that was committed. Under load, the rings of each `QUIET_MS` become one NOTIFY. */
export type Doorbell = { ring(channel: Channel): void; close(): Promise<void> }

/** Creates a doorbell that rings outside every transaction. A lost ring costs one poll interval, never the work. */
export function createDoorbell(em: EntityManager, log: Logger): Doorbell {
  const pending = new Set<Channel>()
  let quiet: NodeJS.Timeout | undefined
  let ringing: Promise<unknown> = Promise.resolve()

  function flush(): void {
    quiet = undefined
    if (pending.size === 0) return
    const channels = [...pending]
    pending.clear()
    quiet = setTimeout(flush, QUIET_MS)
    ringing = notify(
      em.fork(),
      channels.map((channel) => `postloom_${channel}`),
    ).catch((error: unknown) => log.warn({ err: error }, 'a ring was lost; the next poll finds the work'))
  }

  return {
    ring(channel) {
      pending.add(channel)
      if (!quiet) flush()
    },
    async close() {
      clearTimeout(quiet)
      flush()
      clearTimeout(quiet)
      await ringing
    },
  }
}

/**
 * Listens for rings on its own connection, which it reopens by itself. `onRing` also runs for every channel after each
 * connect, because rings may have been lost before.
 */
export async function listenForRings(
  databaseUrl: string,
  onRing: (channel: Channel) => void,
  log: Logger,
): Promise<{ close(): Promise<void> }> {
  const halt = new AbortController()

  async function open(): Promise<{ client: pg.Client; ended: Promise<unknown> }> {
    const client = new pg.Client({
      connectionString: databaseUrl,
      application_name: 'postloom listener',
      ...NOTICE_VANISHED_HOST,
    })
    const ended = new Promise((resolve) => client.once('end', resolve))
    client.on('notification', ({ channel }) => onRing(channelOf(channel)))
    client.on('error', (error) => log.warn({ err: error }, 'the listening connection broke'))
    try {
      await client.connect()
      await client.query(CHANNELS.map((channel) => `listen postloom_${channel}`).join('; '))
    } catch (error) {
      void client.end()
      throw error
    }
    for (const channel of CHANNELS) onRing(channel)
    return { client, ended }
  }

  /**
   * Opens the next connection, as often as it takes; null once closed. Nothing else reopens: a connection that fails to
   * open also emits `end`, so each failure would start two more attempts.
   */
  async function reopen(): Promise<typeof current | null> {
    while (!halt.signal.aborted) {
      await sleep(RECONNECT_MS, undefined, { signal: halt.signal }).catch(() => undefined)
      if (halt.signal.aborted) return null
      try {
        return await open()
      } catch (error) {
        log.warn({ err: error }, 'cannot listen for rings yet')
      }
    }
    return null
  }

  let current = await open()
  async function keepOpen(): Promise<void> {
    for (;;) {
      await current.ended
      const next = await reopen()
      if (!next) return
      current = next
      // `close` ran while this connection was being opened and did not wait for it, because a frozen database never
      // answers.
      if (halt.signal.aborted) return await next.client.end()
    }
  }
  void keepOpen()

  return {
    async close() {
      halt.abort()
      await current.client.end()
    },
  }
}

function channelOf(name: string): Channel {
  const found = CHANNELS.find((channel) => name === `postloom_${channel}`)
  if (!found) throw new Error(`unexpected notification channel ${name}`)
  return found
}
