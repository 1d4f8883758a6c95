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
  let client: pg.Client | undefined
  let closed = false

  async function connect(): Promise<void> {
    const next = new pg.Client({ connectionString: databaseUrl, application_name: 'postloom listener' })
    next.on('notification', ({ channel }) => onRing(channelOf(channel)))
    next.on('error', (error) => log.warn({ err: error }, 'the listening connection broke'))
    next.on('end', () => {
      if (!closed) setTimeout(() => void connect().catch(retry), RECONNECT_MS)
    })
    await next.connect()
    await next.query(CHANNELS.map((channel) => `listen postloom_${channel}`).join('; '))
    client = next
    for (const channel of CHANNELS) onRing(channel)
  }

  function retry(error: unknown): void {
    if (closed) return
    log.warn({ err: error }, 'cannot listen for rings yet')
    setTimeout(() => void connect().catch(retry), RECONNECT_MS)
  }

  await connect()
  return {
    async close() {
      closed = true
      await client?.end()
    },
  }
}

function channelOf(name: string): Channel {
  const found = CHANNELS.find((channel) => name === `postloom_${channel}`)
  if (!found) throw new Error(`unexpected notification channel ${name}`)
  return found
}
