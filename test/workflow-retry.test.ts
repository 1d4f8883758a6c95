import { createServer, type Server } from 'node:http'

import test from 'ava'
import { sql } from 'kysely'

import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { rows } from '../src/database.ts'
import { advanceRun } from '../src/domain/automations/runs/advance.ts'
import { claimWebhooks, reportWebhook } from '../src/domain/automations/webhooks/webhooks.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { startOutboxRelay } from '../worker/outbox.ts'
import { reconcile } from '../worker/reconciler.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'
import { fastForward } from './helpers/workflow.ts'

let api: TestApi
let engine: Engine
let own: TestOrganization
let server: Server
let base: string
/** The `webhook-id` and path of each request. */
const received: { path: string; id: string }[] = []
/** Paths that answer successfully again. */
const mended = new Set<string>()

test.before(async () => {
  server = createServer((request, response) => {
    const path = request.url ?? ''
    received.push({ path, id: String(request.headers['webhook-id']) })
    response.writeHead(mended.has(path) ? 200 : 503).end()
  })
  const port = await listenOnLoopback(server)
  base = `http://127.0.0.1:${port}`
  api = await startApi({
    TEMPORAL_TASK_QUEUE: `retry-${process.pid}`,
    WEB_ALLOW_PRIVATE: `127.0.0.1:${port}`,
    LOG_LEVEL: 'error',
  })
  engine = await startEngine(api.services)
  await engine.ready
  own = await api.organization()
})
test.after.always(async () => {
  await engine?.stop()
  await api?.close()
  server?.close()
  server?.closeAllConnections()
})

type Run = {
  id: string
  status: string
  error: string | null
  exitReason: string | null
  temporalUrl: string
}
type Visit = { step: { id: string }; result: string; port: string | null; details: Record<string, unknown> }
type Failed = { workflowId: string; subscriberId: string; run: Run; path: string }

const MANUAL = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
const BEFORE = { id: 'before', type: 'UPDATE_FIELD', config: { increment: { passes: 1 } } }
const WAITING = { id: 'pause', type: 'WAIT_UNTIL', config: { mode: 'EVENT', eventType: 'BOUGHT' } }
const AFTER = { id: 'after', type: 'ADD_TAG', config: { tagNames: ['Told'] } }

let made = 0

/** Publishes a workflow that increments a field, calls an endpoint that is down, and then runs the step `last`. */
async function publish(
  settings: object = {},
  last: { id: string } = AFTER,
  successGoals: readonly object[] = [],
): Promise<{ workflowId: string; path: string }> {
  const path = `/receiver/${(made += 1)}`
  const { workflow } = await own.data('create_workflow', { name: `Retried ${made}` })
  const hook = { id: 'hook', type: 'WEBHOOK', config: { url: base + path, method: 'POST', retries: 0 } }
  const steps = [MANUAL, BEFORE, hook, last]
  await own.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    steps,
    edges: steps.slice(1).map(({ id }, index) => ({ from: steps[index]?.id, to: id })),
    settings,
    successGoals,
  })
  const answer = await own.confirmed('publish_workflow', { workflowId: workflow.id })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return { workflowId: workflow.id, path }
}

async function enter(workflowId: string, subscriberId?: string): Promise<{ subscriberId: string; run: Run }> {
  const { subscriber } = subscriberId
    ? { subscriber: { id: subscriberId } }
    : await own.data('add_subscriber', { email: `${newId()}@reader.example` })
  const { run } = await own.data('add_subscriber_to_workflow', { workflowId, subscriberId: subscriber.id })
  return { subscriberId: subscriber.id, run }
}

/** Creates a subscriber whose run failed at its WEBHOOK step. */
async function failed(
  settings: object = {},
  last: { id: string } = AFTER,
  successGoals: readonly object[] = [],
): Promise<Failed> {
  const { workflowId, path } = await publish(settings, last, successGoals)
  const { subscriberId, run } = await enter(workflowId)
  return { workflowId, subscriberId, path, run: await runWhen(run.id, 'FAILED') }
}

