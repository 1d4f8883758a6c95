import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'

import test from 'ava'
import { sql } from 'kysely'

import { execute, rows } from '../src/database.ts'
import { advanceRun } from '../src/domain/automations/runs/advance.ts'
import { recordEvents } from '../src/domain/events.ts'
import { encodeId } from '../src/ids.ts'
import { runWorkflowId, taskQueue, TRIGGER_FIRING, triggerScheduleId } from '../temporal/contract.ts'
import { startOutboxRelay } from '../worker/outbox.ts'
import { startEngine } from '../worker/workers.ts'
import { edges, emailStep, makeTenant, publish, runsOf, step, type Tenant } from './helpers/automation.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { type TestServices, testServices } from './helpers/database.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'
import { seededRandom, startSmtpSink } from './helpers/smtp-sink.ts'

const STEPS = [
  step('start', 'TRIGGER', { type: 'EVENT', eventType: 'GO' }),
  step('first', 'ADD_TAG', { tagNames: ['first'] }),
  emailStep('hello'),
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

async function visitsOf(services: TestServices, tenant: Tenant): Promise<number> {
  const found = await rows<{ count: number }>(
    services.orm.em.fork(),
    sql`select count(*)::int as count from run_step where organization_id = ${tenant.id}`,
  )
  return found[0]?.count ?? 0
}

/** A long timeout, because processes that restart several times share the cores with other tests. */
const PATIENT = { withinMs: 180_000, everyMs: 5 }

test('a worker that is killed with -9 again and again repeats no effect and loses no run', async (t) => {
  t.timeout(400_000)
  const count = 40
  const seed = randomInt(1_000_000)
  const random = seededRandom(seed)
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
    // Kills at a random point in each third of the runs, however fast they go.
    const visits = count * STEPS.length
    for (const third of [0, 1, 2]) {
      const enough = Math.floor(((third + random()) * visits) / 3)
      await eventually(`${enough} visits`, async () => (await visitsOf(services, tenant)) >= enough, PATIENT)
      await endProcess(worker)
      worker = startProcess(services, 'worker/main.ts')
    }
    await eventually(
      'every run to complete',
      async () =>
        (await runsOf(services, tenant, automation.id)).every(({ status }) => status === 'COMPLETED'),
      { ...PATIENT, everyMs: 200 },
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

test('a worker that is killed with -9 at a throttle, at the start of another workflow and in a request repeats none', async (t) => {
  t.timeout(400_000)
  const [count, limit] = [20, 5]
  const requests: string[] = []
  const open = new Set<ServerResponse>()
  let isAnswering = false
  const server = createServer((request, response) => {
    requests.push(String(request.headers['webhook-id']))
    if (isAnswering) response.end()
    else open.add(response)
  })
  const port = await listenOnLoopback(server)
  const services = await testServices({ TEMPORAL_TASK_QUEUE: `crossing-crash-${process.pid}` })
  const tenant = await makeTenant(services)
  const em = services.orm.em.fork()
  const settings = { reEntry: { mode: 'EVERY_TIME' as const } }
  const manual = step('start', 'TRIGGER', { type: 'MANUAL' })
  const other = await publish(services, tenant, { steps: [manual], edges: [], settings })
  const per = { amount: 2, unit: 'SECONDS' as const }
  const url = `http://127.0.0.1:${port}/`
  const steps = [
    step('start', 'TRIGGER', { type: 'EVENT', eventType: 'GO' }),
    step('slow', 'THROTTLE', { limit, per, overflow: 'HOLD' }),
    step('go', 'START_WORKFLOW', { workflowId: encodeId('wf', other.id) }),
    step('hook', 'WEBHOOK', { url, method: 'POST', timeoutSeconds: 60, retries: 0 }),
    step('tell', 'CREATE_EVENT', { eventType: 'TOLD' }),
  ]
  const automation = await publish(services, tenant, { steps, edges: edges(steps.map(({ id }) => id)) })
  const people = await Promise.all(Array.from({ length: count }, () => tenant.subscribe()))
  await tenant.within((call) =>
    recordEvents(
      call,
      people.map((subscriberId) => ({ subscriberId, type: 'GO' })),
    ),
  )
  const start = () =>
    startProcess(services, 'worker/main.ts', { env: { WEB_ALLOW_PRIVATE: `127.0.0.1:${port}` } })
  const at = async (stepId: string) =>
    (await rows(em, sql`select from run_step where organization_id = ${tenant.id} and step_id = ${stepId}`))
      .length
  const moments: [string, () => Promise<boolean>][] = [
    ['a place in a throttle to be taken', async () => (await at('slow')) > 0],
    ['another workflow to be asked', async () => (await at('go')) > limit],
    ['a request to be under way', () => Promise.resolve(requests.length > 0)],
  ]
  let worker = start()
  try {
    for (const [what, moment] of moments) {
      await eventually(what, moment, PATIENT)
      await endProcess(worker)
      worker = start()
    }
    isAnswering = true
    for (const response of open) response.end()
    await eventually(
      'every run to complete',
      async () => {
        // The requests of a killed worker are retried when their claim expires. This makes them due at once.
        await execute(em, sql`update run_webhook set next_attempt_at = now() where attempt = 1`)
        const runs = await runsOf(services, tenant, automation.id)
        return runs.every(({ status }) => status === 'COMPLETED')
      },
      { ...PATIENT, everyMs: 200 },
    )
    await eventually(
      'the other workflow to be through',
      async () => {
        const runs = await runsOf(services, tenant, other.id)
        return runs.length >= count && runs.every(({ status }) => status === 'COMPLETED')
      },
      PATIENT,
    )
  } finally {
    await endProcess(worker)
    server.close()
    server.closeAllConnections()
  }
  t.is((await runsOf(services, tenant, other.id)).length, count)
  t.is(new Set(requests).size, count)
  const [counted] = await rows<Record<string, number>>(
    em,
    sql`select count(*) filter (where type = 'WEBHOOK_EXECUTED')::int as executed,
        count(*) filter (where type = 'TOLD')::int as told,
        count(*) filter (where type = 'WORKFLOW_COMPLETED')::int as completed
      from subscriber_event where organization_id = ${tenant.id}`,
  )
  t.deepEqual(counted, { executed: count, told: count, completed: 2 * count })
  const windows = await rows<{ held: number }>(
    em,
    sql`select count(*)::int as held from run_step where organization_id = ${tenant.id} and step_id = 'slow'
      and outcome ? 'until' group by outcome ->> 'until'`,
  )
  t.true(windows.every(({ held }) => held <= limit))
  await services.close()
})

test('goals that are reached while workers are killed with -9 count once, and their runs end once', async (t) => {
  t.timeout(400_000)
  const count = 24
  const seed = randomInt(1_000_000)
  const random = seededRandom(seed)
  t.log(`seed ${seed}`)
  const services = await testServices({ TEMPORAL_TASK_QUEUE: `goals-${process.pid}` })
  const tenant = await makeTenant(services)
  const steps = [
    step('start', 'TRIGGER', { type: 'EVENT', eventType: 'GO' }),
    step('first', 'ADD_TAG', { tagNames: ['first'] }),
    step('rest', 'WAIT', { amount: 1, unit: 'SECONDS' }),
    // Half of the runs reach the goal by themselves, the others by an event.
    step('half', 'SPLIT', {
      variants: [
        { id: 'one', weight: 1 },
        { id: 'two', weight: 1 },
      ],
      sticky: true,
    }),
    step('vip', 'ADD_TAG', { tagNames: ['vip'] }),
    step('long', 'WAIT', { amount: 1, unit: 'HOURS' }),
  ]
  const goal = { windowDays: 30, countFrom: 'ENTRY', exitOnReach: true }
  const automation = await publish(services, tenant, {
    steps,
    edges: edges(
      ['start', 'first', 'rest', 'half'],
      ['half', 'one', 'vip'],
      ['half', 'two', 'long'],
      ['vip', 'next', 'long'],
    ),
    successGoals: [
      { ...goal, id: 'paid', name: 'Paid', event: 'SUBSCRIBER_PAYMENT', valuePath: 'amount' },
      { ...goal, id: 'vip', name: 'VIP', filters: [{ field: 'tags', operator: 'has_any', value: ['vip'] }] },
    ],
  })
  const subscribers = await Promise.all(Array.from({ length: count }, () => tenant.subscribe()))
  const happened = (type: string, data = {}) =>
    tenant.within((call) =>
      recordEvents(
        call,
        subscribers.map((subscriberId) => ({ subscriberId, type, data })),
      ),
    )
  let worker: ChildProcess | undefined
  try {
    worker = startProcess(services, 'worker/main.ts')
    await happened('GO')
    for (const half of [0, 1]) {
      const enough = Math.floor(((half + random()) * count * 3) / 2)
      await eventually(`${enough} visits`, async () => (await visitsOf(services, tenant)) >= enough, PATIENT)
      await endProcess(worker)
      if (half === 1) await happened('SUBSCRIBER_PAYMENT', { amount: 10 })
      worker = startProcess(services, 'worker/main.ts')
    }
    // All runs have reached the goal; the worker is killed while it informs their workflows.
    await happened('SUBSCRIBER_PAYMENT', { amount: 10 })
    await endProcess(worker)
    worker = startProcess(services, 'worker/main.ts')
    await eventually(
      'every run to end by a goal',
      async () =>
        (await runsOf(services, tenant, automation.id)).every(({ exitReason }) => exitReason === 'GOAL'),
      { ...PATIENT, everyMs: 200 },
    )
  } finally {
    if (worker) await endProcess(worker)
  }
  const paid = await rows<{ count: number; people: number; value: number }>(
    services.orm.em.fork(),
    sql`select count(*)::int as count, count(distinct run_id)::int as people, coalesce(sum(value), 0)::int as value
      from goal_conversion where organization_id = ${tenant.id} and goal_id = 'paid'`,
  )
  t.true((paid[0]?.count ?? 0) > 0)
  t.is(paid[0]?.count, paid[0]?.people)
  t.is(paid[0]?.value, 10 * (paid[0]?.count ?? 0))
  t.true((await effects(services, tenant)).includes(`WORKFLOW_COMPLETED  ${count} of ${count}`))
  await services.close()
})

test('a worker that is killed with -9 while a trigger by time fires, and lets people in, takes everybody once', async (t) => {
  t.timeout(400_000)
  const count = 30
  const services = await testServices({ TEMPORAL_TASK_QUEUE: `crash-firing-${process.pid}` })
  const tenant = await makeTenant(services)
  const em = services.orm.em.fork()
  const date = { type: 'DATE_FIELD', field: 'day', direction: 'AFTER', anniversary: false } as const
  const steps = [step('start', 'TRIGGER', date), step('tag', 'ADD_TAG', { tagNames: ['in'] })]
  const { id } = await publish(services, tenant, { steps, edges: edges(['start', 'tag']) })
  const day = new Date(Date.now() - 3_600_000).toISOString()
  await Promise.all(Array.from({ length: count }, () => tenant.subscribe(undefined, { day })))
  await execute(
    em,
    sql`insert into automation_schedule (organization_id, automation_id, step_id, timing, looked_until, next_at)
      values (${tenant.id}, ${id}, 'start', '{}', now() - interval '1 day', now() + interval '1 hour')`,
  )
  const automationId = encodeId('wf', id)
  const client = await services.temporal.client()
  await client.workflow.start(TRIGGER_FIRING, {
    workflowId: triggerScheduleId(services.config.temporal.taskQueue, automationId, 'start'),
    taskQueue: taskQueue(services.config.temporal.taskQueue, 'background'),
    args: [{ organizationId: encodeId('org', tenant.id), automationId, stepId: 'start' }],
  })
  let worker: ChildProcess | undefined
  const waiting = (statement: string) =>
    rows(
      em,
      sql`select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and backend_xid is not null and wait_event_type = 'Lock' and query like ${`%${statement}%`}`,
    )
  try {
    // Kills the worker twice while the trigger fires and twice while people enter, each time with uncommitted writes.
    for (const table of ['automation_intake', 'outbox', 'automation_occasion', 'automation_run']) {
      await services.orm.em.fork().transactional(async (closing) => {
        await execute(closing, sql`lock table ${sql.table(table)} in share row exclusive mode`)
        worker = startProcess(services, 'worker/main.ts')
        await eventually(
          `a worker that waits for ${table}`,
          async () => (await waiting(`insert into ${table}`)).length > 0,
          { withinMs: 90_000 },
        )
        await endProcess(worker)
      })
    }
    worker = startProcess(services, 'worker/main.ts')
    await eventually(
      'everybody to be through',
      async () => {
        const runs = await runsOf(services, tenant, id)
        return runs.length === count && runs.every(({ status }) => status === 'COMPLETED')
      },
      { withinMs: 120_000, everyMs: 200 },
    )
  } finally {
    if (worker) await endProcess(worker)
  }
  const [found] = await rows<{ intakes: number; entered: number; people: number }>(
    em,
    sql`select (select count(*) from automation_intake where organization_id = ${tenant.id})::int as intakes,
        (select sum(entered) from automation_intake where organization_id = ${tenant.id})::int as entered,
        (select count(distinct subscriber_id) from automation_run where organization_id = ${tenant.id})::int as people`,
  )
  t.deepEqual(found, { intakes: 1, entered: count, people: count })
  t.true((await effects(services, tenant)).includes(`TAG_ADDED in ${count} of ${count}`))
  await services.close()
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
