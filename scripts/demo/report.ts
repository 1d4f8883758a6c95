import { setTimeout as sleep } from 'node:timers/promises'

/** A failure of the demonstration, with a message for the person who runs it. */
export class DemoError extends Error {}

/** Runs one step and prints its title, result and duration in one line. */
export async function step<Result>(
  title: string,
  work: () => Promise<{ result: Result; said?: string }>,
): Promise<Result> {
  const from = Date.now()
  try {
    const { result, said } = await work()
    const seconds = ((Date.now() - from) / 1000).toFixed(1)
    console.log(`✓ ${title}${said ? `: ${said}` : ''} (${seconds} s)`)
    return result
  } catch (error) {
    console.error(`✗ ${title}`)
    throw error
  }
}

/** Prints an indented line below the current step. */
export function detail(line: string): void {
  console.log(`    ${line}`)
}

/** Calls `ask` until it returns a value. Throws a `DemoError` that names `awaited` after `withinMs`. */
export async function until<Answer>(
  awaited: string,
  ask: () => Promise<Answer | undefined>,
  withinMs = 30_000,
): Promise<Answer> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    if (Date.now() > deadline) {
      throw new DemoError(`${awaited} did not happen within ${withinMs / 1000} s; see .postloom/logs.`)
    }
    await sleep(200)
  }
}
