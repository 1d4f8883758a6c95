import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { sql } from 'kysely'

import type { Step } from '../schema/automation.ts'
import { execute, rows } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { enterByHand } from '../src/domain/automations/enter-by-hand.ts'
import {
  removeFromWorkflow,
  requestFastForward,
  settleFastForward,
} from '../src/domain/automations/run-control.ts'
import { resumeHeldRuns } from '../src/domain/automations/runs.ts'
import { recordEvents } from '../src/domain/events.ts'
import { encodeId } from '../src/ids.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { edges, makeTenant, publish, runsOf, step, type Tenant } from '../test/helpers/automation.ts'
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
import { startSmtpSink } from '../test/helpers/smtp-sink.ts'
import { startOutboxRelay } from '../worker/outbox.ts'
import { startEngine } from '../worker/workers.ts'
import { CAMPAIGN_SCENES } from './campaign-scenes.ts'
import { INTAKE_SCENES } from './intake-scenes.ts'
import { DOMAIN_SCENES } from './domain-scenes.ts'

const USAGE = `npm run record-histories

  Runs a few automations, campaigns and domains and stores their Temporal histories in test/histories, which test/replay.test.ts replays.
  It needs a PostgreSQL to make a database in and a Temporal:

  DATABASE_URL_ADMIN   a superuser's URL
  TEMPORAL_ADDRESS     host:port of a server with our search attributes
  TEMPORAL_NAMESPACE   default

  Histories that were recorded with other workflow files are kept, and must still replay.`

type Studio = { services: TestServices; tenant: Tenant }
type Graph = { steps: Step[]; edges: ReturnType<typeof edges> }
/** One person in one workflow. */
type Performance = {
  automationId: string
  subscriberId: string
  ids: { workflowId: string; subscriberId: string }
}
type Act = (studio: Studio, who: Performance) => Promise<void>

const START = step('start', 'TRIGGER', { type: 'MANUAL' })
const SHORT = step('rest', 'WAIT', { amount: 1, unit: 'SECONDS' })
const LONG = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })
const TAG = step('tag', 'ADD_TAG', { tagNames: ['Later'] })
const MAIL = { subject: 'Hello', content: 'Hi', contentType: 'MARKDOWN' as const, transactional: false }
const UNKNOWN_TAG = [{ field: 'tags', operator: 'has_any' as const, value: ['nobody made this one'] }]

