import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { type EntityManager, prepared, rows } from '../database.ts'
import { writeAwaited } from '../domain/campaigns/batches.ts'
import type { Services } from '../services.ts'

/** A link of an email; the ids are UUIDs. */
export type LinkOfEmail = { organizationId: string; messageId: string; position: number }

type Ask = {
  key: string
  link: LinkOfEmail
  resolve: (target: string | null) => void
  reject: (error: unknown) => void
}
type Kept = { target: string; until: number }

const MOST_AT_ONCE = 500
/** Targets are remembered only briefly, because the links of an erased subscriber must stop working. */
const KEPT_MS = 60_000
/** Maximum number of characters of all remembered targets together, about 16 MB of memory. */
const MOST_LETTERS = 8_000_000

const findTargets = prepared(
  'find_targets',
  `select asked.place::int as place, found.target
    from unnest($1::uuid[], $2::uuid[], $3::int[]) with ordinality as asked (organization_id, message_id, position, place)
    cross join lateral link_target(asked.organization_id, asked.message_id, asked.position) as found (target)`,
)

/**
 * Returns a function that finds the target of a link, as frozen when its email was composed; null if there is none.
 * Requests that arrive while a query runs share the next one, so that a crowd costs one query for hundreds of links.
 */
export function createLinkTargets(services: Services): (link: LinkOfEmail) => Promise<string | null> {
  const kept = createMemory()
  let asks: Ask[] = []
  let isAsking = false

  async function askAll(): Promise<void> {
    isAsking = true
    while (asks.length > 0) {
      const batch = asks.slice(0, MOST_AT_ONCE)
      asks = asks.slice(MOST_AT_ONCE)
      await answer(batch)
    }
    isAsking = false
  }

  async function answer(batch: readonly Ask[]): Promise<void> {
    try {
      const targets = await read(services, batch)
      for (const [place, { key, resolve }] of batch.entries()) {
        const target = targets.get(place) ?? null
        if (target !== null) kept.set(key, target)
        resolve(target)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  return async (link) => {
    const key = `${link.messageId}/${link.organizationId}/${link.position}`
    const known = kept.get(key)
    if (known !== null) return known
    return await new Promise((resolve, reject) => {
      asks.push({ key, link, resolve, reject })
      if (!isAsking) void askAll()
    })
  }
}

/**
 * Reads the targets by index in the batch. Emails of a batch may not have rows yet: then they are written, and the
 * query runs again.
 */
async function read(services: Services, batch: readonly Ask[]): Promise<Map<number, string | null>> {
  const em = crossOrganization(services)
  const targets = await find(em, batch)
  const missing = batch.filter((_, place) => (targets.get(place) ?? null) === null).map(({ link }) => link)
  const isMore = missing.length > 0 && (await writeAwaited(em, missing))
  return isMore ? await find(em, batch) : targets
}

async function find(em: EntityManager, batch: readonly Ask[]): Promise<Map<number, string | null>> {
  const found = await rows<{ place: number; target: string | null }>(
    em,
    findTargets(
      batch.map(({ link }) => link.organizationId),
      batch.map(({ link }) => link.messageId),
      batch.map(({ link }) => link.position),
    ),
  )
  return new Map(found.map(({ place, target }) => [place - 1, target]))
}

/** Remembers targets for a minute; drops the oldest first when there are too many. */
function createMemory() {
  const kept = new Map<string, Kept>()
  let letters = 0
  function forget(key: string, { target }: Kept): void {
    kept.delete(key)
    letters -= target.length + key.length
  }
  return {
    get(key: string): string | null {
      const known = kept.get(key)
      if (!known) return null
      if (known.until > performance.now()) return known.target
      forget(key, known)
      return null
    },
    set(key: string, target: string): void {
      const before = kept.get(key)
      if (before) forget(key, before)
      kept.set(key, { target, until: performance.now() + KEPT_MS })
      letters += target.length + key.length
      for (const [oldest, entry] of kept) {
        if (letters <= MOST_LETTERS && entry.until > performance.now()) break
        forget(oldest, entry)
      }
    },
  }
}
