import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import { type EntityManager, row } from '../database.ts'

/**
 * How far back (ms) the slots of an idle lane may start, and how much longer (ms) a slot stays usable: together less
 * than 0.25 s.
 */
const AHEAD_MS = 100
const EXPIRY_MS = 125

/** Grants the right to send one email at a time, at the lane's rate over all processes. */
export type LaneRate = {
  isLimited: boolean
  /** Waits for the next free slot. `waiting` returns how many callers want one now. */
  spend(waiting: () => number): Promise<void>
}

/** A slot of the lane, in performance.now() milliseconds: usable from `from` on, lost after `until`. */
type Slot = { from: number; until: number }

/**
 * Creates the rate limit of a lane; `rate` is in emails per second, 0 is unlimited. One row of `lane_bucket` hands out
 * slots that are 1/rate apart, in leases of at most a tenth of a second's worth, so that no window of T seconds sees
 * more than rate × (T + 0.25) emails, however many processes send. A slot that is not used in time is lost.
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
