import { sql } from 'kysely'

import { type EntityManager, row, rows } from '../database.ts'
import type { LaneName } from './claims.ts'

/** The emails of a lane in one state of the queue. */
export type QueueDepth = {
  lane: LaneName
  state: string
  emails: number
  /** For how many seconds the one that has been due longest is due; negative when all are due later. */
  dueSeconds: number
}

const STATES = ['queued', 'claimed', 'deferred', 'held', 'apart'] as const
/** At most this many emails of a state are counted, so that a long queue does not make its count expensive. */
const COUNTED = 100_000

/** Counts the emails in the queue of all organizations, by lane and state. */
export async function queueDepths(em: EntityManager): Promise<QueueDepth[]> {
  // One part for each state, because the indexes are partial.
  const parts = STATES.map(
    (state) =>
      sql`(select lane, state, next_attempt_at from delivery_queue where state = ${sql.lit(state)} limit ${COUNTED})`,
  )
  return await rows<QueueDepth>(
    em,
    sql`select lane, state, count(*)::int as emails,
        extract(epoch from now() - min(next_attempt_at))::float8 as "dueSeconds"
      from (${sql.join(parts, sql` union all `)}) counted group by lane, state`,
  )
}

/** Counts the recipients of campaigns that are being sent or paused and that no sender has claimed yet. */
export async function countUnclaimedRecipients(em: EntityManager): Promise<number> {
  const found = await row<{ count: number }>(
    em,
    sql`select coalesce(sum(total - enqueued - skipped), 0)::int as count from campaign_send
      where audience_frozen and finished_at is null and fault is null and enqueued + skipped < total`,
  )
  return found?.count ?? 0
}
