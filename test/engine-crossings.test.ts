import test from 'ava'
import { sql } from 'kysely'

import type { Step } from '../schema/automation.ts'
import { execute, json, row, rows } from '../src/database.ts'
import { updateStatus } from '../src/domain/automations/definition/status.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { nudgeRuns } from '../src/domain/automations/runs/nudge.ts'
import { readStory } from '../src/domain/automations/runs/run-story.ts'
import { encodeId, newId } from '../src/ids.ts'
import { startEchoWatch } from '../worker/echo-watch.ts'
import { performWork } from '../worker/run-work.ts'
import {
  decisionsOf,
  edges,
  emailStep,
  makeTenant,
  publish,
  runsOf,
  step,
  type Tenant,
  trailOf,
} from './helpers/automation.ts'
import type { TestServices } from './helpers/database.ts'
import { chain, type EngineWorld, openEngine, START, TAGGED } from './helpers/engine.ts'
import { eventually } from './helpers/eventually.ts'

let world: EngineWorld
let tenant: Tenant
let services: TestServices

test.before(async () => {
  world = await openEngine('engine-crossings')
  ;({ tenant, services } = world)
})
test.after.always(() => world?.close())

const LONG = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })
const start = (automationId: string, context?: Record<string, unknown>) =>
  step('go', 'START_WORKFLOW', { workflowId: encodeId('wf', automationId), ...(context && { context }) })
const stop = (automationId: string) =>
  step('halt', 'STOP_WORKFLOW', { workflowId: encodeId('wf', automationId), reason: 'enough' })

test.serial('a row that Temporal refuses holds up no other', async (t) => {
  const em = services.orm.em.fork()
  const write = (workflowId: string, kind: 'start' | 'signal', payload: object) =>
    execute(
      em,
      sql`insert into outbox (organization_id, workflow_id, kind, payload)
        values (${tenant.id}, ${workflowId}, ${kind}, ${json(payload)})`,
    )
  const attemptsOf = async (workflowId: string) =>
    await row<{ attempts: number }>(em, sql`select attempts from outbox where workflow_id = ${workflowId}`)
  // Longer than the ids of Temporal.
  const refused = 'x'.repeat(2_000)
  await write(refused, 'start', { workflow: 'Any', input: { organizationId: tenant.id }, summary: '' })
  const attempts = async () => (await attemptsOf(refused))?.attempts ?? 0
  await eventually('it to be refused again and again', async () => (await attempts()) >= 7)
  const before = await attempts()
  await write('nobody', 'signal', { signal: 'nudge' })
  await eventually('the other row', async () => (await attemptsOf('nobody')) === null)
  t.is(await attempts(), before)
  await execute(em, sql`delete from outbox where workflow_id = ${refused}`)
})

test('START_WORKFLOW lets the subscriber enter with its context, STOP_WORKFLOW takes them out; nobody waits', async (t) => {
  const byPlan = {
    paths: [{ id: 'pro', filters: [{ field: 'entry.plan', operator: 'equals' as const, value: 'pro' }] }],
  }
  const other = await world.publish({
    steps: [START, step('which', 'BRANCH', byPlan), LONG],
    edges: edges(['start', 'which'], ['which', 'pro', 'pause']),
  })
  const subscriberId = await tenant.subscribe()
  const asking = await world.ended(chain([start(other, { plan: 'pro' }), TAGGED]), subscriberId)
  t.deepEqual(asking.trail.slice(1), ['go ASKED→next', 'tag DONE→next'])
  const run = await world.runWhen(other, { status: 'WAITING', stepId: 'pause' })
  const [entered] = await rows<{ trigger: object }>(
    services.orm.em.fork(),
    sql`select trigger from automation_run where id = ${run.id}`,
  )
  t.deepEqual(entered?.trigger, {
    type: 'START_WORKFLOW',
    runId: encodeId('run', asking.id),
    stepId: 'start',
    depth: 1,
  })
  await world.ended(chain([stop(other)]), subscriberId)
  const stopped = await world.endOf(other)
  t.deepEqual([stopped.status, stopped.exitReason], ['CANCELED', 'MANUAL'])
  const [told] = await world.eventsOf(subscriberId, 'WORKFLOW_CANCELED')
  t.like(told?.data, { reason: 'enough' })
  // Stopping a workflow in which the subscriber has no run is not an error.
  t.is((await world.ended(chain([stop(other)]), subscriberId)).status, 'COMPLETED')
})

