import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { sql } from 'kysely'

import { rows } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { makeTenant } from '../test/helpers/automation.ts'
import { type TestServices, testServices } from '../test/helpers/database.ts'
import { startEndpoints } from '../test/helpers/endpoint.ts'
import { eventually } from '../test/helpers/eventually.ts'
import {
  editionOf,
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
import { startSegmentWatch } from '../worker/segment-watch.ts'
import { startEngine } from '../worker/workers.ts'
import { BACKGROUND_SCENES } from './scenes/background.ts'
import { CAMPAIGN_SCENES } from './scenes/campaign.ts'
import { CONTINUED_SCENES, SHORT_HISTORY } from './scenes/continued.ts'
import { DOMAIN_SCENES } from './scenes/domain.ts'
import { INTAKE_SCENES } from './scenes/intake.ts'
import { enter, PLAIN, RUN_SCENES } from './scenes/run.ts'
import { STEP_SCENES } from './scenes/step.ts'
import { startRunServices } from './services/run-services.ts'

const USAGE = `npm run record-histories

  Has every workflow do what it can and stores the Temporal histories in test/histories, which test/replay.test.ts replays.
  It starts a PostgreSQL and two Temporals of its own; DATABASE_URL_ADMIN (a superuser's URL) and TEMPORAL_ADDRESS
  (a server with our search attributes), where set, are used in place of the first two.

  Histories that were recorded with other workflow files are kept, and must still replay.`

/** Scenes that are recorded before their workflow ends. */
const UNFINISHED: ReadonlySet<string> = new Set(['waiting', 'domain'])

if (process.argv.includes('--help')) console.log(USAGE)
else process.exitCode = await main()

async function main(): Promise<number> {
  const servers = await startRunServices('scripts/record-histories.ts', { durable: false })
  Object.assign(process.env, servers.environment)
  delete process.env['DATABASE_URL']
  try {
    return await recordAll()
  } finally {
    await servers.stop()
  }
}

async function recordAll(): Promise<number> {
  await mkdir(HISTORIES, { recursive: true })
  const sources = await hashSources()
  const edition = editionOf(sources)
  const known = await readHistories()
  const performed = new Map([...(await record()), ...(await recordContinued())])
  const made = [...performed].map(([name, history]) => [`${name}.${edition}.json`, history] as const)
  // A history recorded with these very files need not be replaced by a new recording.
  const recorded = new Map(made.filter(([file]) => !known.has(file)))
  const failed = await replay(new Map([...known, ...recorded]))
  for (const [file, error] of failed) console.error(`${file} does not replay: ${error.message}`)
  if (failed.size > 0) {
    console.error('Nothing was stored: runs under way would break. Put the change behind patched().')
    return 1
  }
  for (const [file, history] of recorded) await write(file, history)
  await writeFile(join(HISTORIES, SOURCES), `${JSON.stringify(sources, null, 2)}\n`)
  console.log(`${recorded.size} histories were added to test/histories`)
  return 0
}

/** Plays all scenes except those that continue as new and returns the histories by name. */
async function record(): Promise<Map<string, Recorded>> {
  const sink = await startSmtpSink()
  const endpoints = await startEndpoints()
  const names = await startNameServer()
  const services = await testServices({
    TEMPORAL_TASK_QUEUE: `histories-${process.pid}`,
    RELAY_URL: sink.url,
    DNS_SERVERS: names.address,
    ...endpoints.allow,
  })
  const studio = { services, tenant: await makeTenant(services), names, endpoints }
  // This run starts as on a Temporal server that does not know our search attributes.
  const unsearchable = await enter(studio, PLAIN)
  await tellUnsearchable(services)
  const lanes = await startLanes(services, { workerName: 'recording' })
  const engine = await startEngine(services)
  const watch = startSegmentWatch(services)
  try {
    type Scenes = Record<string, (given: typeof studio) => Promise<string>>
    const play = (scenes: Scenes) =>
      Promise.all(
        Object.entries(scenes).map(async ([name, begin]) => {
          return [name, await historyOf(services, await begin(studio), UNFINISHED.has(name))] as const
        }),
      )
    // Runs go first, because the other scenes need the subscribers that they create.
    const runs = await play({
      ...RUN_SCENES,
      ...STEP_SCENES,
      unsearchable: () => Promise.resolve(unsearchable.run),
    })
    const others = await play({
      ...CAMPAIGN_SCENES,
      ...INTAKE_SCENES,
      ...BACKGROUND_SCENES,
      ...DOMAIN_SCENES,
    })
    return new Map([...runs, ...others])
  } finally {
    await watch.stop()
    await engine.stop()
    await lanes.stop()
    await services.close()
    await sink.close()
    await names.close()
    endpoints.close()
  }
}

/** Returns the first and the last execution of workflows that continue as new, on a Temporal that suggests it early. */
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
  // The result has the same type, because `anonymous` keeps every member.
  const events = JSON.parse(JSON.stringify(plain), anonymous) as Recorded['events']
  if (isUnfinished) await handle.terminate('it was recorded')
  return { workflowId, events }
}

/** Removes details of the machine: process and host names, task queue names derived from them, and stack traces. */
function anonymous(key: string, value: unknown): unknown {
  if (key === 'identity' || key === 'workerId') return 'worker'
  if (key === 'stackTrace') return ''
  if (key === 'taskQueue') return { ...Object(value), name: 'histories', normalName: '' }
  return value
}

/** Writes one event per line, which keeps diffs readable. */
async function write(file: string, { workflowId, events }: Recorded): Promise<void> {
  const lines = events.map((event) => JSON.stringify(event)).join(',\n')
  await writeFile(
    join(HISTORIES, file),
    `{"workflowId":${JSON.stringify(workflowId)},"events":[\n${lines}\n]}\n`,
  )
}