const read = (runId: string): Promise<{ run: Run; timeline: Visit[] }> =>
  own.data('get_workflow_run', { runId })
const retry = (runId: string) => own.call('retry_workflow_run', { runId })

async function runWhen(runId: string, status: string): Promise<Run> {
  return await eventually(`the run to be ${status}`, async () => {
    const { run } = await read(runId)
    return run.status === status && run
  })
}

async function trail(runId: string): Promise<string[]> {
  const { timeline } = await read(runId)
  return timeline.map(({ step, result, port }) => `${step.id} ${result}${port === null ? '' : `→${port}`}`)
}

/** Returns the effects of a run on its subscriber: the incremented field and the tags. */
async function effects(subscriberId: string): Promise<object> {
  const { subscriber } = await own.data('get_subscriber', { subscriberId })
  const events = await rows<{ type: string }>(
    api.services.orm.em.fork(),
    sql`select type from subscriber_event where subscriber_id = ${decodeId('sub', subscriberId)}
      and type in ('TAG_ADDED', 'FIELD_UPDATED') order by id`,
  )
  return { passes: subscriber.customFields?.passes, events: events.map(({ type }) => type) }
}
const ONCE = { passes: 1, events: ['FIELD_UPDATED', 'TAG_ADDED'] }
const RETRIED = ['start ENTERED→next', 'before DONE→next', 'hook FAILED', 'hook DONE→next', 'after DONE→next']

async function workflowOf({ workflowId, subscriberId }: Failed) {
  const client = await api.services.temporal.client()
  return client.workflow.getHandle(runWorkflowId(workflowId, subscriberId, 1))
}

test.serial(
  'a failed run says which step, why and what to do; a retry does that step again and nothing before it',
  async (t) => {
    const one = await failed()
    const { run, path, subscriberId } = one
    t.regex(run.error ?? '', /^Step hook failed: POST .*answered 503.*retry_workflow_run/)
    const handle = await workflowOf(one)
    const error = await t.throwsAsync(handle.result())
    t.regex(String(error?.cause), /step hook \(WEBHOOK\) failed \(answered 503\).*retry_workflow_run.*reset/)
    t.false(String(error?.cause).includes(path))
    t.is(error?.cause instanceof Error && error.cause.stack, '', 'where it is thrown would hide it')
    const { searchAttributes } = await handle.describe()
    t.like(searchAttributes, { RunState: ['FAILED'], Step: ['hook'] })

    mended.add(path)
    const answer = await retry(run.id)
    t.is(answer.status, 200)
    t.like(answer.body.data.run, {
      id: run.id,
      status: 'QUEUED',
      exitReason: null,
      error: null,
      endedAt: null,
    })
    await runWhen(run.id, 'COMPLETED')
    t.deepEqual(await trail(run.id), RETRIED)
    t.deepEqual(await effects(subscriberId), ONCE)
    const { timeline } = await read(run.id)
    t.regex(String(timeline[2]?.details['retriedBy']), /./)
    t.regex(String(timeline[2]?.details['retriedAt']), /T\d\d:\d\d:\d\d\.\d{3}Z$/)
    const ids = received.filter((each) => each.path === path).map(({ id }) => id)
    t.is(ids.length, 2)
    t.is(ids[0], ids[1], 'the receiver knows a repetition by its id')
    t.like(await handle.result(), { state: 'COMPLETED' })
    t.like((await retry(run.id)).body, { code: 'WRONG_STATE', details: { status: 'COMPLETED' } })
  },
)

test.serial('a retry that fails as well can be retried again; of several at once one counts', async (t) => {
  const { run, path, subscriberId } = await failed()
  await retry(run.id)
  await eventually('the second failure', async () => {
    const { timeline } = await read(run.id)
    return timeline.filter(({ result }) => result === 'FAILED').length === 2
  })
  await runWhen(run.id, 'FAILED')
  mended.add(path)
  const answers = await Promise.all([1, 2, 3, 4].map(() => retry(run.id)))
  t.deepEqual(
    answers.map(({ status }) => status).toSorted((one, other) => one - other),
    [200, 409, 409, 409],
  )
  await runWhen(run.id, 'COMPLETED')
  t.deepEqual(await trail(run.id), [...RETRIED.slice(0, 3), ...RETRIED.slice(2)])
  t.deepEqual(await effects(subscriberId), ONCE)
  t.is(new Set(received.filter((each) => each.path === path).map(({ id }) => id)).size, 1)
})

