import { setTimeout as sleep } from 'node:timers/promises'

import { isOwnFault } from '../catalogue/database-error.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { execute, prepared } from '../database.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'

/** A visit as it came; `at` is the process's own clock (performance.now). The id makes it one, however often written. */
export type Visit = {
  id: string
  organizationId: string
  messageId: string
  position: number | null
  url: string | null
  isMachine: boolean
  userAgent: string
  at: number
}

/** What a writer did since it began, and how much it holds now. */
export type VisitCounts = { written: number; dropped: number; waiting: number }

/** Gathers visits in memory and writes them in batches; a crash loses what waits. */
export type VisitWriter = {
  /** Keeps a visit for the next batch. Resolves at once, or after a batch when the database falls behind. */
  add(visit: Visit): Promise<void>
  counts(): VisitCounts
  /** Writes what is left, for a few seconds. */
  stop(): Promise<void>
}

const LINGER_MS = 50
const LARGEST_BATCH = 1_000
/** So many wait when the database is slower than the visitors, who then wait as well: a second's worth at most. */
const CROWD = 2_000
const LONGEST_WAIT_MS = 1_000
/** About 20 MB. While the database is away, later visits are dropped. */
const MOST_WAITING = 20_000
const RETRY_MS = 250
const LAST_EFFORT_MS = 5_000

const writeVisits = prepared(
  'write_visits',
  `insert into pending_visit (organization_id, id, message_id, position, url, machine, user_agent, created_at)
    select v.organization_id, v.id, v.message_id, v.position, v.url, v.machine, v.user_agent,
      now() - make_interval(secs => v.age / 1000)
    from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::boolean[], $7::text[], $8::float8[])
      as v (organization_id, id, message_id, position, url, machine, user_agent, age)
    on conflict (organization_id, id) do nothing`,
)

/**
 * Writes visits in batches, one commit each. What a crash can lose is what came since the last batch began: within a
 * second. While the database is away visitors are answered all the same: a bounded number of visits is kept and written
 * later, the rest is dropped and counted.
 */
export function createVisitWriter(services: Services): VisitWriter {
  const { log } = services
  let waiting: Visit[] = []
  let [written, dropped] = [0, 0]
  let isAway = false
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined
  let batchDone = Promise.withResolvers<void>()

  function schedule(afterMs: number): void {
    timer ??= setTimeout(() => {
      timer = undefined
      writing ??= writeAll().finally(() => {
        writing = undefined
        if (waiting.length > 0) schedule(isAway ? RETRY_MS : LINGER_MS)
      })
    }, afterMs)
  }

  /** Ends when less than a whole batch is left, which waits for company. */
  async function writeAll(): Promise<void> {
    do {
      const batch = waiting.slice(0, LARGEST_BATCH)
      const isKnown = await settle(batch)
      if (!isKnown) return
      waiting = waiting.slice(batch.length)
      batchDone.resolve()
      batchDone = Promise.withResolvers()
    } while (waiting.length >= LARGEST_BATCH)
  }

  /** False when the database is away. A batch that it does not take is tried in halves, so that one visit spoils no other. */
  async function settle(batch: readonly Visit[]): Promise<boolean> {
    try {
      await write(services, batch)
      written += batch.length
      if (isAway) log.info({ waiting: waiting.length }, 'visits are written again')
      isAway = false
      return true
    } catch (error) {
      if (!isOwnFault(error)) {
        if (!isAway) log.error({ fault: describeFault(error) }, 'visits cannot be written; keeping them')
        isAway = true
        batchDone.resolve()
        return false
      }
      if (batch.length === 1) {
        dropped += 1
        log.error({ fault: describeFault(error), email: batch[0]?.messageId }, 'a visit was rejected')
        return true
      }
      const middle = batch.length >> 1
      return (await settle(batch.slice(0, middle))) && (await settle(batch.slice(middle)))
    }
  }

  return {
    async add(visit) {
      if (waiting.length >= MOST_WAITING) {
        if (dropped % MOST_WAITING === 0) log.error('too many visits wait for the database; dropping others')
        dropped += 1
        return
      }
      waiting.push(visit)
      if (!writing) schedule(LINGER_MS)
      if (isAway || waiting.length < CROWD) return
      await Promise.race([batchDone.promise, sleep(LONGEST_WAIT_MS, undefined, { ref: false })])
    },
    counts: () => ({ written, dropped, waiting: waiting.length }),
    async stop() {
      const deadline = performance.now() + LAST_EFFORT_MS
      await writing
      while (waiting.length > 0 && performance.now() < deadline) {
        clearTimeout(timer)
        writing = writeAll()
        await writing
        if (isAway) await sleep(RETRY_MS)
      }
      clearTimeout(timer)
      if (waiting.length > 0) log.error({ visits: waiting.length }, 'visits were lost')
    },
  }
}

async function write(services: Services, batch: readonly Visit[]): Promise<void> {
  const now = performance.now()
  await execute(
    crossOrganization(services),
    writeVisits(
      batch.map(({ organizationId }) => organizationId),
      batch.map(({ id }) => id),
      batch.map(({ messageId }) => messageId),
      batch.map(({ position }) => position),
      batch.map(({ url }) => url),
      batch.map(({ isMachine }) => isMachine),
      batch.map(({ userAgent }) => userAgent),
      batch.map(({ at }) => now - at),
    ),
  )
}
