const DAY_SECONDS = 86_400

/**
 * Returns how many seconds a Retry-After header asks to wait, at most a day; 0 when there is none or it is not a
 * number.
 */
export function askedSeconds(headers: Record<string, string>): number {
  const seconds = Math.ceil(Number(headers['retry-after'] ?? 0))
  return seconds > 0 ? Math.min(seconds, DAY_SECONDS) : 0
}
