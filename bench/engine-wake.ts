import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import {
  countRoundTrips,
  enterMany,
  ofAutomation,
  ofBare,
  type Peer,
  proveSteps,
  publishChain,
  type RoundTrips,
  startPeer,
  untilRuns,
} from './shared/engine-peer.ts'
import { mean, median, report } from './shared/report.ts'
import { startSystem, type System } from './shared/system.ts'

/** engine-wake: parked runs that become due at once, compared with bare workflows with a timer and one activity. */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '3' },
    // Seconds; long enough for all of them to be parked before they are due.
    park: { type: 'string', default: '180' },
    json: { type: 'string' },
  },
})
const [count, rounds, parkMs] = [Number(values.runs), Number(values.rounds), Number(values.park) * 1_000]

const system = await startSystem({ api: false })
const peer = await startPeer(system)
let trips: RoundTrips | undefined
try {
  const bare = [await bareWake(peer)]
  const ours: number[] = []
  for (let round = 0; round < rounds; round++) ours.push(await engineWake(system))
  bare.push(await bareWake(peer))
  const theirs = mean(bare)
  report({
    benchmark: 'engine-wake',
    settings: { runs: count, rounds, parkedSeconds: parkMs / 1_000 },
    figures: {
      engine: {
        's until all advanced': median(ours).toFixed(1),
        'peak MB': system.memory('worker').peak,
        ...trips,
      },
      'bare Temporal': {
        's until all advanced': theirs.toFixed(1),
        ...(await countRoundTrips(system, ofBare('bareTimer'))),
      },
    },
    ratio: median(ours) / theirs,
    must: '≤ 1.5×',
    aim: '≤ 1.1×',
  })
} finally {
  await peer.stop()
  await system.stop()
}
process.exit()

async function engineWake(on: System): Promise<number> {
  const due = Date.now() + parkMs
  const date = new Date(due).toISOString()
  const automation = await publishChain(on, [
    {
      id: 'rest',
      type: 'WAIT_UNTIL',
      config: { mode: 'DATE', date, onTimeout: 'CONTINUE' },
      onError: 'FAIL',
    },
  ])
  await enterMany(on, automation.eventType, count)
  await untilRuns(on, automation.id, 'WAITING', count)
  await waitFor(due)
  await untilRuns(on, automation.id, 'COMPLETED', count)
  const seconds = (Date.now() - due) / 1_000
  await proveSteps(on, automation.id, count, 2)
  trips = await countRoundTrips(on, ofAutomation(automation.id, 'Completed'))
  return seconds
}

async function bareWake(beside: Peer): Promise<number> {
  const due = Date.now() + parkMs
  const before = await beside.touched()
  await beside.start('bareTimer', due, count)
  await waitFor(due)
  while ((await beside.touched()) < before + count) await sleep(50)
  return (Date.now() - due) / 1_000
}

async function waitFor(due: number): Promise<void> {
  if (Date.now() > due) throw new Error('the runs were not parked in time; give a longer --park')
  await sleep(due - Date.now())
}
