import test from 'ava'
import { sql } from 'kysely'

import type { Call } from '../src/catalogue/tool.ts'
import { execute, row, rows } from '../src/database.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { removeFromWorkflow } from '../src/domain/automations/runs/run-control.ts'
import { fireEchoes } from '../src/domain/automations/triggers/echoes.ts'
import { insertEvents } from '../src/domain/event-rows.ts'
import { recordEvents } from '../src/domain/events.ts'
import { encodeId } from '../src/ids.ts'
import { reconcile } from '../worker/reconciler.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import {
  edges,
  makeTenant,
  passWait,
  publish,
  type RunRow,
  runsOf,
  step,
  type Tenant,
  trailOf,
} from './helpers/automation.ts'
import { type TestServices, testServices } from './helpers/database.ts'
import { chain, type Graph } from './helpers/engine.ts'
import { eventually } from './helpers/eventually.ts'

let services: TestServices
let engine: Engine
let tenant: Tenant

const REST = step('rest', 'WAIT', { amount: 1, unit: 'HOURS' })

test.before(async () => {
  services = await testServices({ TEMPORAL_TASK_QUEUE: `events-${process.pid}`, LOG_LEVEL: 'error' })
  engine = await startEngine(services)
  await engine.ready
  tenant = await makeTenant(services)
})

test.after.always(async () => {
  await engine?.stop()
  await services?.close()
})

/** Starts a run that waits until `goOn`, and then for an event. Returns when it is in the first wait. */
async function enter(eventType: string, scope: 'RUN' | 'STEP') {
  const wait = step('paid', 'WAIT_UNTIL', {
    mode: 'EVENT',
    eventType,
    where: [],
    scope,
    timeout: { amount: 1, unit: 'HOURS' },
    onTimeout: 'CONTINUE',
  })
  const automation = await publish(services, tenant, {
    steps: [step('start', 'TRIGGER', { type: 'MANUAL' }), REST, wait],
    edges: edges(['start', 'rest', 'paid']),
  })
  const subscriberId = await tenant.subscribe()
  await tenant.within((call) =>
    enterByHand(call, {
      workflowId: encodeId('wf', automation.id),
      subscriberId: encodeId('sub', subscriberId),
    }),
  )
  const at = (stepId: string, status: string) =>
    eventually(`the run at ${stepId}, ${status}`, async () => {
      const [run] = await runsOf(services, tenant, automation.id)
      return run?.stepId === stepId && run.status === status && run
    })
  const { id: runId } = await at('rest', 'WAITING')
  const goOn = () => passWait(services, tenant, runId)
  return { automation, subscriberId, at, goOn }
}

const WOKEN = ['start ENTERED→next', 'rest ELAPSED→next', 'paid EVENT→next']

for (const scope of ['RUN', 'STEP'] as const) {
  test(`a silent event never ends a wait of scope ${scope}, before it or within it`, async (t) => {
    const { subscriberId, at, goOn } = await enter(`SILENT_${scope}`, scope)
    const happened = (triggerWorkflows: boolean) =>
      tenant.within((call) =>
        recordEvents(call, [{ subscriberId, type: `SILENT_${scope}` }], { triggerWorkflows }),
      )
    await happened(false)
    await goOn()
    await at('paid', 'WAITING')
    await happened(false)
    await reconcile(services, 0)
    const run = await at('paid', 'WAITING')
    const waits = await rows(services.orm.em.fork(), sql`select 1 from run_wait where run_id = ${run.id}`)
    t.is(waits.length, 1)
    await happened(true)
    t.deepEqual(await trailOf(services, (await at('paid', 'COMPLETED')).id), WOKEN)
  })
}