test.serial(
  'an operator retries by a reset in the Temporal UI; a reset of what is done repeats nothing',
  async (t) => {
    const one = await failed()
    mended.add(one.path)
    await reset(one)
    await runWhen(one.run.id, 'COMPLETED')
    t.deepEqual(await trail(one.run.id), RETRIED)
    const { timeline } = await read(one.run.id)
    t.is(timeline[2]?.details['retriedBy'], 'operator')
    const handle = await workflowOf(one)
    t.like(await handle.result(), { state: 'COMPLETED' })
    const before = (await handle.describe()).runId
    await reset(one)
    t.like(await handle.result(), { state: 'COMPLETED' })
    t.not((await handle.describe()).runId, before)
    t.deepEqual(await trail(one.run.id), RETRIED)
    t.deepEqual(await effects(one.subscriberId), ONCE)

    // Where a retry is refused, a reset ends the workflow as it ended before.
    const left = await failed()
    await own.data('update_workflow_status', { workflowId: left.workflowId, status: 'PAUSED' })
    await own.confirmed('update_workflow_status', { workflowId: left.workflowId, status: 'ARCHIVED' })
    await reset(left)
    const again = await workflowOf(left)
    t.regex(String((await t.throwsAsync(again.result()))?.cause), /step hook \(WEBHOOK\) failed/)
    t.is((await read(left.run.id)).run.status, 'FAILED')
  },
)

test.serial('a reset of a workflow that failed before its run was retried drives the run on', async (t) => {
  const one = await failed({}, WAITING)
  const handle = await workflowOf(one)
  await handle.result().catch(() => undefined)
  const { runId: old } = await handle.describe()
  mended.add(one.path)
  t.is((await retry(one.run.id)).status, 200)
  await runWhen(one.run.id, 'WAITING')
  const { runId: retried } = await handle.describe()
  t.not(retried, old)
  await reset(one, old)
  const { runId: newest } = await handle.describe()
  t.false([old, retried].includes(newest))
  const { workflowId, subscriberId } = one
  await fastForward(own, { workflowId, subscriberId, expectedStepId: 'pause' })
  t.like(await handle.result(), { state: 'COMPLETED' })
  t.deepEqual(await trail(one.run.id), [...RETRIED.slice(0, -1), 'pause FAST_FORWARD→timeout'])
})

test.serial('a reset of an older workflow of a run that failed again retries it as well', async (t) => {
  const one = await failed()
  const handle = await workflowOf(one)
  await handle.result().catch(() => undefined)
  const { runId: old } = await handle.describe()
  t.is((await retry(one.run.id)).status, 200)
  await eventually('the second failure', async () => {
    const { runId, status } = await handle.describe()
    return runId !== old && status.name === 'FAILED'
  })
  mended.add(one.path)
  await reset(one, old)
  await runWhen(one.run.id, 'COMPLETED')
  t.deepEqual(await trail(one.run.id), [...RETRIED.slice(0, 3), ...RETRIED.slice(2)])
  t.deepEqual(await effects(one.subscriberId), ONCE)
})

test.serial(
  'a retry ends a run whose goal was reached, or whose exit rule was met, since it failed',
  async (t) => {
    const event = 'SUBSCRIBER_PAYMENT'
    const goal = { id: 'bought', name: 'Bought', event, windowDays: 14 }
    const rule = { exitRules: [{ id: 'paid', on: event }] }
    const ends = [
      { one: await failed({}, AFTER, [goal]), end: ['COMPLETED', 'GOAL'] },
      { one: await failed(rule), end: ['CANCELED', 'EXIT_RULE'] },
      { one: await failed({}, AFTER, [{ ...goal, exitOnReach: false }]), end: ['COMPLETED', 'END'] },
    ]
    for (const { one, end } of ends) {
      const { run, path, subscriberId } = one
      await own.data('create_event', { subscriberId, eventType: event, amount: 5 })
      mended.add(path)
      t.is((await retry(run.id)).status, 200)
      const { status, exitReason } = await runWhen(run.id, end[0] ?? '')
      t.deepEqual([status, exitReason], end)
      t.is(received.filter((each) => each.path === path).length, exitReason === 'END' ? 2 : 1)
    }
  },
)