test('what the other workflow refuses stands in its ledger, and is asked once', async (t) => {
  const subscriberId = await tenant.subscribe()
  const once = await publish(services, tenant, { ...chain([LONG]), settings: { reEntry: { mode: 'ONCE' } } })
  const paused = await publish(services, tenant, chain([LONG]), { status: 'PAUSED' })
  const picky = await world.publish({
    steps: [
      step('start', 'TRIGGER', {
        type: 'MANUAL',
        filters: [{ field: 'status', operator: 'equals', value: 'BANNED' }],
      }),
    ],
    edges: [],
  })
  for (const id of [once.id, once.id, paused.id, picky]) await world.ended(chain([start(id)]), subscriberId)
  await eventually('the outbox to be empty', async () => {
    const left = await rows(services.orm.em.fork(), sql`select 1 from outbox where kind = 'work'`)
    return left.length === 0
  })
  t.is((await runsOf(services, tenant, once.id)).length, 1)
  t.is((await decisionsOf(services, once.id)).length, 1)
  t.deepEqual(await decisionsOf(services, paused.id), ['ENTRY_REFUSED PAUSED'])
  t.deepEqual(await decisionsOf(services, picky), ['ENTRY_REFUSED FILTERS'])
})

test('what a run asks of a workflow that is gone stands in its own ledger', async (t) => {
  const gone = newId()
  const asking = await world.ended(chain([start(gone), stop(gone), TAGGED]), await tenant.subscribe())
  t.deepEqual(asking.trail.slice(1), ['go ASKED→next', 'halt ASKED→next', 'tag DONE→next'])
  await eventually(
    'both refusals',
    async () => (await decisionsOf(services, asking.automationId)).length === 2,
  )
  const { decisions } = await tenant.within((call) => readStory(call, encodeId('run', asking.id)))
  t.deepEqual(
    decisions.map(({ stepId, action, reason }) => [stepId, action, reason]),
    [
      ['go', 'STEP_SKIPPED', 'NOT_FOUND'],
      ['halt', 'STEP_SKIPPED', 'NOT_FOUND'],
    ],
  )
})

test('a relay that died after, or before, it did what a run asked makes no second run and loses none', async (t) => {
  const other = await publish(services, tenant, {
    ...chain([LONG]),
    settings: { reEntry: { mode: 'EVERY_TIME' } },
  })
  const subscriberId = await tenant.subscribe()
  const row = {
    id: '0',
    organizationId: tenant.id,
    workflowId: 'work/test',
    kind: 'work' as const,
    payload: {
      work: 'START',
      runId: newId(),
      stepId: 'go',
      subscriberId,
      workflowId: encodeId('wf', other.id),
      depth: 0,
    },
    attempts: 1,
  }
  const [written] = await rows<{ id: string }>(
    services.orm.em.fork(),
    sql`insert into outbox (organization_id, workflow_id, kind, payload, available_at)
      values (${tenant.id}, 'work/test', 'work', ${JSON.stringify(row.payload)}::jsonb, now() + interval '1 hour')
      returning id::text as id`,
  )
  // Several relays process the same row, as after an expired lease.
  await Promise.all([1, 2, 3].map(() => performWork(services, { ...row, id: written?.id ?? '' })))
  t.is((await runsOf(services, tenant, other.id)).length, 1)
})