test('what a run begins with does not end its wait for such an event, a second one does', async (t) => {
  const type = 'BEGINS_AGAIN'
  const { id } = await publish(services, tenant, {
    steps: [
      step('start', 'TRIGGER', { type: 'EVENT', eventType: type }),
      step('again', 'WAIT_UNTIL', { mode: 'EVENT', eventType: type, scope: 'RUN', onTimeout: 'CONTINUE' }),
    ],
    edges: edges(['start', 'again']),
  })
  const subscriberId = await tenant.subscribe()
  const happened = () => tenant.within((call) => recordEvents(call, [{ subscriberId, type }]))
  const run = (status: string) =>
    eventually(`the run to be ${status}`, async () => {
      const [found] = await runsOf(services, tenant, id)
      return found?.status === status && (status === 'COMPLETED' || found.stepId === 'again') && found
    })
  await happened()
  await run('WAITING')
  await reconcile(services, 0)
  await run('WAITING')
  await happened()
  t.deepEqual(await trailOf(services, (await run('COMPLETED')).id), [
    'start ENTERED→next',
    'again EVENT→next',
  ])
  t.is((await runsOf(services, tenant, id)).length, 1)
})

// Serial tests run first. The other tests call the reconciler, which would repair what these check.
test.serial(
  'an event whose transaction is open while the wait begins wakes the run without the reconciler',
  async (t) => {
    const { subscriberId, automation, at, goOn } = await enter('RACE', 'RUN')
    await tenant.within(async (call) => {
      await recordEvents(call, [{ subscriberId, type: 'RACE' }])
      await goOn()
      const own = await row<{ pid: number }>(call.em, sql`select pg_backend_pid() as pid`)
      await eventually('the run to come to its wait', async () => {
        const blocked = await row(
          services.orm.em.fork(),
          sql`select 1 from pg_stat_activity
          where datname = current_database() and ${own?.pid ?? 0} = any(pg_blocking_pids(pid)) limit 1`,
        )
        const [run] = await runsOf(services, tenant, automation.id)
        return blocked !== null || run?.stepId === 'paid'
      })
    })
    t.deepEqual(await trailOf(services, (await at('paid', 'COMPLETED')).id), WOKEN)
  },
)

/**
 * Ways to record an event of a subscriber. Each prepares what it needs and returns the function that records the event.
 */
const TELLINGS: Record<string, (subscriberId: string) => Promise<(call: Call) => Promise<unknown>>> = {
  LATE: (subscriberId) => Promise.resolve((call) => recordEvents(call, [{ subscriberId, type: 'LATE' }])),
  async WORKFLOW_STARTED(subscriberId) {
    const place = await another(subscriberId)
    return (call) => enterByHand(call, place)
  },
  async WORKFLOW_CANCELED(subscriberId) {
    const place = await another(subscriberId)
    await tenant.within((call) => enterByHand(call, place))
    return (call) => removeFromWorkflow(call, place)
  },
}

/** Publishes a second workflow with a wait and returns the ids for entering it. */
async function another(subscriberId: string) {
  const { id } = await publish(services, tenant, {
    steps: [step('start', 'TRIGGER', { type: 'MANUAL' }), step('rest', 'WAIT', { amount: 1, unit: 'HOURS' })],
    edges: edges(['start', 'rest']),
  })
  return { workflowId: encodeId('wf', id), subscriberId: encodeId('sub', subscriberId) }
}

