import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Asks again until the answer is neither undefined, null nor false, and gives it back. When the deadline, which is for
 * a machine that has ten times as much to do as it can, passes, the error says what was awaited and what the last attempt
 * threw, if it did.
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
      // The test above the cast leaves only what the return type allows.
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
