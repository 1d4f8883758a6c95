import { parseArgs } from 'node:util'

import type { Step } from '../schema/automation.ts'
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
  timeEmpty,
  untilRuns,
} from './shared/engine-peer.ts'
import { mean, median, report } from './shared/report.ts'
import { startSystem } from './shared/system.ts'

/**
 * engine-steps: runs of five immediate steps, compared with bare workflows with five activities, and with as many empty
 * workflows, which is the limit as long as each run is one workflow.
 */
const STEPS = 5
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'string' },
  },
})
const [count, rounds] = [Number(values.runs), Number(values.rounds)]
const steps: Step[] = [
  { id: 'one', type: 'ADD_TAG', config: { tagNames: ['one'] }, onError: 'FAIL' },
  { id: 'two', type: 'ADD_TAG', config: { tagNames: ['two'] }, onError: 'FAIL' },
  {
    id: 'three',
    type: 'BRANCH',
    config: { paths: [{ id: 'next', filters: [{ field: 'tags', operator: 'has_any', value: ['one'] }] }] },
    onError: 'FAIL',
  },
  { id: 'four', type: 'REMOVE_TAG', config: { tagNames: ['one'] }, onError: 'FAIL' },
  { id: 'five', type: 'ADD_TAG', config: { tagNames: ['five'] }, onError: 'FAIL' },
]

const system = await startSystem({ api: false })
const peer = await startPeer(system)
try {
  await timeBare(peer, 'bareActivities', STEPS, 20, STEPS)
  const bare: number[] = []
  const ours: number[] = []
  const empty: number[] = []
  let trips: RoundTrips | undefined
  const transitions = count * STEPS
  bare.push(transitions / (await timeBare(peer, 'bareActivities', STEPS, count, STEPS)))
  for (let round = 0; round < rounds; round++) {
    const automation = await publishChain(system, steps)
    const begun = performance.now()
    await enterMany(system, automation.eventType, count)
    await untilRuns(system, automation.id, 'COMPLETED', count)
    ours.push(transitions / ((performance.now() - begun) / 1_000))
    await proveSteps(system, automation.id, count, STEPS + 1)
    empty.push(transitions / (await timeEmpty(system, peer, count)))
    trips = await countRoundTrips(system, ofAutomation(automation.id, 'Completed'))
  }
  bare.push(transitions / (await timeBare(peer, 'bareActivities', STEPS, count, STEPS)))
  report({
    benchmark: 'engine-steps',
    settings: { runs: count, steps: STEPS, rounds },
    figures: {
      engine: { 'transitions/s': median(ours).toFixed(1), 'peak MB': system.memory('worker').peak, ...trips },
      'workflows that do nothing': { 'transitions/s': median(empty).toFixed(1) },
      'bare Temporal': {
        'transitions/s': mean(bare).toFixed(1),
        ...(await countRoundTrips(system, ofBare('bareActivities'))),
      },
    },
    ratio: median(ours) / mean(bare),
    must: '≥ 1.5×',
    aim: '≥ 3×',
  })
} finally {
  await peer.stop()
  await system.stop()
}
process.exit()
