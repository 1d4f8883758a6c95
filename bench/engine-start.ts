import { parseArgs } from 'node:util'

import {
  countRoundTrips,
  enterMany,
  ofAutomation,
  ofBare,
  proveSteps,
  publishChain,
  type RoundTrips,
  startPeer,
  timeBare,
  untilRuns,
} from './shared/engine-peer.ts'
import { mean, median, report } from './shared/report.ts'
import { startSystem } from './shared/system.ts'

/**
 * engine-start: the time from the event until the run is at its first step, compared with bare workflows with one
 * activity.
 */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'string' },
  },
})
const [count, rounds] = [Number(values.runs), Number(values.rounds)]

const system = await startSystem({ api: false })
const peer = await startPeer(system)
try {
  await timeBare(peer, 'bareActivities', 1, 20, 1)
  const bare: number[] = []
  const ours: number[] = []
  let trips: RoundTrips | undefined
  bare.push(count / (await timeBare(peer, 'bareActivities', 1, count, 1)))
  for (let round = 0; round < rounds; round++) {
    const steps = [
      { id: 'pause', type: 'WAIT', config: { amount: 3, unit: 'DAYS' }, onError: 'FAIL' } as const,
    ]
    const automation = await publishChain(system, steps)
    const begun = performance.now()
    await enterMany(system, automation.eventType, count)
    await untilRuns(system, automation.id, 'WAITING', count)
    ours.push(count / ((performance.now() - begun) / 1_000))
    await proveSteps(system, automation.id, count, 2)
    trips = await countRoundTrips(system, ofAutomation(automation.id, 'Running'))
  }
  bare.push(count / (await timeBare(peer, 'bareActivities', 1, count, 1)))
  report({
    benchmark: 'engine-start',
    settings: { runs: count, rounds },
    figures: {
      engine: { 'runs/s': median(ours).toFixed(1), 'peak MB': system.memory('worker').peak, ...trips },
      'bare Temporal': {
        'runs/s': mean(bare).toFixed(1),
        ...(await countRoundTrips(system, ofBare('bareActivities'))),
      },
    },
    ratio: median(ours) / mean(bare),
    must: '≥ 0.6×',
    aim: '≥ 1.0×',
  })
} finally {
  await peer.stop()
  await system.stop()
}
process.exit()