test('workflows that start each other in a circle are cut, and the run says why', async (t) => {
  const settings = { reEntry: { mode: 'EVERY_TIME' as const } }
  const one = await publish(services, tenant, { ...chain([]), settings })
  const other = await publish(services, tenant, { ...chain([start(one.id)]), settings })
  await publish(
    services,
    tenant,
    { ...chain([start(other.id)]), settings },
    { automationId: one.id, number: 2 },
  )
  await world.enter(one.id, await tenant.subscribe())
  const all = async () => [
    ...(await runsOf(services, tenant, one.id)),
    ...(await runsOf(services, tenant, other.id)),
  ]
  const failed = await eventually('the circle to be cut', async () =>
    (await all()).find(({ status }) => status === 'FAILED'),
  )
  t.regex(failed.error ?? '', /Step go failed: This run is the last of 11 that have started each other/)
  t.is((await all()).length, 11)

  // The same limit applies to starts by events and by tags.
  const say = step('say', 'CREATE_EVENT', { eventType: 'ROUND_AND_ROUND' }, { onError: 'CONTINUE' })
  const loop = await world.publish({
    steps: [step('start', 'TRIGGER', { type: 'EVENT', eventType: 'ROUND_AND_ROUND' }), say],
    edges: edges(['start', 'say']),
    settings,
  })
  await world.happened(await tenant.subscribe(), 'ROUND_AND_ROUND')
  await eventually('eleven runs', async () => {
    const runs = await runsOf(services, tenant, loop)
    return runs.length === 11 && runs.every(({ status }) => status === 'COMPLETED')
  })
  t.deepEqual(await decisionsOf(services, loop), ['STEP_FAILED WRONG_STATE'])
  const untag = (id: string, on: string, off: string): Step[] => [
    step('start', 'TRIGGER', { type: 'TAG_ADDED', tagNames: [on] }),
    step('off', 'REMOVE_TAG', { tagNames: [on] }),
    step(id, 'ADD_TAG', { tagNames: [off] }),
  ]
  const ping = await world.publish({
    steps: untag('x', 'ping', 'pong'),
    edges: edges(['start', 'off', 'x']),
    settings,
  })
  const pong = await world.publish({
    steps: untag('x', 'pong', 'ping'),
    edges: edges(['start', 'off', 'x']),
    settings,
  })
  await world.ended(chain([step('first', 'ADD_TAG', { tagNames: ['ping'] })]), await tenant.subscribe())
  await eventually('the tags to rest', async () => {
    const decisions = [...(await decisionsOf(services, ping)), ...(await decisionsOf(services, pong))]
    return decisions.includes('ENTRY_REFUSED LOOP')
  })
})