for (const [eventType, telling] of Object.entries(TELLINGS)) {
  test.serial(`${eventType}, coming while a wait for it is being written, sees the wait`, async (t) => {
    const { subscriberId, at, goOn } = await enter(eventType, 'STEP')
    const tell = await telling(subscriberId)
    await goOn()
    const { id } = await at('paid', 'WAITING')
    const wait = await row<{ conditions: unknown; visit: number }>(
      services.orm.em.fork(),
      sql`delete from run_wait where run_id = ${id} returning conditions, visit`,
    )
    let recording: Promise<unknown> = Promise.resolve()
    await tenant.within(async (call) => {
      // A run takes this lock when it writes its waits.
      await row(call.em, sql`select 1 from subscriber where id = ${subscriberId} for no key update`)
      const own = await row<{ pid: number }>(call.em, sql`select pg_backend_pid() as pid`)
      let isRecorded = false
      recording = tenant.within(tell).then(() => (isRecorded = true))
      await eventually('the event to wait for its turn', async () => {
        const blocked = await row(
          services.orm.em.fork(),
          sql`select 1 from pg_stat_activity
          where datname = current_database() and ${own?.pid ?? 0} = any(pg_blocking_pids(pid)) limit 1`,
        )
        return blocked !== null || isRecorded
      })
      await row(
        call.em,
        sql`insert into run_wait (organization_id, subscriber_id, event_type, run_id, visit, conditions)
        values (${tenant.id}, ${subscriberId}, ${eventType}, ${id}, ${wait?.visit ?? 0},
          ${JSON.stringify(wait?.conditions ?? {})}::jsonb) returning 1`,
      )
    })
    await recording
    t.deepEqual(await trailOf(services, (await at('paid', 'COMPLETED')).id), WOKEN)
  })
}

test('what a run did itself before it waited ends no wait of scope STEP', async (t) => {
  const automation = await publish(services, tenant, {
    steps: [
      step('start', 'TRIGGER', { type: 'MANUAL' }),
      step('tag', 'ADD_TAG', { tagNames: ['own'] }),
      step('wait', 'WAIT_UNTIL', {
        mode: 'EVENT',
        eventType: 'TAG_ADDED',
        where: [],
        scope: 'STEP',
        timeout: { amount: 1, unit: 'HOURS' },
        onTimeout: 'CONTINUE',
      }),
    ],
    edges: edges(['start', 'tag', 'wait']),
  })
  const subscriberId = await tenant.subscribe()
  const place = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', subscriberId) }
  await tenant.within((call) => enterByHand(call, place))
  const inState = (status: string) =>
    eventually(`the run ${status}`, async () => {
      const [run] = await runsOf(services, tenant, automation.id)
      return run?.status === status && run
    })
  await inState('WAITING')
  await reconcile(services, 0)
  await inState('WAITING')
  await tenant.within((call) => insertEvents(call, [{ subscriberId, type: 'TAG_ADDED' }]))
  await reconcile(services, 0)
  const { id } = await inState('COMPLETED')
  t.deepEqual(await trailOf(services, id), ['start ENTERED→next', 'tag DONE→next', 'wait EVENT→next'])
})

test('the reconciler counts events from the entry where the scope is RUN, for that run alone', async (t) => {
  const [ofRun, ofStep] = [await enter('MISSED', 'RUN'), await enter('MISSED', 'STEP')]
  for (const { subscriberId, at, goOn } of [ofRun, ofStep]) {
    await goOn()
    const run = await at('paid', 'WAITING')
    await tenant.within(async (call) => {
      const early = await row<{ id: string }>(
        call.em,
        sql`select id_floor(entered_at + interval '1 millisecond') as id from automation_run where id = ${run.id}`,
      )
      // The runs started at different times, so their events need different ids.
      await insertEvents(call, [{ subscriberId, type: 'MISSED', id: early?.id ?? '' }])
      await execute(
        call.em,
        sql`update subscriber_event event set created_at = run.entered_at + interval '1 millisecond'
          from automation_run run
          where run.id = ${run.id} and event.id = ${early?.id}`,
      )
    })
  }
  await reconcile(services, 0)
  t.deepEqual(await trailOf(services, (await ofRun.at('paid', 'COMPLETED')).id), WOKEN)
  t.is((await ofStep.at('paid', 'WAITING')).status, 'WAITING')
})

const HEARD = 'HEARD'
const LISTENING: Record<string, Graph> = {
  'a wait of scope RUN': chain([listen('RUN')]),
  'a wait of scope STEP': chain([listen('STEP')]),
  'an exit rule': chain([REST], { exitRules: [{ id: 'heard', on: HEARD }] }),
  'a goal': {
    ...chain([REST]),
    successGoals: [
      { id: 'heard', name: 'Heard', event: HEARD, windowDays: 1, countFrom: 'ENTRY', exitOnReach: true },
    ],
  },
}