/** Resets an execution to its last workflow task, as the Web UI does; by default the newest one. */
async function reset(one: Failed, execution?: string): Promise<void> {
  const client = await api.services.temporal.client()
  const { workflowId } = await workflowOf(one)
  const handle = client.workflow.getHandle(workflowId, execution)
  const { events } = await handle.fetchHistory()
  const tasks = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes)
  const { runId } = await handle.describe()
  await client.workflowService.resetWorkflowExecution({
    namespace: api.services.config.temporal.namespace,
    workflowExecution: { workflowId, runId },
    reason: 'the receiver works again',
    workflowTaskFinishEventId: tasks.at(-1)?.eventId ?? null,
    requestId: newId(),
  })
}

test.serial('what speaks against a retry is said', async (t) => {
  const refused = async (runId: string, words: RegExp, message?: string) => {
    const { status, body } = await retry(runId)
    t.is(status, 409, message)
    t.is(body.code, 'WRONG_STATE')
    t.regex(body.error, words)
  }
  const paused = await failed()
  await own.data('update_workflow_status', { workflowId: paused.workflowId, status: 'PAUSED' })
  await refused(paused.run.id, /PAUSED.*update_workflow_status/)
  await own.confirmed('update_workflow_status', { workflowId: paused.workflowId, status: 'ARCHIVED' })
  await refused(paused.run.id, /ARCHIVED/)

  const gone = await failed()
  await own.confirmed('unsubscribe', { subscriberId: gone.subscriberId })
  await refused(gone.run.id, /has unsubscribed since/)
  const staying = await failed({ exitOnUnsubscribe: false })
  await own.confirmed('unsubscribe', { subscriberId: staying.subscriberId })
  mended.add(staying.path)
  t.is((await retry(staying.run.id)).status, 200)
  await runWhen(staying.run.id, 'COMPLETED')

  const again = await failed()
  await engine.stop()
  const second = await enter(again.workflowId, again.subscriberId)
  await refused(again.run.id, /has entered this workflow again since/)

  const { group } = await own.data('create_workflow_group', { name: 'One', conflictStrategy: 'FIRST_WINS' })
  const other = await publish()
  for (const workflowId of [again.workflowId, other.workflowId]) {
    await own.data('remove_subscriber_from_workflow', { workflowId, subscriberId: again.subscriberId })
    await own.data('set_workflow_group', { workflowId, groupId: group.id })
  }
  const holder = await enter(other.workflowId, again.subscriberId)
  await refused(again.run.id, /another workflow of the same group/)
  t.is((await read(holder.run.id)).run.status, 'QUEUED')
  await own.data('remove_subscriber_from_workflow', {
    workflowId: other.workflowId,
    subscriberId: again.subscriberId,
  })
  t.is((await retry(again.run.id)).status, 200)
  const [place] = await rows<{ held: boolean }>(
    api.services.orm.em.fork(),
    sql`select group_id is not null as held from automation_run where id = ${decodeId('run', again.run.id)}`,
  )
  t.true(place?.held)
  t.is((await read(second.run.id)).run.status, 'CANCELED')
  engine = await startEngine(api.services)
  mended.add(again.path)
  await eventually('an end', async () => (await read(again.run.id)).timeline.length > 3)
})