/** What is recorded: a graph, and what is done once somebody entered it. */
const SCENES: Record<string, { graph: Graph; act?: Act }> = {
  waits: { graph: chain(START, SHORT, TAG, step('again', 'WAIT', { amount: 1, unit: 'SECONDS' })) },
  email: { graph: chain(START, step('hello', 'EMAIL', MAIL), SHORT, TAG) },
  branch: { graph: branch() },
  event: { graph: chain(START, forPayment(3_600), TAG), act: pay },
  timeout: { graph: chain(START, forPayment(1), TAG) },
  'fast-forward': {
    graph: chain(START, LONG, step('second', 'WAIT', { amount: 2, unit: 'DAYS' }), TAG),
    act: hurry,
  },
  waiting: { graph: chain(START, LONG, TAG), act: untilWaiting },
  paused: { graph: chain(START, SHORT, TAG), act: pauseAndResume },
  removed: { graph: chain(START, LONG, TAG), act: remove },
  canceled: { graph: chain(START, LONG, TAG), act: cancel },
  failed: {
    graph: chain(START, SHORT, step('broken', 'ADD_TAG', { tagNames: ['x'] }, { conditions: UNKNOWN_TAG })),
  },
}
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
  const performed = await record()
  const recorded = new Map([...performed].map(([name, history]) => [`${name}.${edition}.json`, history]))
  const failed = await replay(new Map([...(await readHistories()), ...recorded]))
  for (const [file, error] of failed) console.error(`${file} does not replay: ${error.message}`)
  if (failed.size > 0) {
    console.error('Nothing was stored: runs under way would break. Put the change behind patched().')
    process.exitCode = 1
    return
  }
  for (const [file, history] of recorded) await write(file, history)
  await writeFile(join(HISTORIES, SOURCES), `${JSON.stringify(sources, null, 2)}\n`)
  console.log(`${recorded.size} histories are in test/histories`)
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
  const unsearchable = await enter(studio, chain(START, SHORT, TAG))
  await tellUnsearchable(services)
  const lanes = await startLanes(services, { workerName: 'recording' })
  const engine = await startEngine(services)
  try {
    const performed = await Promise.all(
      Object.entries(SCENES).map(async ([name, scene]) => [name, await perform(studio, scene)] as const),
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

async function enter({ services, tenant }: Studio, graph: Graph): Promise<Performance> {
  const automation = await publish(services, tenant, graph, { name: 'Recorded' })
  const subscriberId = await tenant.subscribe()
  const ids = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', subscriberId) }
  await tenant.within((call) => enterByHand(call, ids))
  return { automationId: automation.id, subscriberId, ids }
}

async function perform(studio: Studio, { graph, act }: { graph: Graph; act?: Act }): Promise<Performance> {
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
): Promise<Recorded> {
  const client = await services.temporal.client()
  const handle = client.workflow.getHandle(workflowId)
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

function chain(...steps: Step[]): Graph {
  return { steps, edges: edges(steps.map(({ id }) => id)) }
}

function branch(): Graph {
  const filters = [{ field: 'tags', operator: 'has_any' as const, value: ['later'] }]
  const fork = step('fork', 'BRANCH', { paths: [{ id: 'tagged', filters }] })
  return {
    steps: [START, TAG, SHORT, fork, step('out', 'EXIT', {})],
    edges: edges(['start', 'tag', 'rest', 'fork'], ['fork', 'tagged', 'out']),
  }
}

function forPayment(seconds: number): Step {
  return step('paid', 'WAIT_UNTIL', {
    mode: 'EVENT',
    eventType: 'PAID',
    scope: 'STEP',
    timeout: { amount: seconds, unit: 'SECONDS' },
    onTimeout: 'CONTINUE',
  })
}

async function untilWaiting({ services, tenant }: Studio, { automationId }: Performance): Promise<void> {
  await eventually('the run to wait', async () => {
    return (await runsOf(services, tenant, automationId))[0]?.status === 'WAITING'
  })
}

async function pay(studio: Studio, who: Performance): Promise<void> {
  await untilWaiting(studio, who)
  const { subscriberId } = who
  await studio.tenant.within((call) => recordEvents(call, [{ subscriberId, type: 'PAID', data: {} }]))
}

async function hurry(studio: Studio, who: Performance): Promise<void> {
  const { services, tenant } = studio
  for (const expectedStepId of ['pause', 'second']) {
    await untilWaiting(studio, who)
    const { data, settling } = await tenant.within(async (call) => ({
      data: await requestFastForward(call, { ...who.ids, expectedStepId }),
      settling: { organization: call.organization, actor: call.actor, services },
    }))
    await settleFastForward(settling, data)
  }
}

async function pauseAndResume(studio: Studio, who: Performance): Promise<void> {
  const { services, tenant } = studio
  await untilWaiting(studio, who)
  await setStatus(tenant, who.automationId, 'PAUSED')
  await eventually('the run to be held', async () => {
    return (await runsOf(services, tenant, who.automationId))[0]?.held
  })
  await setStatus(tenant, who.automationId, 'ACTIVE')
}

async function setStatus(tenant: Tenant, automationId: string, status: string): Promise<void> {
  await tenant.within(async (call) => {
    await execute(
      call.em,
      sql`update automation set status = ${status} where organization_id = ${tenant.id} and id = ${automationId}`,
    )
    if (status === 'ACTIVE') await resumeHeldRuns(call, automationId)
  })
}

async function remove(studio: Studio, who: Performance): Promise<void> {
  await untilWaiting(studio, who)
  await studio.tenant.within((call) => removeFromWorkflow(call, who.ids))
}

async function cancel(studio: Studio, who: Performance): Promise<void> {
  await untilWaiting(studio, who)
  const client = await studio.services.temporal.client()
  await client.workflow.getHandle(runWorkflowId(who.ids.workflowId, who.ids.subscriberId, 1)).cancel()
}
