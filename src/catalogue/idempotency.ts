import { sql } from 'kysely'

import { type EntityManager, execute, json, row } from '../database.ts'
import { Failure, FAILURES, type FailureCode } from './failure.ts'

/** A call with an Idempotency-Key: its operation, and the hash that the body of a repeated call must have. */
export type KeyedCall = { organizationId: string; key: string; operation: string; bodyHash: Buffer }

/** The stored answer of a keyed call, which a repeated call gets again. */
export type StoredAnswer =
  | { data: unknown }
  | { failure: { code: FailureCode; message: string; details?: unknown; body?: Record<string, unknown> } }

/**
 * Reads an `Idempotency-Key` header: 1 to 256 printable ASCII characters (decisions, section 2). Throws
 * `INVALID_IDEMPOTENCY_KEY` for any other text.
 */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  if (/^[\x21-\x7e][\x20-\x7e]{0,255}$/.test(header)) return header
  throw new Failure(
    'INVALID_IDEMPOTENCY_KEY',
    'Idempotency-Key must have 1 to 256 printable ASCII characters.',
  )
}

/**
 * The result of the database functions for a key: the stored answer, or the reason why there is none (`isOther`: used
 * for another request; `isRunning`: another call holds it).
 */
export type KeptAnswer = StoredAnswer | { isOther: true } | { isRunning: true }

/**
 * Locks the key until the transaction of a keyed call ends. Returns the stored answer of an earlier call, or null for
 * the first call. Throws like `readKept`.
 */
export async function takeKey(em: EntityManager, call: KeyedCall): Promise<StoredAnswer | null> {
  const { organizationId, key, bodyHash } = call
  const found = await row<{ kept: KeptAnswer | null }>(
    em,
    sql`select take_key(${organizationId}, ${key}, ${bodyHash}) as kept`,
  )
  return found?.kept ? readKept(found.kept) : null
}

/**
 * Returns the stored answer of an earlier call with this key, or null. Throws `IDEMPOTENCY_MISMATCH` if the key was
 * used with another body.
 */
export async function findAnswer(em: EntityManager, call: KeyedCall): Promise<StoredAnswer | null> {
  const { organizationId, key, bodyHash } = call
  const found = await row<{ kept: KeptAnswer | null }>(
    em,
    sql`select kept_answer(${organizationId}, ${key}, ${bodyHash}) as kept`,
  )
  return found?.kept ? readKept(found.kept) : null
}

/**
 * Returns the stored answer. Throws `IDEMPOTENCY_MISMATCH` if the key was used for another request, and
 * `IDEMPOTENCY_IN_PROGRESS` if a request with it is still running.
 */
export function readKept(kept: KeptAnswer): StoredAnswer {
  if ('isRunning' in kept) {
    throw new Failure(
      'IDEMPOTENCY_IN_PROGRESS',
      'A request with this Idempotency-Key is still running; repeat it when that one has answered.',
      { retryAfter: 1 },
    )
  }
  if ('isOther' in kept) {
    throw new Failure(
      'IDEMPOTENCY_MISMATCH',
      'This Idempotency-Key was used for another request within 24 hours; use a new key for a new request.',
    )
  }
  return kept
}

/** Returns the data of a stored answer, or throws its failure again. */
export function replay(stored: StoredAnswer): unknown {
  if ('data' in stored) return stored.data
  const { code, message, details, body } = stored.failure
  throw new Failure(code, message, { details, ...(body && { body }) })
}

/**
 * Stores a refusal for 24 hours, after the transaction of its call. It does nothing if another call with the key is
 * running or was answered meanwhile: the answer of that one counts.
 */
export async function storeRefusal(em: EntityManager, call: KeyedCall, refusal: StoredAnswer): Promise<void> {
  const { organizationId, key, bodyHash, operation } = call
  await execute(
    em,
    sql`select keep_answer(${organizationId}, ${key}, ${bodyHash}, ${operation}, ${json(refusal)})
      where take_key(${organizationId}, ${key}, ${bodyHash}) is null`,
  )
}

/** Stores the answer of a successful call for 24 hours, in the transaction that made it. */
export async function storeAnswer(em: EntityManager, call: KeyedCall, answer: StoredAnswer): Promise<void> {
  const { organizationId, key, bodyHash, operation } = call
  await execute(
    em,
    sql`select keep_answer(${organizationId}, ${key}, ${bodyHash}, ${operation}, ${json(answer)})`,
  )
}

/**
 * Returns whether a refusal is stored as the answer for its key. 428, 429, 5xx, invalid tokens (401) and conflicts over
 * the key itself are not, because a retry may succeed.
 */
export function isStorable({ code }: Failure): boolean {
  const { status } = FAILURES[code]
  return status < 500 && ![401, 428, 429].includes(status) && !code.startsWith('IDEMPOTENCY_')
}
