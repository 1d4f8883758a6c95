import { setTimeout as sleep } from 'node:timers/promises'

import { isOwnFault } from '../catalogue/database-error.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { execute, prepared } from '../database.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'

/**
 * An open (no `position`) or a click. `at` is the process's monotonic clock (performance.now) in ms. The id makes
 * writing it repeatable.
 */
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

/** The visits written and dropped by a writer since it started, and those still in memory. */
export type VisitCounts = { written: number; dropped: number; waiting: number }

/** Collects visits in memory and writes them in batches; a crash loses those not yet written. */
export type VisitWriter = {
  /**
   * Adds a visit to the next batch. Resolves at once, or, while the database falls behind, after the next batch or a
   * second.
   */
  add(visit: Visit): Promise<void>
  counts(): VisitCounts
  /** Writes the remaining visits, for a few seconds at most. */
  stop(): Promise<void>
}

const LINGER_MS = 50
const LARGEST_BATCH = 1_000
/**
 * Above this number of visits in memory, the database is slower than the visitors, so each visitor waits for the next
 * batch, for at most LONGEST_WAIT_MS.
 */
const CROWD = 2_000
const LONGEST_WAIT_MS = 1_000
/** Maximum number of visits in memory, about 20 MB. Beyond it, visits are dropped. */
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
 * Creates a writer that commits visits in batches. A crash loses the visits since the last batch began: those of about
 * a second. While the database is unreachable, visitors are still answered: a limited number of visits is kept and
 * written later, and the rest is dropped and counted.
 */
export function createVisitWriter(services: Services): VisitWriter {
  const { log } = services
  let waiting: Visit[] = []
  let [written, dropped] = [0, 0]
  let isAway = false
  let isFull = false
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

  /** Writes full batches; ends when fewer visits than a full batch are left, so that more can join them. */
  async function writeAll(): Promise<void> {
    do {
      const batch = waiting.slice(0, LARGEST_BATCH)
      const settled = await settle(batch)
      waiting = waiting.slice(settled)
      if (settled < batch.length) return
      isFull = false
      batchDone.resolve()
      batchDone = Promise.withResolvers()
    } while (waiting.length >= LARGEST_BATCH)
  }

  /**
   * Writes a batch and returns how many of its visits are written or rejected: all of them, or those before the
   * database became unreachable. A batch that the database rejects is split in halves, so that one invalid visit does
   * not affect others.
   */
  async function settle(batch: readonly Visit[]): Promise<number> {
    try {
      await write(services, batch)
      written += batch.length
      if (isAway) log.info({ waiting: waiting.length }, 'visits are written again')
      isAway = false
      return batch.length
    } catch (error) {
      if (!isOwnFault(error)) {
        if (!isAway) log.error({ fault: describeFault(error) }, 'visits cannot be written; keeping them')
        isAway = true
        batchDone.resolve()
        return 0
      }
      if (batch.length === 1) {
        dropped += 1
        log.error({ fault: describeFault(error), email: batch[0]?.messageId }, 'a visit was rejected')
        return 1
      }
      const middle = batch.length >> 1
      const first = await settle(batch.slice(0, middle))
      return first < middle ? first : first + (await settle(batch.slice(middle)))
    }
  }

  return {
    async add(visit) {
      if (waiting.length >= MOST_WAITING) {
        if (!isFull) log.error('too many visits wait for the database; dropping others')
        isFull = true
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
