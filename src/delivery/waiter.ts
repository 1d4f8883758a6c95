/** Lets loops wait for what other loops change. */
export type Waiter = {
  /** Something changed: whoever waits asks again. */
  wake(): void
  /** Waits until the condition holds, asked again at every wake-up, or until the time (ms) is over. */
  until(holds: () => boolean, withinMs: number): Promise<void>
}

/** A waiter of one's own. */
export function createWaiter(): Waiter {
  const sleepers = new Set<() => void>()
  return {
    wake() {
      for (const sleeper of sleepers) sleeper()
      sleepers.clear()
    },
    async until(holds, withinMs) {
      const end = performance.now() + withinMs
      while (!holds()) {
        const left = end - performance.now()
        if (left <= 0) return
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left)
          sleepers.add(() => {
            clearTimeout(timer)
            resolve()
          })
        })
      }
    },
  }
}
