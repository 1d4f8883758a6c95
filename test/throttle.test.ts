import { queryObjects } from 'node:v8'

import test from 'ava'

import { Throttle } from '../src/throttle.ts'

test('counting an address keeps nothing of the header that it came in', (t) => {
  const throttle = new Throttle(10, 60_000)
  const heap = (): number => {
    // Counting objects collects garbage first.
    queryObjects(Throttle, { format: 'count' })
    return process.memoryUsage().heapUsed
  }
  const before = heap()
  for (let index = 100; index < 1_100; index++) {
    const header = Buffer.from(`${'x'.repeat(16_000)},203.0.113.1/${index}`).toString()
    const [, address = ''] = header.split(',')
    throttle.count(address)
  }
  const kept = heap() - before
  t.true(kept < 4_000_000, `${kept} bytes are kept`)
  t.is(throttle.count('203.0.113.1/100').left, 8)
})
