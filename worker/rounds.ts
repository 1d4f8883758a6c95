import { setTimeout as sleep } from 'node:timers/promises'

import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'

/**
 * Repeats a round, which returns how much it took: at once while there was something, else after `pollMs`. A round that
 * throws is logged with `complaint` and tried again. `stop` waits for the current round.
 */
export function startRounds(
  services: Services,
  round: (services: Services) => Promise<number>,
  { pollMs, complaint }: { pollMs: number; complaint: string },
): { stop(): Promise<void> } {
  const halt = new AbortController()
  async function work(): Promise<void> {
    while (!halt.signal.aborted) {
      const taken = await round(services).catch((error: unknown) => {
        services.log.warn({ fault: describeFault(error) }, complaint)
        return 0
      })
      if (taken > 0) continue
      await sleep(pollMs, undefined, { signal: halt.signal }).catch(() => undefined)
    }
  }
  const working = work()
  return {
    async stop() {
      halt.abort()
      await working
    },
  }
}

/**
 * Takes the work of each item, such as an organization, and returns how much it was. What throws is logged with
 * `complaint`, holds up no other and is left for the next round.
 */
export async function takeEach<Item>(
  services: Services,
  items: readonly Item[],
  complaint: string,
  take: (item: Item) => Promise<number>,
): Promise<number> {
  let taken = 0
  for (const item of items) {
    taken += await take(item).catch((error: unknown) => {
      services.log.warn({ fault: describeFault(error) }, complaint)
      return 0
    })
  }
  return taken
}

/** How `startServing` works: what it claims, how many tasks it serves at once, and how it serves one. */
export type Serving<Task> = {
  pollMs: number
  most: number
  complaint: string
  /** Claims at most `free` tasks, each with a lease that makes it claimable again when this process dies. */
  claim: (free: number) => Promise<Task[]>
  /** Serves one task and logs its own errors. The signal aborts when this process stops. */
  serve: (task: Task, signal: AbortSignal) => Promise<void>
  /** The grace period of this process. */
  graceMs: number
}

/** How long before the end of the grace period tasks are abandoned. */
const ABANDONED_BEFORE_MS = 2_500

/**
 * Claims and serves tasks that are due while there is room. `stop` waits for current tasks as long as the grace period
 * allows; the rest is left to other workers.
 */
export function startServing<Task>(
  services: Services,
  { pollMs, most, complaint, claim, serve, graceMs }: Serving<Task>,
): { stop(): Promise<void> } {
  const halt = new AbortController()
  const underWay = new Set<Promise<void>>()
  async function serveDue(): Promise<number> {
    const free = most - underWay.size
    if (free === 0) return 0
    const claimed = await claim(free)
    for (const task of claimed) {
      const serving = serve(task, halt.signal).finally(() => underWay.delete(serving))
      underWay.add(serving)
    }
    // 0 when there is no room left, because claiming again at once would find none.
    return underWay.size < most ? claimed.length : 0
  }
  const rounds = startRounds(services, serveDue, { pollMs, complaint })
  return {
    async stop() {
      halt.abort()
      await rounds.stop()
      await Promise.race([
        Promise.all(underWay),
        sleep(graceMs - ABANDONED_BEFORE_MS, undefined, { ref: false }),
      ])
    },
  }
}
