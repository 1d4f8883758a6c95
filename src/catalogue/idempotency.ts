import { sql } from 'kysely'

import { type EntityManager, execute, json, row } from '../database.ts'
import { Failure, FAILURES, type FailureCode } from './failure.ts'

/** A keyed call: what was asked, and the hash that a repetition must have. */
export type KeyedCall = { organizationId: string; key: string; operation: string; bodyHash: Buffer }

/** The answer that a repetition gets again. */
export type StoredAnswer =
  | { data: unknown }
  | { failure: { code: FailureCode; message: string; details?: unknown; body?: Record<string, unknown> } }

/** `Idempotency-Key`: 1 to 256 printable ASCII characters (decisions, section 2). */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  if (/^[\x21-\x7e][\x20-\x7e]{0,255}$/.test(header)) return header
  throw new Failure(
    'INVALID_IDEMPOTENCY_KEY',
    'Idempotency-Key must have 1 to 256 printable ASCII characters.',
  )
}

/**
 * Inside the transaction of a keyed call: takes the key for as long as it lasts and returns the stored answer of an
 * earlier call, or null when this is the first. The lock ends with the transaction, also when the process dies.
 */
export async function takeKey(em: EntityManager, call: KeyedCall): Promise<StoredAnswer | null> {
  const lock = await row<{ taken: boolean }>(
    em,
    sql`select pg_try_advisory_xact_lock(hashtextextended(${`${call.organizationId}/${call.key}`}, 0)) as taken`,
  )
  if (!lock?.taken) {
    throw new Failure(
      'IDEMPOTENCY_IN_PROGRESS',
      'A request with this Idempotency-Key is still running; repeat it when that one has answered.',
      { retryAfter: 1 },
    )
  }
  return await findAnswer(em, call)
}

/** The stored answer of an earlier call with this key, or null; another body under the key is refused. */
export async function findAnswer(em: EntityManager, call: KeyedCall): Promise<StoredAnswer | null> {
  const stored = await row<{ bodyHash: string; answer: StoredAnswer }>(
    em,
    sql`select encode(body_hash, 'hex') as "bodyHash", answer from idempotency_record
      where organization_id = ${call.organizationId} and key = ${call.key} and created_at > now() - interval '24 hours'`,
  )
  if (!stored) return null
  if (stored.bodyHash !== call.bodyHash.toString('hex')) {
    throw new Failure(
      'IDEMPOTENCY_MISMATCH',
      'This Idempotency-Key was used for another request within 24 hours; use a new key for a new request.',
    )
  }
  return stored.answer
}

/** Keeps the answer for 24 hours, in the transaction that made it. */
export async function storeAnswer(em: EntityManager, call: KeyedCall, answer: StoredAnswer): Promise<void> {
  await execute(
    em,
    sql`insert into idempotency_record (organization_id, key, operation, body_hash, answer)
      values (${call.organizationId}, ${call.key}, ${call.operation}, ${call.bodyHash}, ${json(answer)})
      on conflict (organization_id, key) do update set operation = excluded.operation, body_hash = excluded.body_hash,
        answer = excluded.answer, created_at = now()
        where idempotency_record.created_at <= now() - interval '24 hours'`,
  )
}

/** Whether a refusal is final for its key: 428, 429 and 5xx are not, nor is what says the key itself is in use. */
export function isStorable({ code }: Failure): boolean {
  const { status } = FAILURES[code]
  return status < 500 && status !== 428 && status !== 429 && !code.startsWith('IDEMPOTENCY_')
}
