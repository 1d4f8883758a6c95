const DAY_SECONDS = 86_400

/** How many seconds an answer asks to be left alone; 0 where it does not say, or not by a number. */
export function askedSeconds(headers: Record<string, string>): number {
  const seconds = Math.ceil(Number(headers['retry-after'] ?? 0))
  return seconds > 0 ? Math.min(seconds, DAY_SECONDS) : 0
}
