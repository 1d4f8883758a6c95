/** Lets loops wait for changes that other loops make. */
export type Waiter = {
  /** Makes every waiting loop check its condition again. */
  wake(): void
  /** Waits until `holds` returns true, checked at every wake-up, or until `withinMs` is over. */
  until(holds: () => boolean, withinMs: number): Promise<void>
}

/** Creates a waiter for one group of loops. */
export function createWaiter(): Waiter {
  const sleepers = new Set<() => void>()
  return {
    wake() {
      for (const sleeper of sleepers) sleeper()
    },
    async until(holds, withinMs) {
      const end = performance.now() + withinMs
      while (!holds()) {
        const left = end - performance.now()
        if (left <= 0) return
        await new Promise<void>((resolve) => {
          const sleeper = () => {
            clearTimeout(timer)
            sleepers.delete(sleeper)
            resolve()
          }
          const timer = setTimeout(sleeper, left)
          sleepers.add(sleeper)
        })
      }
    },
  }
}
