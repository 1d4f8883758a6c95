import { sql } from 'kysely'

import { type EntityManager, json, prepared, rows } from '../database.ts'
import { type ClaimedMail, writeOut } from './claims.ts'

/**
 * How the sending of one email ended. `soft` is retried until a day is over; `back` is retried and counts as no try.
 */
export type Outcome = {
  id: string
  organizationId: string
  attempt: number
  batchId: string | null
  recipient: string
  kind: 'sent' | 'soft' | 'hard' | 'failed' | 'back'
  subject: string | null
  response: string | null
  /** A reason code, for every kind but `sent`. */
  reason: string | null
  category: string | null
  subscriberId: string | null
  /** Milliseconds until the next try, for `soft` and `back`. */
  delayMs: number
  /** The end of the email was written and no answer came, so it may have been sent. */
  ambiguous: boolean
  data: Record<string, unknown>
}

/** A rendered email that has a free slot, with the targets of the links that only it has. */
export type Candidate = Pick<
  ClaimedMail,
  'id' | 'organizationId' | 'attempt' | 'batchId' | 'subscriberId' | 'recipient'
> & { targets: readonly string[] }

/** A recorded outcome: SENT, BOUNCED, FAILED, DELAYED or BACK. An outcome whose fence was lost is not recorded. */
export type Recorded = {
  id: string
  verdict: string
  subscriberId: string | null
  runId: string | null
  data: Record<string, unknown>
}

/** A candidate that is not sent: SKIPPED, HELD while something is paused, or LOST to another sender. */
export type Withheld = { id: string; verdict: string; runId: string | null }

const acceptAndMark = prepared(
  'accept_and_mark',
  `select id, null as verdict, null as "runId" from record_sent($1, $2, $3, $4, $5, $6) as id
    union all select id, verdict, run_id from mark_candidates($7, $8, $9, $10, $11)`,
)
const acceptAndMarkRecipients = prepared(
  'accept_and_mark_recipients',
  `select id, null as verdict, null::uuid as "runId"
      from hold_batches($1::uuid[] || $9::uuid[], $2::uuid[] || $10::uuid[]) as id
    union all select id, null, null::uuid from record_recipients($1, $2, $3, $4, $5, $6, $7, $8) as id
    union all select id, verdict, run_id from mark_recipients($9, $10, $11, $12, $13, $14)`,
)
const mark = prepared(
  'mark_candidates',
  'select id, verdict, run_id as "runId" from mark_candidates($1, $2, $3, $4, $5)',
)

/** An item that a tick left undone; `verdict` is null for an acceptance. */
type Remaining = Withheld & { verdict: string | null }

/**
 * Records acceptances of any organization with their events, and marks the next candidates: in one statement for emails
 * in the queue and one for recipients of batches. The SQL functions are in the migrations of delivery and of batches.
 * An acceptance counts whoever holds the email, because it was sent. Returns the ids of acceptances that are left,
 * because an automation may be listening for them or their row is gone, and the candidates that are not marked.
 */
export async function tick(
  em: EntityManager,
  accepted: readonly Outcome[],
  candidates: readonly Candidate[],
  leaseMs: number,
): Promise<{ left: string[]; withheld: Withheld[] }> {
  // A batch has no link rows, so an email with personal links needs its own row.
  const isRecipient = ({ batchId, targets }: Candidate) => batchId !== null && targets.length === 0
  const queued = candidates.filter((candidate) => !isRecipient(candidate))
  await writeOut(em, queued, { areOut: false })
  const ofBatches = await tickRecipients(
    em,
    accepted.filter(({ batchId }) => batchId !== null),
    candidates.filter(isRecipient),
    leaseMs,
  )
  const unrecorded = new Set(leftOf(ofBatches))
  const ofQueue = await tickQueue(
    em,
    accepted.filter(({ id, batchId }) => batchId === null || unrecorded.has(id)),
    queued,
    leaseMs,
  )
  return {
    left: leftOf(ofQueue),
    withheld: [...ofBatches, ...ofQueue].filter(({ verdict }) => verdict !== null),
  }
}

function leftOf(remaining: readonly Remaining[]): string[] {
  return remaining.flatMap(({ id, verdict }) => (verdict === null ? [id] : []))
}

async function tickQueue(
  em: EntityManager,
  accepted: readonly Outcome[],
  candidates: readonly Candidate[],
  leaseMs: number,
): Promise<Remaining[]> {
  if (accepted.length + candidates.length === 0) return []
  return await rows<Remaining>(
    em,
    acceptAndMark(
      accepted.map(({ id }) => id),
      accepted.map(({ organizationId }) => organizationId),
      accepted.map(({ subscriberId }) => subscriberId),
      accepted.map(({ subject }) => subject),
      accepted.map(({ response }) => response),
      accepted.map(({ data }) => JSON.stringify(data)),
      ...marking(candidates, leaseMs),
    ),
  )
}

async function tickRecipients(
  em: EntityManager,
  accepted: readonly Outcome[],
  candidates: readonly Candidate[],
  leaseMs: number,
): Promise<Remaining[]> {
  if (accepted.length + candidates.length === 0) return []
  return await rows<Remaining>(
    em,
    acceptAndMarkRecipients(
      accepted.map(({ organizationId }) => organizationId),
      accepted.map(({ batchId }) => batchId),
      accepted.map(({ id }) => id),
      accepted.map(({ subscriberId }) => subscriberId),
      accepted.map(({ recipient }) => recipient),
      accepted.map(({ subject }) => subject),
      accepted.map(({ response }) => response),
      accepted.map(({ data }) => JSON.stringify(data)),
      candidates.map(({ organizationId }) => organizationId),
      candidates.map(({ batchId }) => batchId),
      candidates.map(({ id }) => id),
      candidates.map(({ subscriberId }) => subscriberId),
      candidates.map(({ recipient }) => recipient),
      leaseMs / 1_000,
    ),
  )
}

/**
 * Marks candidates on whose outcome an automation waits. The same statement checks for withdrawal, so that an email
 * that was withdrawn before is not sent after.
 */
export async function markCandidates(
  em: EntityManager,
  candidates: readonly Candidate[],
  leaseMs: number,
): Promise<Withheld[]> {
  return candidates.length === 0 ? [] : await rows<Withheld>(em, mark(...marking(candidates, leaseMs)))
}

/**
 * Records outcomes of any kind. A row changes only when the attempt still holds it, or when the email was sent. The
 * caller records the events.
 */
export async function recordOutcomes(em: EntityManager, outcomes: readonly Outcome[]): Promise<Recorded[]> {
  if (outcomes.length === 0) return []
  await writeOut(em, outcomes, { areOut: true })
  return await rows<Recorded>(
    em,
    sql`select id, verdict, subscriber_id as "subscriberId", run_id as "runId", data
      from record_outcomes(${json(outcomes)})`,
  )
}

function marking(candidates: readonly Candidate[], leaseMs: number): unknown[] {
  const linked = candidates.filter(({ targets }) => targets.length > 0)
  return [
    candidates.map(({ id }) => id),
    candidates.map(({ organizationId }) => organizationId),
    candidates.map(({ attempt }) => attempt),
    linked.length === 0 ? null : JSON.stringify(linked),
    leaseMs / 1_000,
  ]
}