test.serial("another organization's runs and malformed ids answer as runs that do not exist", async (t) => {
  const { run } = await failed()
  const other = await api.organization()
  const absent = encodeId('run', newId())
  const words = ({ status, body }: Awaited<ReturnType<typeof retry>>, id: string) => ({
    status,
    code: body.code,
    error: String(body.error).replace(id, ''),
  })
  const foreign = await other.call('retry_workflow_run', { runId: run.id })
  t.is(foreign.status, 404)
  t.deepEqual(
    words(foreign, run.id),
    words(await other.call('retry_workflow_run', { runId: absent }), absent),
  )
  t.is((await other.call('retry_workflow_run', { runId: 'run_nonsense' })).status, 404)
  const token = await own.tokenWith(['subscribers'])
  const answer = await api.request('POST', '/api/v2/tools/retry_workflow_run', {
    token,
    body: { runId: run.id },
  })
  t.is(answer.status, 403)
  t.is((await read(run.id)).run.status, 'FAILED')
})

test.serial('a retry that comes before the failed workflow has ended is heard by that one', async (t) => {
  await engine.stop()
  const { workflowId, path } = await publish()
  const { subscriberId, run } = await enter(workflowId)
  const relay = startOutboxRelay(api.services, { knowsAttributes: () => Promise.resolve(false) })
  const handle = await workflowOf({ workflowId, subscriberId, run, path })
  const { runId: execution } = await eventually('the workflow to be there', () => handle.describe())
  await relay.stop()
  await failWithout(run.id, execution)
  t.is((await retry(run.id)).status, 200)
  mended.add(path)
  engine = await startEngine(api.services)
  await runWhen(run.id, 'COMPLETED')
  t.like(await handle.result(), { state: 'COMPLETED' })
  t.is((await handle.describe()).runId, execution)
  t.deepEqual(await effects(subscriberId), ONCE)
})

/**
 * Does what a worker does before it crashes: the failure of the step is committed, but Temporal does not know of it.
 */
async function failWithout(runId: string, execution: string): Promise<void> {
  const actor = { kind: 'system' as const, id: 'test', name: 'test' }
  const advance = () =>
    unitOfWork(api.services, { organizationId: own.id, actor }, (call) =>
      advanceRun(call, decodeId('run', runId), { execution, attempt: execution }),
    )
  await advance()
  const [claim] = await claimWebhooks(api.services.orm.em.fork(), 1)
  if (!claim) throw new Error('no request was written down')
  const result = { status: 503, fault: null, reason: 'POST answered 503', retryMs: null, response: null }
  await unitOfWork(api.services, { organizationId: own.id, actor }, (call) =>
    reportWebhook(call, claim, result),
  )
  await advance()
}

test.serial('the reconciler does not take the old failure of a retried run for a new one', async (t) => {
  const { run, path, subscriberId } = await failed()
  await engine.stop()
  t.is((await retry(run.id)).status, 200)
  t.is(await reconcile(api.services, 0), 1)
  t.is((await read(run.id)).run.status, 'QUEUED')
  mended.add(path)
  engine = await startEngine(api.services)
  await runWhen(run.id, 'COMPLETED')
  t.deepEqual(await trail(run.id), RETRIED)
  t.deepEqual(await effects(subscriberId), ONCE)
})

test.serial('a worker that is killed with -9 after each retry loses none and repeats nothing', async (t) => {
  const { workflowId, path } = await publish()
  const people = await Promise.all(Array.from({ length: 4 }, () => enter(workflowId)))
  for (const { run } of people) await runWhen(run.id, 'FAILED')
  await engine.stop()
  mended.add(path)
  for (const { run } of people) {
    const worker = startProcess(api.services, 'worker/main.ts', {
      env: { WEB_ALLOW_PRIVATE: new URL(base).host },
    })
    t.is((await retry(run.id)).status, 200)
    await eventually('it to be taken', async () => {
      const [left] = await rows<{ count: number }>(
        api.services.orm.em.fork(),
        sql`select count(*)::int as count from outbox where attempts = 0`,
      )
      return left?.count === 0
    })
    await endProcess(worker)
  }
  engine = await startEngine(api.services)
  for (const { run, subscriberId } of people) {
    await runWhen(run.id, 'COMPLETED')
    t.deepEqual(await trail(run.id), RETRIED)
    t.deepEqual(await effects(subscriberId), ONCE)
  }
})
