import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import { type EntityManager, row } from '../database.ts'

/** How far a lane that was idle may run ahead, and how long a moment may be used late: together under 0.25 s worth. */
const AHEAD_MS = 100
const EXPIRY_MS = 125

/** The right to send one email at a time, at the lane's rate over all processes. */
export type LaneRate = {
  isLimited: boolean
  /** Waits for the next free moment; `waiting` is how many want one now. */
  spend(waiting: () => number): Promise<void>
}

/** A moment of the lane, in performance.now() milliseconds: usable from `from` on, lost at `until`. */
type Slot = { from: number; until: number }

/**
 * The lane's moments are dealt out by one row of PostgreSQL, 1/rate apart, in leases of at most a tenth of a second's
 * worth, so that no window of T seconds sees more than rate × (T + 0.25) emails, however many processes send. A moment
 * that nobody used in time is lost. Rate 0 is unlimited.
 */
export function createLaneRate(fork: () => EntityManager, lane: string, rate: number): LaneRate {
  if (rate === 0) return { isLimited: false, spend: async () => {} }
  let slots: Slot[] = []
  let asking: Promise<void> | undefined

  async function lease(count: number): Promise<void> {
    const askedAt = performance.now()
    const found = await row<{ startsInMs: number }>(
      fork(),
      sql`update lane_bucket set next_slot_at =
          greatest(next_slot_at, clock_timestamp() - make_interval(secs => ${AHEAD_MS / 1_000}::float8))
          + make_interval(secs => ${count / rate}::float8)
        where lane = ${lane}
        returning extract(epoch from next_slot_at - make_interval(secs => ${count / rate}::float8)
          - clock_timestamp())::float8 * 1000 as "startsInMs"`,
    )
    if (!found) throw new Error(`there is no bucket for lane ${lane}`)
    const answeredAt = performance.now()
    slots = Array.from({ length: count }, (_, index) => {
      const offset = found.startsInMs + (index * 1_000) / rate
      return { from: answeredAt + offset, until: askedAt + offset + AHEAD_MS + EXPIRY_MS }
    })
  }

  return {
    isLimited: true,
    async spend(waiting) {
      for (;;) {
        const slot = slots.shift()
        if (slot) {
          const now = performance.now()
          if (slot.from > now) await sleep(slot.from - now)
          if (performance.now() <= slot.until) return
          continue
        }
        const most = Math.max(1, Math.floor(rate * (AHEAD_MS / 1_000)))
        asking ??= lease(Math.min(most, Math.max(1, waiting()))).finally(() => {
          asking = undefined
        })
        await asking
      }
    },
  }
}
