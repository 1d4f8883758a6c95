import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'
import type { Logger } from 'pino'

import { type EntityManager, notify } from '../database.ts'

/** What a process can be woken for: intents for Temporal, or email in a lane. */
const CHANNELS = ['outbox', 'transactional', 'bulk'] as const
export type Channel = (typeof CHANNELS)[number]

/** The first ring goes out at once; those that follow within this time become one. */
const QUIET_MS = 20
const RECONNECT_MS = 1_000

/** Rings for work that was committed. Under load, the rings of each `QUIET_MS` become one NOTIFY. */
export type Doorbell = { ring(channel: Channel): void; close(): Promise<void> }

/** A doorbell that rings outside every transaction; losing a ring costs one poll interval, never the work. */
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

/** Hears rings on a connection of its own and reconnects by itself; `onRing` also runs after each reconnect. */
export async function listenForRings(
  databaseUrl: string,
  onRing: (channel: Channel) => void,
  log: Logger,
): Promise<{ close(): Promise<void> }> {
  const halt = new AbortController()

  async function open(): Promise<{ client: pg.Client; ended: Promise<unknown> }> {
    const client = new pg.Client({ connectionString: databaseUrl, application_name: 'postloom listener' })
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

  /** The only place that opens another: a connection that fails to open ends too, and each would bring two more. */
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
      // It was being opened while this closed, which did not wait: a frozen database answers nobody.
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
