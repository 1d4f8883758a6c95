import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Calls `ask` until it returns something other than undefined, null or false, and returns that. Throws after
 * `withinMs`; the error names `awaited` and what the last attempt threw, if anything. The default timeout is long
 * enough for a machine under ten times its normal load.
 */
export async function eventually<Answer>(
  awaited: string,
  ask: () => Answer | Promise<Answer>,
  { withinMs = 60_000, everyMs = 25 }: { withinMs?: number; everyMs?: number } = {},
): Promise<Exclude<Answer, undefined | null | false | void>> {
  const deadline = Date.now() + withinMs
  let cause: unknown
  for (;;) {
    try {
      const answer = await ask()
      cause = undefined
      // The check leaves only what the return type allows.
      if (answer !== undefined && answer !== null && answer !== false) {
        return answer as Exclude<Answer, undefined | null | false | void>
      }
    } catch (error) {
      cause = error
    }
    if (Date.now() > deadline) break
    await sleep(everyMs)
  }
  const reason = cause instanceof Error ? `: ${cause.message}` : ''
  throw new Error(`waited ${withinMs / 1000} s in vain for ${awaited}${reason}`, { cause })
}
