import { setTimeout as sleep } from 'node:timers/promises'

import type { Child } from './child.ts'

/** A part of the service and how to start it. */
export type Part = {
  name: string
  start(): Promise<Child>
}

/** Receives messages about the parts. `givenUp` is called when a part keeps ending. */
export type Reporter = {
  say(line: string): void
  givenUp(reason: string): void
}

/** A part that is kept running. */
export type Supervised = {
  name: string
  stop(): Promise<void>
}

const PAUSES_MS = [500, 1_000, 2_000, 4_000, 8_000]
/** The count of deaths starts again after a part has run this long since it was ready. */
const HEALTHY_MS = 60_000

/**
 * Starts a part and restarts it, after growing pauses, whenever it ends by itself. A failing first start is thrown to
 * the caller; a later one counts as a death. `givenUp` is called when there are more deaths than pauses.
 */
export async function supervise(
  part: Part,
  reporter: Reporter,
  pausesMs: readonly number[] = PAUSES_MS,
  healthyMs = HEALTHY_MS,
): Promise<Supervised> {
  const stopping = new AbortController()
  let child = await part.start()

  const keepRunning = async (): Promise<void> => {
    let deaths = 0
    let startedAt = Date.now()
    while (!stopping.signal.aborted) {
      const reason = await child.exited
      if (stopping.signal.aborted) return
      deaths = Date.now() - startedAt > healthyMs ? 1 : deaths + 1
      const pause = pausesMs[deaths - 1]
      if (pause === undefined) {
        reporter.givenUp(`${part.name} keeps ending (${reason})`)
        return
      }
      reporter.say(`${part.name} ended (${reason}); starting it again in ${pause / 1_000} s`)
      await pauseUnless(stopping.signal, pause)
      if (stopping.signal.aborted) return
      const next = await part.start().catch((error: unknown) => failedStart(error))
      // Set after the start, because a start that fails at its time limit is no healthy run.
      startedAt = Date.now()
      child = next
      // The stop was requested during the start, so only this code can stop the new child.
      if (stopping.signal.aborted) await next.stop()
    }
  }

  const running = keepRunning()
  return {
    name: part.name,
    stop: async () => {
      stopping.abort()
      await child.stop()
      await running
    },
  }
}

async function pauseUnless(signal: AbortSignal, milliseconds: number): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined)
}

/** Returns a child that has already ended, so that a failed start counts as a death. */
function failedStart(error: unknown): Child {
  const reason = error instanceof Error ? error.message : String(error)
  return { pid: 0, exited: Promise.resolve(reason), stop: async () => undefined, kill: () => undefined }
}
