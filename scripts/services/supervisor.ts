import { setTimeout as sleep } from 'node:timers/promises'

import type { Child } from './child.ts'

/** A part of the service: how it is started, and how long a stop may take is its own affair. */
export type Part = {
  name: string
  start(): Promise<Child>
}

/** Hears what happens to the parts; `givenUp` when one keeps dying. */
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
/** One that lived this long starts counting anew. */
const HEALTHY_MS = 60_000

/**
 * Starts a part and starts it again, with growing pauses, whenever it ends by itself. A first start that
 * fails is the caller's error; one death more than there are pauses is `givenUp`.
 */
export async function supervise(
  part: Part,
  reporter: Reporter,
  pausesMs: readonly number[] = PAUSES_MS,
): Promise<Supervised> {
  const stopping = new AbortController()
  let child = await part.start()

  const keepRunning = async (): Promise<void> => {
    let deaths = 0
    let startedAt = Date.now()
    while (!stopping.signal.aborted) {
      const reason = await child.exited
      if (stopping.signal.aborted) return
      deaths = Date.now() - startedAt > HEALTHY_MS ? 1 : deaths + 1
      const pause = pausesMs[deaths - 1]
      if (pause === undefined) {
        reporter.givenUp(`${part.name} keeps ending (${reason})`)
        return
      }
      reporter.say(`${part.name} ended (${reason}); starting it again in ${pause / 1_000} s`)
      await pauseUnless(stopping.signal, pause)
      if (stopping.signal.aborted) return
      startedAt = Date.now()
      const next = await part.start().catch((error: unknown) => failedStart(error))
      child = next
      // Asked to stop while it was starting: nobody else knows of it.
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

/** A start that failed counts as a death. */
function failedStart(error: unknown): Child {
  const reason = error instanceof Error ? error.message : String(error)
  return { pid: 0, exited: Promise.resolve(reason), stop: async () => undefined, kill: () => undefined }
}
