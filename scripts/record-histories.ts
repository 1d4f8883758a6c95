import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { sql } from 'kysely'

import { rows } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { encodeId } from '../src/ids.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { makeTenant, publish } from '../test/helpers/automation.ts'
import { type TestServices, testServices } from '../test/helpers/database.ts'
import { eventually } from '../test/helpers/eventually.ts'
import {
  hashSources,
  HISTORIES,
  type Recorded,
  readHistories,
  replay,
  SOURCES,
  toPlainEvents,
} from '../test/helpers/histories.ts'
import { startNameServer } from '../test/helpers/name-server.ts'
import { scratchDirectory, startOwnTemporal } from '../test/helpers/services.ts'
import { startSmtpSink } from '../test/helpers/smtp-sink.ts'
import { startOutboxRelay } from '../worker/outbox.ts'
import { startEngine } from '../worker/workers.ts'
import { CAMPAIGN_SCENES } from './campaign-scenes.ts'
import { CONTINUED_SCENES, SHORT_HISTORY, SHORT_SCENES } from './continued-scenes.ts'
import { INTAKE_SCENES } from './intake-scenes.ts'
import { DOMAIN_SCENES } from './domain-scenes.ts'
import { type Graph, type Performance, PLAIN, RUN_SCENES, type Scene, type Studio } from './run-scenes.ts'

const USAGE = `npm run record-histories

  Runs a few automations, campaigns and domains and stores their Temporal histories in test/histories, which test/replay.test.ts replays.
  It needs a PostgreSQL to make a database in and a Temporal:

  DATABASE_URL_ADMIN   a superuser's URL
  TEMPORAL_ADDRESS     host:port of a server with our search attributes
  TEMPORAL_NAMESPACE   default
  POSTLOOM_TEST_DIRECTORY  a directory for the Temporal of its own that it starts for long histories

  Histories that were recorded with other workflow files are kept, and must still replay.`

/** Recorded as on a server that does not know our search attributes. */
const UNSEARCHABLE = 'unsearchable'
/** The one that is recorded in the middle. */
const UNFINISHED = 'waiting'

await main()

async function main(): Promise<void> {
  process.env['TEMPORAL_NAMESPACE'] ??= 'default'
  if (
    !process.env['DATABASE_URL_ADMIN'] ||
    !process.env['TEMPORAL_ADDRESS'] ||
    process.argv.includes('--help')
  ) {
    console.error(USAGE)
    process.exitCode = 2
    return
  }
  await mkdir(HISTORIES, { recursive: true })
  const sources = await hashSources()
  const edition = createHash('sha256').update(JSON.stringify(sources)).digest('hex').slice(0, 8)
  const known = await readHistories()
  const performed = new Map([...(await record()), ...(await recordContinued())])
  const made = [...performed].map(([name, history]) => [`${name}.${edition}.json`, history] as const)
  // What was recorded with these very files is as good as a new recording.
  const recorded = new Map(made.filter(([file]) => !known.has(file)))
  const failed = await replay(new Map([...known, ...recorded]))
  for (const [file, error] of failed) console.error(`${file} does not replay: ${error.message}`)
  if (failed.size > 0) {
    console.error('Nothing was stored: runs under way would break. Put the change behind patched().')
    process.exitCode = 1
    return
  }
  for (const [file, history] of recorded) await write(file, history)
  await writeFile(join(HISTORIES, SOURCES), `${JSON.stringify(sources, null, 2)}\n`)
  console.log(`${recorded.size} histories were added to test/histories`)
}

/** Performs everything against a database of its own and answers the histories by name. */
async function record(): Promise<Map<string, Recorded>> {
  const sink = await startSmtpSink()
  const queue = `histories-${process.pid}`
  const names = await startNameServer()
  const services = await testServices({
    TEMPORAL_TASK_QUEUE: queue,
    RELAY_URL: sink.url,
    DNS_SERVERS: names.address,
  })
  const studio = { services, tenant: await makeTenant(services) }
  const unsearchable = await enter(studio, PLAIN)
  await tellUnsearchable(services)
  const lanes = await startLanes(services, { workerName: 'recording' })
  const engine = await startEngine(services)
  try {
    const performed = await Promise.all(
      Object.entries(RUN_SCENES).map(async ([name, scene]) => [name, await perform(studio, scene)] as const),
    )
    const recorded = new Map<string, Recorded>()
    for (const [name, { ids }] of [...performed, [UNSEARCHABLE, unsearchable] as const]) {
      const workflowId = runWorkflowId(ids.workflowId, ids.subscriberId, 1)
      recorded.set(name, await historyOf(services, workflowId, name === UNFINISHED))
    }
    for (const [name, begin] of Object.entries(CAMPAIGN_SCENES)) {
      recorded.set(name, await historyOf(services, await begin(studio), false))
    }
    for (const [name, begin] of Object.entries(INTAKE_SCENES)) {
      recorded.set(name, await historyOf(services, await begin(studio), false))
    }
    for (const [name, begin] of Object.entries(SHORT_SCENES)) {
      recorded.set(name, await historyOf(services, await begin({ ...studio, names }), false))
    }
    for (const [name, { isUnfinished, begin }] of Object.entries(DOMAIN_SCENES)) {
      recorded.set(name, await historyOf(services, await begin({ ...studio, names }), isUnfinished))
    }
    return recorded
  } finally {
    await engine.stop()
    await lanes.stop()
    await services.close()
    await sink.close()
    await names.close()
  }
}

