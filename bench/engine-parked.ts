import { parseArgs } from 'node:util'

import { Connection } from '@temporalio/client'
import { sql } from 'kysely'
import pg from 'pg'

import { prepareNamespace } from '../scripts/services/temporal-namespace.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { row, rows } from '../src/database.ts'
import { recordEvents } from '../src/domain/events.ts'
import { enterMany, proveSteps, publishChain, untilRuns } from './shared/engine-peer.ts'
import { startSystem } from './shared/system.ts'

/**
 * engine-parked (R15): the cost of parked runs at rest, and how `--wake N` of them (default: all) continue at once. It
 * uses a Temporal server over PostgreSQL that is already running: `--temporal HOST:PORT --store URL --store URL`, where
 * the stores are the databases to which the server writes.
 */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    wake: { type: 'string' },
    temporal: { type: 'string', default: '' },
    store: { type: 'string', multiple: true, default: [] },
  },
})
const PAGE = 1_000
/** A long interval, because each check counts all runs. */
const LOOK_MS = 1_000
const ACTOR = { kind: 'system' as const, id: 'bench', name: 'bench' }

const count = Number(values.runs)
const woken = Number(values.wake ?? values.runs)
const connection = await Connection.connect({ address: values.temporal })
await prepareNamespace(connection, 'default')
await connection.close()
const system = await startSystem({ api: false, env: { TEMPORAL_ADDRESS: values.temporal } })
const em = () => system.services.orm.em.fork()
const stores = values.store.map((connectionString) => new pg.Client({ connectionString }))
await Promise.all(stores.map((store) => store.connect()))
try {
  const automation = await publishChain(system, [
    {
      id: 'rest',
      type: 'WAIT_UNTIL',
      config: { mode: 'EVENT', eventType: 'BENCH_WAKE', scope: 'STEP', onTimeout: 'CONTINUE' },
      onError: 'FAIL',
    },
    { id: 'tag', type: 'ADD_TAG', config: { tagNames: ['woken'] }, onError: 'FAIL' },
  ])
  const before = await sizes()
  const begun = performance.now()
  for (let entered = 0; entered < count; entered += PAGE) {
    await enterMany(system, automation.eventType, Math.min(PAGE, count - entered))
    await untilRuns(system, automation.id, 'WAITING', Math.min(entered + PAGE, count), LOOK_MS)
    console.error(`${entered + PAGE} parked after ${Math.round((performance.now() - begun) / 1_000)} s`)
  }
  const parked = (performance.now() - begun) / 1_000
  const after = await sizes()
  console.log(
    JSON.stringify({
      runs: count,
      secondsToPark: Math.round(parked),
      ourBytesARun: Math.round((after.ours - before.ours) / count),
      temporalBytesARun: Math.round((after.temporal - before.temporal) / count),
      workerMemory: system.memory('worker'),
    }),
  )
  const people = await rows<{ id: string }>(
    em(),
    sql`select subscriber_id as id from automation_run where automation_id = ${automation.id}
      order by id limit ${woken}`,
  )
  const told = performance.now()
  for (let from = 0; from < people.length; from += PAGE) {
    const events = people
      .slice(from, from + PAGE)
      .map(({ id }) => ({ subscriberId: id, type: 'BENCH_WAKE', data: {} }))
    await unitOfWork(system.services, { organizationId: system.organizationId, actor: ACTOR }, (call) =>
      recordEvents(call, events),
    )
  }
  const secondsUntilTold = Math.round((performance.now() - told) / 1_000)
  for (let advanced = 0; advanced < woken; advanced += PAGE) {
    await untilRuns(system, automation.id, 'COMPLETED', Math.min(advanced + PAGE, woken), LOOK_MS)
  }
  await proveSteps(system, automation.id, woken, 3, 'COMPLETED')
  console.log(
    JSON.stringify({
      woken,
      secondsUntilTold,
      secondsUntilAllAdvanced: Math.round((performance.now() - told) / 1_000),
      workerMemory: system.memory('worker'),
    }),
  )
} finally {
  await Promise.all(stores.map((store) => store.end()))
  await system.stop()
}
process.exit()

async function sizes(): Promise<{ ours: number; temporal: number }> {
  const text = 'select pg_database_size(current_database())::float8 as bytes'
  const ours = await row<{ bytes: number }>(em(), sql`${sql.raw(text)}`)
  const theirs = await Promise.all(stores.map((store) => store.query<{ bytes: number }>(text)))
  const temporal = theirs.reduce((sum, found) => sum + (found.rows[0]?.bytes ?? 0), 0)
  return { ours: ours?.bytes ?? 0, temporal }
}
