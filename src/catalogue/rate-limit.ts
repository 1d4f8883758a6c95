import { sql } from 'kysely'

import type { Plan } from '../../schema/values.ts'
import { type EntityManager, row } from '../database.ts'
import { Failure } from './failure.ts'

/**
 * Requests per minute of an organization by plan (contract, "Limits"). Its `customLimits` may override this; 0 means
 * unlimited.
 */
export const REQUESTS_PER_MINUTE: Record<Plan, number> = { FREE: 100, PREMIUM: 700, ENTERPRISE: 2_000 }

/** The Tools API and MCP share one window, REST v2 and v1 another of the same size (decisions, section 2). */
export type RateBucket = 'tools' | 'rest'

/** The state of the window that answers report. `reset` is in seconds. */
export type RateState = { limit: number; remaining: number; reset: number }

/** Counts requests per organization and bucket, in windows of a minute. */
export type RateLimiter = {
  /** Counts one request, or throws `RATE_LIMITED`. Null when the organization has no limit. */
  take(
    em: EntityManager,
    organizationId: string,
    bucket: RateBucket,
    limit: number,
  ): Promise<RateState | null>
  /** Returns the state of the window as known to this process, without counting. */
  peek(organizationId: string, bucket: RateBucket, limit: number): RateState | null
}

type Lease = { endsAt: number; left: number; used: number }

const MINUTE_MS = 60_000

/**
 * Creates a rate limiter that counts in PostgreSQL and leases requests to this process in chunks. A busy organization
 * then costs one statement per chunk. Chunks shrink towards the limit, so that a single process counts exactly.
 */
export function createRateLimiter(): RateLimiter {
  const leases = new Map<string, Lease>()
  const extending = new Map<string, Promise<Lease>>()

  /** Concurrent calls that find the lease used up share one extension. */
  async function extendOnce(key: string, extension: () => Promise<Lease>): Promise<void> {
    const running = extending.get(key) ?? extension()
    extending.set(key, running)
    try {
      const lease = await running
      leases.delete(key)
      leases.set(key, lease)
    } finally {
      extending.delete(key)
    }
    forgetPast()
  }

  /** Forgets organizations that are quiet. A Map keeps insertion order, so the leases that end first come first. */
  function forgetPast(): void {
    for (const [key, lease] of leases) {
      if (!isOver(lease)) return
      leases.delete(key)
    }
  }

  return {
    async take(em, organizationId, bucket, limit) {
      if (limit === 0) return null
      const key = `${bucket}/${organizationId}`
      let lease = leases.get(key)
      while (!lease || isOver(lease) || (lease.left === 0 && lease.used < limit)) {
        const held = lease
        await extendOnce(key, () => extend(em, organizationId, bucket, limit, held))
        lease = leases.get(key)
      }
      if (lease.left === 0) refuse(limit, stateOf(lease, limit).reset)
      lease.left -= 1
      return stateOf(lease, limit)
    },
    peek(organizationId, bucket, limit) {
      if (limit === 0) return null
      const lease = leases.get(`${bucket}/${organizationId}`)
      if (lease && !isOver(lease)) return stateOf(lease, limit)
      return stateOf({ endsAt: Math.ceil((Date.now() + 1) / MINUTE_MS) * MINUTE_MS, left: 0, used: 0 }, limit)
    },
  }
}

function stateOf({ endsAt, left, used }: Lease, limit: number): RateState {
  const reset = Math.max(1, Math.ceil((endsAt - Date.now()) / 1_000))
  return { limit, remaining: Math.max(0, limit - used) + left, reset }
}

function isOver({ endsAt }: Lease): boolean {
  return endsAt <= Date.now()
}

async function extend(
  em: EntityManager,
  organizationId: string,
  bucket: RateBucket,
  limit: number,
  held: Lease | undefined,
): Promise<Lease> {
  const known = held && !isOver(held) ? held.used : 0
  const chunk = Math.max(1, Math.min(64, Math.floor((limit - known) / 8)))
  const found = await row<{ used: number; endsInMs: number }>(
    em,
    sql`insert into rate_window (organization_id, bucket, window_start, used)
      values (${organizationId}, ${bucket}, date_trunc('minute', now()), ${chunk})
      on conflict (organization_id, bucket) do update set
        used = case when rate_window.window_start = excluded.window_start then rate_window.used else 0 end + ${chunk},
        window_start = excluded.window_start
      returning used,
        extract(epoch from window_start + interval '1 minute' - clock_timestamp())::float8 * 1000 as "endsInMs"`,
  )
  const used = found?.used ?? chunk
  const granted = Math.max(0, Math.min(chunk, limit - (used - chunk)))
  const endsAt = Date.now() + Math.min(MINUTE_MS, found?.endsInMs ?? MINUTE_MS)
  return { endsAt, left: granted, used: Math.min(used, limit) }
}

function refuse(limit: number, reset: number): never {
  throw new Failure(
    'RATE_LIMITED',
    `This organization made its ${limit} requests of this minute; repeat the request in ${reset} s.`,
    { retryAfter: reset, body: { limit } },
  )
}