/** The first and the last execution of workflows that continue as new, on a Temporal that suggests it early. */
async function recordContinued(): Promise<Map<string, Recorded>> {
  const names = await startNameServer()
  const temporal = await startOwnTemporal(scratchDirectory('temporal'), 0, SHORT_HISTORY)
  const services = await testServices({
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_TASK_QUEUE: `histories-continued-${process.pid}`,
    DNS_SERVERS: names.address,
  })
  const engine = await startEngine(services)
  try {
    await engine.ready
    const studio = { services, names }
    const performed = Object.entries(CONTINUED_SCENES).map(async ([name, begin]) => {
      const workflowId = await begin({ ...studio, tenant: await makeTenant(services) })
      const last = await historyOf(services, workflowId, false)
      const first = await historyOf(services, workflowId, false, firstExecutionOf(last))
      return [
        [`${name}-first`, first],
        [`${name}-last`, last],
      ] as const
    })
    return new Map((await Promise.all(performed)).flat())
  } finally {
    await engine.stop()
    await services.close()
    await temporal.stop()
    await names.close()
  }
}

function firstExecutionOf({ events }: Recorded): string {
  const begun = Object(events[0]?.['workflowExecutionStartedEventAttributes'])
  if (!begun.continuedExecutionRunId) throw new Error('a workflow ended without continuing as new')
  return begun.firstExecutionRunId
}

async function enter({ services, tenant }: Studio, graph: Graph): Promise<Performance> {
  const automation = await publish(services, tenant, graph, { name: 'Recorded' })
  const subscriberId = await tenant.subscribe()
  const ids = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', subscriberId) }
  await tenant.within((call) => enterByHand(call, ids))
  return { automationId: automation.id, subscriberId, ids }
}

async function perform(studio: Studio, { graph, act }: Scene): Promise<Performance> {
  const who = await enter(studio, graph)
  await act?.(studio, who)
  return who
}

async function tellUnsearchable(services: TestServices): Promise<void> {
  const relay = startOutboxRelay(services, { knowsAttributes: () => Promise.resolve(false) })
  await eventually('the outbox to be told', async () => {
    return (await rows(services.orm.em.fork(), sql`select 1 from outbox`)).length === 0
  })
  await relay.stop()
}

async function historyOf(
  services: TestServices,
  workflowId: string,
  isUnfinished: boolean,
  execution?: string,
): Promise<Recorded> {
  const client = await services.temporal.client()
  const handle = client.workflow.getHandle(workflowId, execution)
  await eventually(`the end of ${workflowId}`, async () => {
    return isUnfinished || (await handle.describe()).status.name !== 'RUNNING'
  })
  const plain = toPlainEvents(await handle.fetchHistory())
  // Rewritten member by member, it is what it was.
  const events = JSON.parse(JSON.stringify(plain), anonymous) as Recorded['events']
  if (isUnfinished) await handle.terminate('it was recorded')
  return { workflowId, events }
}

/** Leaves out who worked where: process and host names, the queues made of them, stack traces with paths. */
function anonymous(key: string, value: unknown): unknown {
  if (key === 'identity' || key === 'workerId') return 'worker'
  if (key === 'stackTrace') return ''
  if (key === 'taskQueue') return { ...Object(value), name: 'histories', normalName: '' }
  return value
}

/** One event on each line, so that a difference can be read. */
async function write(file: string, { workflowId, events }: Recorded): Promise<void> {
  const lines = events.map((event) => JSON.stringify(event)).join(',\n')
  await writeFile(
    join(HISTORIES, file),
    `{"workflowId":${JSON.stringify(workflowId)},"events":[\n${lines}\n]}\n`,
  )
}
