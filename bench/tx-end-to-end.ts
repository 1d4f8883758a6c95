import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { post } from './shared/load.ts'
import { median, percentile, report } from './shared/report.ts'
import { startSystem, type System } from './shared/system.ts'

/**
 * tx-end-to-end: milliseconds from sending the request until the relay has the email, at a steady 100 emails per
 * second. The benchmark proves that each accepted email reached the relay exactly once.
 */
const PER_SECOND = 100
const SECONDS = 10
const RUNS = 3
const MUST_MS = 500

const system = await startSystem()
try {
  await run(system, 2)
  // Autovacuum does this within seconds of the first rows. Until then, plans are made without statistics.
  await execute(system.services.orm.em.fork(), sql`analyze`)
  const runs: number[][] = []
  for (let turn = 0; turn < RUNS; turn++) runs.push(await run(system, SECONDS))
  const p99 = median(runs.map((times) => percentile(times, 0.99)))
  report({
    benchmark: 'tx-end-to-end',
    settings: { perSecond: PER_SECOND, seconds: SECONDS, runs: RUNS },
    figures: {
      'accept → relay': {
        'p50 ms': Math.round(median(runs.map((times) => percentile(times, 0.5)))),
        'p99 ms': Math.round(p99),
        'api peak MB': system.memory('api').peak,
        'worker peak MB': system.memory('worker').peak,
      },
    },
    ratio: p99 / MUST_MS,
    must: 'p99 ≤ 500 ms',
    aim: 'p99 ≤ 150 ms',
  })
} finally {
  await system.stop()
}

async function run({ url, token, sink }: System, seconds: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const sentAt = new Map<string, number>()
  sink.clear()
  const started = performance.now()
  const pending = Array.from({ length: PER_SECOND * seconds }, async (_, index) => {
    await sleep((index * 1_000) / PER_SECOND - (performance.now() - started))
    const at = Date.now()
    const to = `reader-${index}@example.com`
    const body = () => JSON.stringify({ to, subject: 'Receipt', content: 'Thank you for your order.' })
    const answer: { id: string } = JSON.parse(
      await post({ url: `${url}/api/v1/emails`, headers, body }, agent),
    )
    sentAt.set(answer.id, at)
  })
  await Promise.all(pending)
  const deadline = Date.now() + 30_000
  while (sink.journal.length < pending.length && Date.now() < deadline) await sleep(50)
  // Time for an email that is wrongly sent twice to arrive again.
  await sleep(500)
  agent.destroy()
  return prove(sink.journal, sentAt)
}

function prove(journal: System['sink']['journal'], sentAt: ReadonlyMap<string, number>): number[] {
  const arrived = new Map(
    journal.map(({ messageId, time }) => [messageId.slice(1, messageId.indexOf('@')), time]),
  )
  if (journal.length !== sentAt.size || arrived.size !== sentAt.size) {
    throw new Error(
      `${sentAt.size} emails were accepted, the relay has ${journal.length} (${arrived.size} different)`,
    )
  }
  return [...sentAt].map(([id, at]) => {
    const time = arrived.get(id)
    if (time === undefined) throw new Error(`${id} never arrived`)
    return time - at
  })
}
