import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import test from 'ava'
import { sql } from 'kysely'

import { startEngine } from '../worker/workers.ts'
import { startOutboxRelay } from '../worker/outbox.ts'
import { rows } from '../src/database.ts'
import { advanceRun } from '../src/domain/automations/advance.ts'
import { recordEvents } from '../src/domain/events.ts'
import { encodeId } from '../src/ids.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { edges, makeTenant, publish, runsOf, step, type Tenant } from './helpers/automation.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { type TestServices, testServices } from './helpers/database.ts'
import { eventually } from './helpers/eventually.ts'
import { startSmtpSink } from './helpers/smtp-sink.ts'

const STEPS = [
  step('start', 'TRIGGER', { type: 'EVENT', eventType: 'GO' }),
  step('first', 'ADD_TAG', { tagNames: ['first'] }),
  step('hello', 'EMAIL', { subject: 'Hello', content: 'Hi', contentType: 'MARKDOWN', transactional: false }),
  step('rest', 'WAIT', { amount: 1, unit: 'SECONDS' }),
  step('undo', 'REMOVE_TAG', { tagNames: ['first'] }),
  step('more', 'WAIT', { amount: 1, unit: 'SECONDS' }),
  step('last', 'ADD_TAG', { tagNames: ['last'] }),
  step('count', 'UPDATE_FIELD', { increment: { passes: 1 } }),
  step('tell', 'CREATE_EVENT', { eventType: 'TOLD' }),
]
const GRAPH = { steps: STEPS, edges: edges(STEPS.map(({ id }) => id)) }

async function effects(services: TestServices, tenant: Tenant): Promise<string[]> {
  const counted = await rows<{ text: string }>(
    services.orm.em.fork(),
    sql`select type || ' ' || coalesce(data ->> 'tag', '') || ' ' || count(*) || ' of ' || count(distinct subscriber_id) as text
      from subscriber_event where organization_id = ${tenant.id}
        and type in ('TAG_ADDED', 'TAG_REMOVED', 'WORKFLOW_STARTED', 'WORKFLOW_COMPLETED', 'EMAIL_SENT',
          'FIELD_UPDATED', 'TOLD')
      group by type, data ->> 'tag' order by 1`,
  )
  return counted.map(({ text }) => text)
}

test('a worker that is killed with -9 again and again repeats no effect and loses no run', async (t) => {
  const count = 40
  const seed = randomInt(1_000_000)
  t.log(`seed ${seed}`)
  const sink = await startSmtpSink()
  const queue = { TEMPORAL_TASK_QUEUE: `crash-${process.pid}`, RELAY_URL: sink.url }
  const services = await testServices(queue)
  const tenant = await makeTenant(services)
  const automation = await publish(services, tenant, GRAPH)
  const subscribers = await Promise.all(Array.from({ length: count }, () => tenant.subscribe()))
  let worker: ChildProcess | undefined
  try {
    worker = startProcess(services, 'worker/main.ts')
    await tenant.within((call) =>
      recordEvents(
        call,
        subscribers.map((subscriberId) => ({ subscriberId, type: 'GO' })),
      ),
    )
    for (let kill = 0; kill < 3; kill++) {
      await sleep(1_500 + ((seed * (kill + 7)) % 1_500))
      await endProcess(worker)
      worker = startProcess(services, 'worker/main.ts')
    }
    await eventually(
      'every run to complete',
      async () =>
        (await runsOf(services, tenant, automation.id)).every(({ status }) => status === 'COMPLETED'),
      { withinMs: 90_000, everyMs: 200 },
    )
  } finally {
    if (worker) await endProcess(worker)
  }
  t.deepEqual(await effects(services, tenant), [
    `EMAIL_SENT  ${count} of ${count}`,
    `FIELD_UPDATED  ${count} of ${count}`,
    `TAG_ADDED first ${count} of ${count}`,
    `TAG_ADDED last ${count} of ${count}`,
    `TAG_REMOVED first ${count} of ${count}`,
    `TOLD  ${count} of ${count}`,
    `WORKFLOW_COMPLETED  ${count} of ${count}`,
    `WORKFLOW_STARTED  ${count} of ${count}`,
  ])
  await services.close()
  await sink.close()
})

test('a step that committed, but never reported to Temporal, is not done again', async (t) => {
  const services = await testServices({ TEMPORAL_TASK_QUEUE: `report-${process.pid}` })
  const tenant = await makeTenant(services)
  const tagOnly = { steps: STEPS.slice(0, 2), edges: edges(['start', 'first']) }
  const automation = await publish(services, tenant, tagOnly)
  const subscriberId = await tenant.subscribe()
  await tenant.within((call) => recordEvents(call, [{ subscriberId, type: 'GO' }]))
  const relay = startOutboxRelay(services, { knowsAttributes: () => Promise.resolve(false) })
  const client = await services.temporal.client()
  const handle = client.workflow.getHandle(
    runWorkflowId(encodeId('wf', automation.id), encodeId('sub', subscriberId), 1),
  )
  const { runId: execution } = await eventually('the workflow to be there', () => handle.describe())
  await relay.stop()
  const [run] = await runsOf(services, tenant, automation.id)
  await tenant.within((call) => advanceRun(call, run?.id ?? '', { execution, attempt: execution }))
  const engine = await startEngine(services)
  t.like(await handle.result(), { state: 'COMPLETED' })
  t.deepEqual(await effects(services, tenant), [
    'TAG_ADDED first 1 of 1',
    'WORKFLOW_COMPLETED  1 of 1',
    'WORKFLOW_STARTED  1 of 1',
  ])
  await engine.stop()
  await services.close()
})
