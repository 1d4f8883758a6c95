import { randomInt } from 'node:crypto'

import test from 'ava'

import type { Experiment } from '../../faults/experiment.ts'

/** Declares a test for the small size of each experiment; `npm run faults` runs the full size. */
export function testSmall(experiments: readonly Experiment[]): void {
  for (const { id, title, run } of experiments) {
    test.serial(`${id}: ${title}`, async (t) => {
      t.timeout(600_000)
      const seed = randomInt(1_000_000)
      t.log(`seed ${seed}`)
      const { injected, seen, claims } = await run('small', { seed, say: () => undefined })
      t.log({ ...injected, ...seen })
      t.deepEqual(
        claims.filter(({ holds }) => !holds),
        [],
      )
    })
  }
}
