import { sql } from 'kysely'

import { type EntityManager, execute, json, row } from '../database.ts'
import { Failure, FAILURES, type FailureCode } from './failure.ts'

/** A call with an Idempotency-Key: its operation, and the hash that the body of a repetition must have. */
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

/** What the database returns for a key (see the migration): the stored answer, or why there is none. */
export type KeptAnswer = StoredAnswer | { isOther: true } | { isRunning: true }

/**
 * Inside the transaction of a keyed call: takes the key for as long as it lasts and returns the stored answer of an
 * earlier call, or null when this is the first.
 */
export async function takeKey(em: EntityManager, call: KeyedCall): Promise<StoredAnswer | null> {
  const { organizationId, key, bodyHash } = call
  const found = await row<{ kept: KeptAnswer | null }>(
    em,
    sql`select take_key(${organizationId}, ${key}, ${bodyHash}) as kept`,
  )
  return found?.kept ? readKept(found.kept) : null
}

/** The stored answer of an earlier call with this key, or null; another body under the key is refused. */
export async function findAnswer(em: EntityManager, call: KeyedCall): Promise<StoredAnswer | null> {
  const { organizationId, key, bodyHash } = call
  const found = await row<{ kept: KeptAnswer | null }>(
    em,
    sql`select kept_answer(${organizationId}, ${key}, ${bodyHash}) as kept`,
  )
  return found?.kept ? readKept(found.kept) : null
}

/** The stored answer. Refuses a key of a different request (IDEMPOTENCY_MISMATCH) or of one still running (IDEMPOTENCY_IN_PROGRESS). */
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

/** Returns the data of a stored answer, or throws its refusal again. */
export function replay(stored: StoredAnswer): unknown {
  if ('data' in stored) return stored.data
  const { code, message, details, body } = stored.failure
  throw new Failure(code, message, { details, ...(body && { body }) })
}

/** Keeps the answer for 24 hours, in the transaction that made it. */
export async function storeAnswer(em: EntityManager, call: KeyedCall, answer: StoredAnswer): Promise<void> {
  const { organizationId, key, bodyHash, operation } = call
  await execute(
    em,
    sql`select keep_answer(${organizationId}, ${key}, ${bodyHash}, ${operation}, ${json(answer)})`,
  )
}

/**
 * Whether a refusal is final for its key: 428, 429 and 5xx are not, nor is what is wrong with the token, nor what says
 * the key itself is in use.
 */
export function isStorable({ code }: Failure): boolean {
  const { status } = FAILURES[code]
  return status < 500 && ![401, 428, 429].includes(status) && !code.startsWith('IDEMPOTENCY_')
}
