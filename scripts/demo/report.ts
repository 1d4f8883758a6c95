import { setTimeout as sleep } from 'node:timers/promises'

/** A step of the demonstration that did not happen; the message is for whoever runs it. */
export class DemoError extends Error {}

/** Runs one step, and says in one line what it came to and how long it took. */
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

/** An indented line below the step it belongs to. */
export function detail(line: string): void {
  console.log(`    ${line}`)
}

/** Asks until there is an answer; after the deadline the error says what was awaited. */
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
