import { sql } from 'kysely'

import { type EntityManager, json, rows } from '../database.ts'

/** How a conversation about one email ended. `soft` is tried again until a day is over; `back` was not its fault. */
export type Outcome = {
  id: string
  organizationId: string
  attempt: number
  kind: 'sent' | 'soft' | 'hard' | 'failed' | 'back'
  subject: string | null
  response: string | null
  /** Why a `failed` email cannot be sent at all. */
  reason: string | null
  category: string | null
  subscriberId: string | null
  /** Until the next try, for `soft` and `back`. */
  delayMs: number
  /** The final dot was written and no answer came: the email may be out. */
  ambiguous: boolean
  data: Record<string, unknown>
}

/** An email that is rendered and has a connection waiting. */
export type Candidate = { id: string; organizationId: string; attempt: number; targets: readonly string[] }

/** What a tick did to one email; one whose fence was lost is not in its answer as an outcome. */
export type Ticked = {
  id: string
  organizationId: string
  part: 'outcome' | 'candidate'
  /** SENT, BOUNCED, FAILED, DELAYED or BACK of an outcome; SUBMITTING, HELD or SKIPPED of a candidate. */
  verdict: string
  subscriberId: string | null
  runId: string | null
  data: Record<string, unknown>
}

/**
 * Records what finished and marks what is next, in one statement; the functions are in the migration of delivery. A row is only touched by who holds its fence; an
 * acceptance counts whoever holds it, because the email is out. The withdrawal checks are part of the marking, so that
 * what was withdrawn before is not sent after.
 *
 * `attended`: the caller records the events in the same transaction, where automations hear them. Otherwise this is for
 * acceptances, whose event is written here, and those that an automation may be listening for are left alone.
 */
export async function tick(
  em: EntityManager,
  outcomes: readonly Outcome[],
  candidates: readonly Candidate[],
  options: { leaseMs: number; attended: boolean },
): Promise<Ticked[]> {
  const parts = [
    ...(outcomes.length > 0
      ? [
          sql`select id, organization_id as "organizationId", 'outcome' as part, verdict,
            subscriber_id as "subscriberId", run_id as "runId", data
            from record_outcomes(${json(outcomes)}, ${options.attended}::boolean)`,
        ]
      : []),
    ...(candidates.length > 0
      ? [
          sql`select id, organization_id as "organizationId", 'candidate' as part, verdict,
            subscriber_id as "subscriberId", run_id as "runId", '{}'::jsonb as data
            from mark_candidates(${json(candidates)}, ${options.leaseMs / 1_000}::float8)`,
        ]
      : []),
  ]
  return parts.length === 0 ? [] : await rows<Ticked>(em, sql.join(parts, sql` union all `))
}