function listen(scope: 'RUN' | 'STEP') {
  return step('heard', 'WAIT_UNTIL', { mode: 'EVENT', eventType: HEARD, scope, onTimeout: 'CONTINUE' })
}

/**
 * Begins a transaction, lets a subscriber enter the graph, and then calls `tell` in the transaction. With `isBefore`,
 * the run takes no step until the transaction has committed.
 */
async function enterWithin(
  graph: Graph,
  isBefore: boolean,
  tell: (call: Call, subscriberId: string) => Promise<unknown>,
) {
  const subscriberId = await tenant.subscribe()
  const { id } = await publish(services, tenant, graph)
  const state = (isSo: (run: RunRow) => boolean) =>
    eventually('the run to come so far', async () => {
      const [run] = await runsOf(services, tenant, id)
      return run && isSo(run) && run
    })
  await tenant.within(async (call) => {
    if (isBefore) await row(call.em, sql`select 1 from subscriber where id = ${subscriberId} for share`)
    const isLater = () =>
      row(call.em, sql`select 1 where clock_timestamp() > now() + interval '2 milliseconds'`)
    await eventually('a later moment', isLater)
    const place = { workflowId: encodeId('wf', id), subscriberId: encodeId('sub', subscriberId) }
    await tenant.within((beside) => enterByHand(beside, place))
    if (!isBefore) await state(({ status }) => status === 'WAITING')
    await tell(call, subscriberId)
  })
  return state
}

for (const [name, graph] of Object.entries(LISTENING)) {
  test(`${name} hears an event whose transaction began before the entry and told nobody of it`, async (t) => {
    // Inserts the event directly, as delivery does.
    const state = await enterWithin(graph, false, (call, subscriberId) =>
      execute(
        call.em,
        sql`insert into subscriber_event (id, organization_id, subscriber_id, type)
          select new_id(), ${tenant.id}, ${subscriberId}, ${HEARD}`,
      ),
    )
    await reconcile(services, 0)
    t.truthy(await state(({ status }) => status === 'COMPLETED' || status === 'CANCELED'))
  })

  if (graph === LISTENING['a wait of scope STEP']) continue
  test(`${name} hears an event whose transaction began before the entry and ended before the first step`, async (t) => {
    const state = await enterWithin(graph, true, (call, subscriberId) =>
      recordEvents(call, [{ subscriberId, type: HEARD }]),
    )
    t.truthy(await state(({ status }) => status === 'COMPLETED' || status === 'CANCELED'))
  })
}

test('what lets a run in by another transaction is what it begins with, whichever of the two began first', async (t) => {
  const first = await publish(services, tenant, chain([REST]))
  const ended = {
    type: 'WORKFLOW_EVENT',
    workflowId: encodeId('wf', first.id),
    event: 'WORKFLOW_CANCELED',
  } as const
  const steps = [step('start', 'TRIGGER', ended), REST]
  const exitRules = [{ id: 'again', on: 'WORKFLOW_CANCELED' }]
  const second = await publish(services, tenant, {
    steps,
    edges: edges(['start', 'rest']),
    settings: { exitRules },
  })
  const subscriberId = await tenant.subscribe()
  const place = { workflowId: encodeId('wf', first.id), subscriberId: encodeId('sub', subscriberId) }
  await tenant.within((call) => enterByHand(call, place))
  await tenant.within(async (call) => {
    await tenant.within((beside) => removeFromWorkflow(beside, place))
    await fireEchoes(call)
  })
  await eventually('the first turn of the run', async () => {
    const [run] = await runsOf(services, tenant, second.id)
    return run && run.status !== 'QUEUED'
  })
  t.like((await runsOf(services, tenant, second.id))[0], { status: 'WAITING', exitReason: null })
})