test('a circle of different steps is cut at the same depth as one of a kind', async (t) => {
  const settings = { reEntry: { mode: 'EVERY_TIME' as const } }
  const along = (steps: Step[]) => ({ steps, edges: edges(steps.map(({ id }) => id)), settings })
  const tagging = await world.publish(along([START, step('tag', 'ADD_TAG', { tagNames: ['round'] })]))
  const tagged = await world.publish(
    along([
      step('start', 'TRIGGER', { type: 'TAG_ADDED', tagNames: ['round'] }),
      step('off', 'REMOVE_TAG', { tagNames: ['round'] }),
    ]),
  )
  const ofTagged = { workflowId: encodeId('wf', tagged), event: 'WORKFLOW_COMPLETED' as const }
  const ended = await publish(
    services,
    tenant,
    along([
      step('start', 'TRIGGER', { type: 'WORKFLOW_EVENT', ...ofTagged }),
      step('say', 'CREATE_EVENT', { eventType: 'MIXED_ROUND' }),
    ]),
  )
  const first = await world.publish(
    along([step('start', 'TRIGGER', { type: 'EVENT', eventType: 'MIXED_ROUND' }), start(tagging)]),
  )
  const echoes = startEchoWatch(services)
  t.teardown(() => echoes.stop())
  await world.happened(await tenant.subscribe(), 'MIXED_ROUND')
  await eventually('the circle to be cut', async () =>
    (await decisionsOf(services, ended.id)).includes('ENTRY_REFUSED LOOP'),
  )
  const counts = await Promise.all(
    [first, tagging, tagged, ended.id].map(async (id) => (await runsOf(services, tenant, id)).length),
  )
  t.deepEqual(counts, [3, 3, 3, 2])

  // Events that a run causes after its own transaction count too: those of its emails and requests.
  const mailing = await world.publish(
    along([
      step('start', 'TRIGGER', { type: 'EVENT', eventType: 'EMAIL_SENT' }),
      emailStep('hello', { transactional: true }),
    ]),
  )
  await world.enter(mailing, await tenant.subscribe())
  const nowhere = { url: 'http://127.0.0.1:9/', method: 'POST', timeoutSeconds: 1, retries: 0 } as const
  const calling = await world.publish(
    along([
      step('start', 'TRIGGER', { type: 'EVENT', eventType: 'WEBHOOK_EXECUTED' }),
      step('hook', 'WEBHOOK', nowhere, { onError: 'CONTINUE' }),
    ]),
  )
  await world.enter(calling, await tenant.subscribe())
  for (const id of [mailing, calling]) {
    await eventually('the circle to be cut', async () =>
      (await decisionsOf(services, id)).includes('ENTRY_REFUSED LOOP'),
    )
    t.is((await runsOf(services, tenant, id)).length, 11)
  }
})

test('THROTTLE lets as many through as it may in each window, in the order they come, and SKIP sends the rest on', async (t) => {
  const throttle = (limit: number, amount: number, unit: 'SECONDS' | 'MINUTES') =>
    step('slow', 'THROTTLE', { limit, per: { amount, unit }, overflow: 'HOLD' })
  const passes = (automationId: string) =>
    rows<{ status: string; until: string | null; endedAt: string | null }>(
      services.orm.em.fork(),
      sql`select run.status, outcome ->> 'until' as until, run_step.ended_at as "endedAt" from run_step
        join automation_run run on run.id = run_step.run_id
        where run.automation_id = ${automationId} and run_step.step_id = 'slow' order by outcome ->> 'until' nulls first`,
    )
  const people = await Promise.all(Array.from({ length: 6 }, () => tenant.subscribe()))

  const slow = await world.publish(chain([throttle(2, 30, 'MINUTES'), TAGGED]))
  await Promise.all(people.map((subscriberId) => world.enter(slow, subscriberId)))
  await eventually('two to pass and four to be held', async () => {
    const statuses = (await passes(slow)).map(({ status }) => status)
    return statuses.join() === 'COMPLETED,COMPLETED,WAITING,WAITING,WAITING,WAITING'
  })
  const held = (await passes(slow)).map(({ until }) => until)
  t.deepEqual(held.slice(0, 2), [null, null])
  const [third = 0, fourth = 0, fifth = 0, sixth = 0] = held.slice(2).map((until) => Date.parse(until ?? ''))
  t.deepEqual([fourth - third, fifth - third, sixth - third], [0, 1_800_000, 1_800_000])

  const brisk = await world.publish(chain([throttle(1, 2, 'SECONDS'), TAGGED]))
  await Promise.all(people.slice(0, 3).map((subscriberId) => world.enter(brisk, subscriberId)))
  await eventually('all to pass', async () => {
    const statuses = (await passes(brisk)).map(({ status }) => status)
    return statuses.join() === 'COMPLETED,COMPLETED,COMPLETED'
  })
  for (const { until, endedAt } of await passes(brisk))
    if (until) t.true(Date.parse(endedAt ?? '') >= Date.parse(until))

  const skipping = await world.publish({
    steps: [
      START,
      step('slow', 'THROTTLE', { limit: 1, per: { amount: 1, unit: 'HOURS' }, overflow: 'SKIP' }),
      TAGGED,
    ],
    edges: edges(['start', 'slow', 'tag']),
  })
  const trails: string[] = []
  for (const subscriberId of people.slice(0, 2)) {
    await world.enter(skipping, subscriberId)
    await eventually('it to end', async () =>
      (await runsOf(services, tenant, skipping)).every(({ status }) => status === 'COMPLETED'),
    )
  }
  for (const { id } of await runsOf(services, tenant, skipping))
    trails.push((await trailOf(services, id)).slice(1).join(', '))
  t.deepEqual(trails, ['slow PASSED→next, tag DONE→next', 'slow FULL→skipped'])
})

