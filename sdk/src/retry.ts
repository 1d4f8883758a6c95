import type { PostloomError, Result } from './result.ts'

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 8_000
/** A longer wait is not made; the caller gets the error instead. */
const LONGEST_RETRY_AFTER_MS = 60_000
const MOST_RETRIES = 10

const PASSING_STATUSES = new Set([429, 502, 503, 504])
const PASSING_NAMES = new Set([
  'network_error',
  'timeout',
  // The first request with the same idempotency key is still running.
  'concurrent_idempotent_requests',
  'IDEMPOTENCY_IN_PROGRESS',
])
/** Errors with status 429 that last until the end of the month. */
const LASTING_NAMES = new Set(['monthly_quota_exceeded', 'QUOTA_EXCEEDED'])

/** Limits the number of retries that a caller may ask for. */
export function boundRetries(retries: number): number {
  return Math.min(Math.max(0, Math.floor(retries)) || 0, MOST_RETRIES)
}

/**
 * Returns the milliseconds to wait before a retry, or undefined if a retry cannot succeed: the time in `Retry-After`
 * plus some jitter, else an exponential backoff that is reduced by up to half at random.
 */
export function waitBefore(attempt: number, { error, headers }: Result<unknown>): number | undefined {
  if (!error || !isPassing(error)) return undefined
  const asked = readRetryAfter(headers['retry-after'])
  if (asked === undefined) {
    const longest = Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS)
    return longest * (1 - Math.random() / 2)
  }
  return asked > LONGEST_RETRY_AFTER_MS ? undefined : asked + Math.random() * (FIRST_WAIT_MS + asked / 10)
}

/** Waits. Returns false if the signal aborted the wait. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal?.aborted) return false
  return await new Promise((resolve) => {
    const end = (isOver: boolean): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
      resolve(isOver)
    }
    const stop = (): void => end(false)
    const timer = setTimeout(() => end(true), milliseconds)
    signal?.addEventListener('abort', stop)
  })
}

function isPassing({ name, statusCode }: PostloomError): boolean {
  if (LASTING_NAMES.has(name)) return false
  return PASSING_NAMES.has(name) || (statusCode !== null && PASSING_STATUSES.has(statusCode))
}

/** Returns milliseconds; the header has seconds or a date (RFC 9110, 10.2.3). */
function readRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const milliseconds = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now()
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds)
}
