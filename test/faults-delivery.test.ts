import { randomInt } from 'node:crypto'

import test from 'ava'

import { EXPERIMENTS } from '../faults/experiments.ts'

// What `npm run faults` does at full size, small; see docs/reliability.md.
for (const { id, title, run } of EXPERIMENTS) {
  test.serial(`${id}: ${title}`, async (t) => {
    t.timeout(240_000)
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