test('runs whose places at a THROTTLE passed during a pause continue at its rate', async (t) => {
  const slow = step('slow', 'THROTTLE', { limit: 1, per: { amount: 1, unit: 'HOURS' }, overflow: 'HOLD' })
  const id = await world.publish(chain([slow, TAGGED]))
  const setStatus = (status: 'ACTIVE' | 'PAUSED') =>
    tenant.within((call) => updateStatus(call, encodeId('wf', id), status))
  const statuses = async () => (await runsOf(services, tenant, id)).map(({ status }) => status).toSorted()
  const become = (what: string, expected: string[]) =>
    eventually(what, async () => (await statuses()).join() === expected.join())
  for (let count = 0; count < 4; count++) await world.enter(id, await tenant.subscribe())
  await become('one to pass', ['COMPLETED', 'WAITING', 'WAITING', 'WAITING'])
  await setStatus('PAUSED')
  // Simulates a pause of five hours.
  await tenant.within(async (call) => {
    await execute(
      call.em,
      sql`update automation_throttle set window_at = window_at - interval '5 hours' where automation_id = ${id}`,
    )
    await execute(
      call.em,
      sql`update automation_run set wake_at = wake_at - interval '5 hours' where automation_id = ${id}`,
    )
    const runs = await runsOf(services, tenant, id)
    await nudgeRuns(
      call.em,
      tenant.id,
      runs.map((run) => run.id),
    )
  })
  await eventually('three to be held', async () => {
    const runs = await runsOf(services, tenant, id)
    return runs.filter(({ held }) => held).length === 3
  })
  await setStatus('ACTIVE')
  await eventually('the others to have places to come', async () => {
    const [found] = await rows<{ hours: number[] }>(
      services.orm.em.fork(),
      sql`select array_agg(ceil(extract(epoch from wake_at - now()) / 3600)::int order by wake_at) as hours
        from automation_run where automation_id = ${id} and status = 'WAITING'`,
    )
    return found?.hours?.join() === '1,2'
  })
  t.deepEqual(await statuses(), ['COMPLETED', 'COMPLETED', 'WAITING', 'WAITING'])
})

test("another organization's workflow is neither started nor stopped", async (t) => {
  const other = await makeTenant(services)
  const theirs = await publish(services, other, chain([LONG]))
  const theirSubscriber = await other.subscribe()
  await other.within((call) =>
    enterByHand(call, {
      workflowId: encodeId('wf', theirs.id),
      subscriberId: encodeId('sub', theirSubscriber),
    }),
  )
  await world.ended(chain([start(theirs.id), stop(theirs.id)]), await tenant.subscribe())
  await eventually('the outbox to be empty', async () => {
    const left = await rows(services.orm.em.fork(), sql`select 1 from outbox where kind = 'work'`)
    return left.length === 0
  })
  const runs = await runsOf(services, other, theirs.id)
  t.is(runs.length, 1)
  t.true(['QUEUED', 'ACTIVE', 'WAITING'].includes(runs[0]?.status ?? ''))
  t.is(await execute(services.orm.em.fork(), sql`delete from decision where automation_id = ${theirs.id}`), 0)
})
