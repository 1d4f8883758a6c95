import test from 'ava'
import { sql } from 'kysely'

import type { Settings, Step } from '../schema/automation.ts'
import { Failure } from '../src/catalogue/failure.ts'
import { execute, rows } from '../src/database.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { archiveRuns } from '../src/domain/automations/runs/archive.ts'
import {
  removeFromWorkflow,
  requestFastForward,
  type Moved,
  settleFastForward,
} from '../src/domain/automations/runs/run-control.ts'
import { listRuns, readTimeline } from '../src/domain/automations/runs/run-records.ts'
import { resumeHeldRuns } from '../src/domain/automations/runs/runs.ts'
import { recordEvents } from '../src/domain/events.ts'
import { addTags } from '../src/domain/subscribers/tags.ts'
import { encodeId, newId } from '../src/ids.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { reconcile } from '../worker/reconciler.ts'
import {
  decisionsOf,
  edges,
  emailStep,
  makeTenant,
  passWait,
  publish,
  runsOf,
  step,
  type Tenant,
  trailOf,
} from './helpers/automation.ts'
import { type TestServices, whileRefused } from './helpers/database.ts'
import { type EngineWorld, openEngine, TAGGED } from './helpers/engine.ts'
import { eventually } from './helpers/eventually.ts'
import { inTurns } from './helpers/in-turns.ts'
import type { Sink } from './helpers/smtp-sink.ts'

let world: EngineWorld
let services: TestServices
let sink: Sink
let tenant: Tenant

test.before(async () => {
  world = await openEngine('engine')
  ;({ services, sink, tenant } = world)
})
test.after.always(() => world?.close())

const START = step('start', 'TRIGGER', { type: 'SUBSCRIBED' })
const LONG_WAIT = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })

function chain(steps: Step[], settings: Partial<Settings> = {}) {
  return { steps, edges: edges(steps.map(({ id }) => id)), settings }
}

async function setStatus(automationId: string, status: string): Promise<void> {
  await tenant.within(async (call) => {
    await execute(call.em, sql`update automation set status = ${status} where id = ${automationId}`)
    if (status === 'ACTIVE') await resumeHeldRuns(call, automationId)
    if (status === 'ARCHIVED') await archiveRuns(call, automationId)
  })
}

/** Fast-forwards as clients do: while the outcome is unknown, repeats the call with the same step. */
async function fastForward(
  automationId: string,
  subscriberId: string,
  more: { expectedStepId?: string; runId?: string } = {},
): Promise<Moved> {
  const input = {
    workflowId: encodeId('wf', automationId),
    subscriberId: encodeId('sub', subscriberId),
    ...more,
  }
  const { data, call } = await tenant.within(async (within) => ({
    data: await requestFastForward(within, input),
    call: { organization: within.organization, actor: within.actor, services },
  }))
  try {
    return await settleFastForward(call, data)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'UNAVAILABLE') throw error
    return await fastForward(automationId, subscriberId, { ...more, expectedStepId: data.fromStep.id })
  }
}

async function refusal(work: Promise<unknown>): Promise<Failure> {
  const error: unknown = await work.then(
    () => null,
    (caught: unknown) => caught,
  )
  if (error instanceof Failure) return error
  throw new Error('it was not refused', { cause: error })
}

test('a run tags, waits, branches, untags and exits', async (t) => {
  const automation = await publish(services, tenant, {
    steps: [
      step('start', 'TRIGGER', { type: 'EVENT', eventType: 'WALK' }),
      step('tag', 'ADD_TAG', { tagNames: ['Welcomed'] }),
      step('rest', 'WAIT', { amount: 1, unit: 'SECONDS' }),
      step('fork', 'BRANCH', {
        paths: [{ id: 'tagged', filters: [{ field: 'tags', operator: 'has_any', value: ['welcomed'] }] }],
      }),
      step('untag', 'REMOVE_TAG', { tagNames: ['welcomed'] }),
      step(
        'never',
        'ADD_TAG',
        { tagNames: ['never'] },
        { conditions: [{ field: 'tags', operator: 'has_any', value: ['welcomed'] }] },
      ),
      step('out', 'EXIT', { reason: 'done' }),
    ],
    edges: edges(
      ['start', 'tag', 'rest', 'fork'],
      ['fork', 'tagged', 'untag'],
      ['untag', 'next', 'never'],
      ['never', 'next', 'out'],
    ),
  })
  await world.happened(await tenant.subscribe(), 'WALK')
  const run = await world.runWhen(automation.id, { status: 'COMPLETED' })
  t.is(run.exitReason, 'EXIT_STEP')
  t.deepEqual(await trailOf(services, run.id), [
    'start ENTERED→next',
    'tag DONE→next',
    'rest ELAPSED→next',
    'fork DECIDED→tagged',
    'untag DONE→next',
    'never SKIPPED→next',
    'out EXIT',
  ])
  t.deepEqual(await decisionsOf(services, automation.id), ['STEP_SKIPPED CONDITIONS'])
  const causes = await rows<{ cause: object }>(
    services.orm.em.fork(),
    sql`select cause from subscriber_event where type in ('TAG_ADDED', 'TAG_REMOVED')
      and cause ->> 'id' = ${encodeId('run', run.id)}`,
  )
  t.deepEqual(
    causes.map(({ cause }) => cause),
    Array.from({ length: 2 }, () => ({
      kind: 'run',
      id: encodeId('run', run.id),
      name: 'workflow run',
      depth: 0,
    })),
  )
})

test('an email goes out once, and the run goes on when it has its outcome', async (t) => {
  const automation = await publish(
    services,
    tenant,
    chain([step('start', 'TRIGGER', { type: 'EVENT', eventType: 'MAIL' }), emailStep('hello'), TAGGED]),
  )
  const subscriberId = await tenant.subscribe('mail@reader.example')
  await world.happened(subscriberId, 'MAIL')
  const run = await world.runWhen(automation.id, { status: 'COMPLETED', exitReason: 'END' })
  t.deepEqual(await trailOf(services, run.id), ['start ENTERED→next', 'hello SENT→next', 'tag DONE→next'])
  t.is(sink.accepted().filter(({ recipient }) => recipient === 'mail@reader.example').length, 1)
})

test('an email to somebody who is not subscribed is skipped with its reason, and the run goes on', async (t) => {
  const automation = await publish(
    services,
    tenant,
    chain([step('start', 'TRIGGER', { type: 'EVENT', eventType: 'SKIP' }), emailStep('hello'), TAGGED]),
  )
  const subscriberId = await tenant.subscribe('skip@reader.example')
  await execute(
    services.orm.em.fork(),
    sql`update subscriber set status = 'UNSUBSCRIBED' where id = ${subscriberId}`,
  )
  await world.happened(subscriberId, 'SKIP')
  const run = await world.runWhen(automation.id, { status: 'COMPLETED' })
  t.deepEqual(await trailOf(services, run.id), ['start ENTERED→next', 'hello SKIPPED→next', 'tag DONE→next'])
  t.deepEqual(await decisionsOf(services, automation.id), ['SEND_EMAIL UNSUBSCRIBED'])
  t.is(sink.accepted().filter(({ recipient }) => recipient === 'skip@reader.example').length, 0)
})

test('a filter that reads the event judges each of many events by itself', async (t) => {
  const { id } = await publish(
    services,
    tenant,
    chain(
      [
        step('start', 'TRIGGER', {
          type: 'EVENT',
          eventType: 'SUBSCRIBER_REFUND',
          filters: [{ field: 'entry.amount', operator: 'gte', value: 100 }],
        }),
        LONG_WAIT,
      ],
      { reEntry: { mode: 'EVERY_TIME' } },
    ),
  )
  const [ann, bob] = [await tenant.subscribe(), await tenant.subscribe()]
  const refund = (subscriberId: string, amount: number) => ({
    subscriberId,
    type: 'SUBSCRIBER_REFUND',
    data: { amount },
  })
  await tenant.within((call) =>
    recordEvents(call, [refund(ann, 50), refund(bob, 100), refund(ann, 250), refund(bob, 99)]),
  )
  const runs = await rows<{ subscriberId: string }>(
    services.orm.em.fork(),
    sql`select subscriber_id as "subscriberId" from automation_run where automation_id = ${id} order by id`,
  )
  t.deepEqual(runs.map(({ subscriberId }) => subscriberId).toSorted(), [ann, bob].toSorted())
  t.deepEqual(await decisionsOf(services, id), ['ENTRY_REFUSED FILTERS', 'ENTRY_REFUSED FILTERS'])
})

test('triggers match tags by any letter case and events by their conditions; filters keep others out', async (t) => {
  const byTag = await publish(
    services,
    tenant,
    chain([step('start', 'TRIGGER', { type: 'TAG_ADDED', tagNames: ['VIP'] }), TAGGED]),
  )
  const byEvent = await publish(
    services,
    tenant,
    chain([
      step('start', 'TRIGGER', {
        type: 'EVENT',
        eventType: 'ORDER',
        where: [{ path: 'amount', operator: 'gte', value: 10 }],
        filters: [{ field: 'email.domain', operator: 'equals', value: 'buyer.example' }],
      }),
      TAGGED,
    ]),
  )
  const buyer = await tenant.subscribe('one@buyer.example')
  const other = await tenant.subscribe()
  await tenant.within((call) => addTags(call, [buyer], ['vip']))
  await world.happened(buyer, 'ORDER', { amount: 5 })
  await world.happened(buyer, 'ORDER', { amount: 50 })
  await world.happened(other, 'ORDER', { amount: 50 })
  t.is((await runsOf(services, tenant, byTag.id)).length, 1)
  t.is((await runsOf(services, tenant, byEvent.id)).length, 1)
  t.deepEqual(await decisionsOf(services, byEvent.id), ['ENTRY_REFUSED OTHER_DATA', 'ENTRY_REFUSED FILTERS'])
})

// Serial, because it occupies all connections that concurrent tests share.
test.serial('1,000 entries, many at the same time, make one run', async (t) => {
  const automation = await publish(
    services,
    tenant,
    chain([step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT]),
  )
  const subscriberId = await tenant.subscribe()
  const input = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', subscriberId) }
  const enter = () =>
    tenant
      .within((call) => enterByHand(call, input))
      .then(
        () => 'entered',
        (error: unknown) => (error instanceof Failure ? error.code : String(error)),
      )
  const results = await inTurns(Array.from({ length: 1_000 }), enter)
  t.is(results.filter((result) => result === 'entered').length, 1)
  t.is(results.filter((result) => result === 'WRONG_STATE').length, 999)
  t.is((await runsOf(services, tenant, automation.id)).length, 1)
})

test('re-entry decides who may come again', async (t) => {
  const enter = async (reEntry: Settings['reEntry'], times: Record<string, unknown>[]) => {
    const automation = await publish(
      services,
      tenant,
      chain([step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT], reEntry ? { reEntry } : {}),
    )
    const subscriberId = await tenant.subscribe()
    const reasons: unknown[] = []
    for (const context of times) {
      const input = {
        workflowId: encodeId('wf', automation.id),
        subscriberId: encodeId('sub', subscriberId),
        context,
      }
      reasons.push(
        await tenant
          .within((call) => enterByHand(call, input))
          .then(
            () => 'in',
            (error: unknown) => (error instanceof Failure ? Object(error.details).reason : error),
          ),
      )
      if (context['leave'] === true) await tenant.within((call) => removeFromWorkflow(call, input))
    }
    const refused = reasons.filter((reason) => reason !== 'in')
    t.deepEqual(
      (await decisionsOf(services, automation.id)).filter((each) => each !== 'RUN_ENDED MANUAL'),
      refused.map((reason) => `ENTRY_REFUSED ${String(reason)}`),
    )
    return reasons
  }
  t.deepEqual(await enter({ mode: 'ONCE' }, [{ leave: true }, {}]), ['in', 'ALREADY_ENTERED'])
  t.deepEqual(await enter(undefined, [{ leave: true }, {}, {}]), ['in', 'in', 'ALREADY_ACTIVE'])
  t.deepEqual(await enter({ mode: 'EVERY_TIME', maxEntries: 2 }, [{}, {}, {}]), ['in', 'in', 'MAX_ENTRIES'])
  t.deepEqual(
    await enter({ mode: 'PER_KEY', keyPath: 'order.id' }, [
      { order: { id: 1 } },
      { order: { id: 1 } },
      { order: { id: 2 } },
      {},
    ]),
    ['in', 'ALREADY_ACTIVE', 'in', 'NO_KEY'],
  )
  const items = (...ids: number[]) => ({ items: ids.map((id) => ({ id })) })
  t.deepEqual(
    await enter({ mode: 'PER_KEY', keyPath: 'items.0.id' }, [items(1), items(1, 2), items(2), items()]),
    ['in', 'ALREADY_ACTIVE', 'in', 'NO_KEY'],
  )
  t.deepEqual(
    await enter({ mode: 'AFTER_EXIT', cooldown: { amount: 1, unit: 'HOURS' } }, [{ leave: true }, {}]),
    ['in', 'COOLDOWN'],
  )
})

test('nobody enters by AFTER_EXIT beside a run that an earlier version let in by another mode', async (t) => {
  const earlier: [Settings['reEntry'], Record<string, unknown>][] = [
    [{ mode: 'PER_KEY', keyPath: 'order' }, { order: 1 }],
    [{ mode: 'EVERY_TIME' }, {}],
  ]
  const steps = [step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT]
  for (const [reEntry, context] of earlier) {
    const { id } = await publish(services, tenant, chain(steps, { ...(reEntry && { reEntry }) }))
    const who = {
      workflowId: encodeId('wf', id),
      subscriberId: encodeId('sub', await tenant.subscribe()),
    }
    const enter = () => tenant.within((call) => enterByHand(call, { ...who, context }))
    await enter()
    await publish(services, tenant, chain(steps, { reEntry: { mode: 'AFTER_EXIT' } }), {
      automationId: id,
      number: 2,
    })
    t.deepEqual((await refusal(enter())).details, { reason: 'ALREADY_ACTIVE' })
    await tenant.within((call) => removeFromWorkflow(call, who))
    t.is((await enter()).version.number, 2)
  }
})

test('a wait for an event ends with the event, by its conditions, or by its time-out', async (t) => {
  const wait = (id: string, eventType: string, seconds: number) =>
    step(id, 'WAIT_UNTIL', {
      mode: 'EVENT',
      eventType,
      where: [{ path: 'amount', operator: 'gte', value: 10 }],
      scope: 'STEP',
      timeout: { amount: seconds, unit: 'SECONDS' },
      onTimeout: 'CONTINUE',
    })
  const automation = await publish(services, tenant, {
    steps: [
      step('start', 'TRIGGER', { type: 'EVENT', eventType: 'BEGIN' }),
      wait('paid', 'PAID', 3600),
      wait('again', 'AGAIN', 1),
      TAGGED,
      step('late', 'EXIT', {}),
    ],
    edges: edges(['start', 'paid', 'again', 'tag'], ['again', 'timeout', 'late']),
  })
  const subscriberId = await tenant.subscribe()
  await world.happened(subscriberId, 'BEGIN')
  await world.runWhen(automation.id, { status: 'WAITING', stepId: 'paid' })
  await world.happened(subscriberId, 'PAID', { amount: 5 })
  await world.happened(subscriberId, 'PAID', { amount: 20 })
  const run = await world.runWhen(automation.id, { status: 'COMPLETED' })
  t.deepEqual(await trailOf(services, run.id), [
    'start ENTERED→next',
    'paid EVENT→next',
    'again TIMEOUT→timeout',
    'late EXIT',
  ])
  t.deepEqual(await rows(services.orm.em.fork(), sql`select 1 from run_wait where run_id = ${run.id}`), [])
})

test('a paused workflow holds its runs, counts their waits, and lets them go on when it is active again', async (t) => {
  const automation = await publish(
    services,
    tenant,
    chain([step('start', 'TRIGGER', { type: 'EVENT', eventType: 'PAUSE' }), LONG_WAIT, TAGGED]),
  )
  const subscriberId = await tenant.subscribe()
  await world.happened(subscriberId, 'PAUSE')
  const { id: runId } = await world.runWhen(automation.id, { status: 'WAITING' })
  await setStatus(automation.id, 'PAUSED')
  await passWait(services, tenant, runId)
  await world.runWhen(automation.id, { status: 'WAITING', held: true })
  t.is((await refusal(fastForward(automation.id, subscriberId))).code, 'WRONG_STATE')
  const late = await tenant.subscribe()
  await world.happened(late, 'PAUSE')
  const input = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', late) }
  t.is((await refusal(tenant.within((call) => enterByHand(call, input)))).code, 'WRONG_STATE')
  t.is((await runsOf(services, tenant, automation.id)).length, 1)
  t.deepEqual(await decisionsOf(services, automation.id), [
    'STEP_DEFERRED PAUSED',
    'ENTRY_REFUSED PAUSED',
    'ENTRY_REFUSED PAUSED',
  ])
  await setStatus(automation.id, 'ACTIVE')
  const run = await world.runWhen(automation.id, { status: 'COMPLETED', held: false })
  t.deepEqual(await trailOf(services, run.id), ['start ENTERED→next', 'pause ELAPSED→next', 'tag DONE→next'])
})

// Serial, because the locks of its trigger would be in the way of other decisions.
test.serial(
  'a refusal reaches the caller when the decision that explains it cannot be written',
  async (t) => {
    const automation = await publish(
      services,
      tenant,
      chain([step('start', 'TRIGGER', { type: 'MANUAL' }), TAGGED]),
    )
    await setStatus(automation.id, 'PAUSED')
    const subscriberId = await tenant.subscribe()
    const em = services.orm.em.fork()
    await execute(
      em,
      sql`create function fail_decision() returns trigger language plpgsql as $fn$ begin raise 'no'; end $fn$`,
    )
    await execute(
      em,
      sql`create trigger fail_decision before insert on decision for each row
      when (new.subscriber_id = '${sql.raw(subscriberId)}') execute function fail_decision()`,
    )
    t.teardown(async () => await execute(em, sql`drop function fail_decision cascade`))
    const input = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', subscriberId) }
    t.is((await refusal(tenant.within((call) => enterByHand(call, input)))).code, 'WRONG_STATE')
    t.deepEqual(await decisionsOf(services, automation.id), [])
  },
)

test('archiving, removing and unsubscribing end a run in the middle of its wait', async (t) => {
  const parked = async (settings: Partial<Settings> = {}) => {
    const automation = await publish(
      services,
      tenant,
      chain([step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT], settings),
    )
    const subscriberId = await tenant.subscribe()
    const input = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', subscriberId) }
    await tenant.within((call) => enterByHand(call, input))
    await world.runWhen(automation.id, { status: 'WAITING' })
    return { automation, subscriberId, input }
  }
  const archived = await parked()
  await setStatus(archived.automation.id, 'ARCHIVED')
  await world.runWhen(archived.automation.id, { status: 'CANCELED', exitReason: 'ARCHIVED' })

  const removed = await parked()
  const runs = await tenant.within((call) => removeFromWorkflow(call, { ...removed.input, reason: 'asked' }))
  t.is(runs[0]?.exitReason, 'MANUAL')
  t.deepEqual(await tenant.within((call) => removeFromWorkflow(call, removed.input)), [])

  const left = await parked()
  const staying = await parked({ exitOnUnsubscribe: false })
  await world.happened(left.subscriberId, 'UNSUBSCRIBED')
  await world.happened(staying.subscriberId, 'UNSUBSCRIBED')
  await world.runWhen(left.automation.id, { status: 'CANCELED', exitReason: 'UNSUBSCRIBED' })
  t.is((await runsOf(services, tenant, staying.automation.id))[0]?.status, 'WAITING')

  const client = await services.temporal.client()
  for (const { automation, subscriberId } of [archived, removed, left]) {
    const handle = client.workflow.getHandle(
      runWorkflowId(encodeId('wf', automation.id), encodeId('sub', subscriberId), 1),
    )
    t.like(await handle.result(), { state: 'CANCELED' })
  }
})

test('a fast-forward answers after the run moved; asked often at once, each wait ends once', async (t) => {
  const automation = await publish(
    services,
    tenant,
    chain([
      step('start', 'TRIGGER', { type: 'EVENT', eventType: 'HURRY' }),
      LONG_WAIT,
      step('second', 'WAIT', { amount: 2, unit: 'DAYS' }),
      TAGGED,
    ]),
  )
  const subscribers = await Promise.all(Array.from({ length: 10 }, () => tenant.subscribe()))
  await tenant.within((call) =>
    recordEvents(
      call,
      subscribers.map((subscriberId) => ({ subscriberId, type: 'HURRY' })),
    ),
  )
  await eventually('all to wait', async () =>
    (await runsOf(services, tenant, automation.id)).every(({ status }) => status === 'WAITING'),
  )
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      fastForward(automation.id, subscribers[index % 10] ?? '', { expectedStepId: 'pause' }),
    ),
  )
  for (const { fromStep, toStep, run } of answers) {
    t.is(fromStep.id, 'pause')
    t.is(toStep?.id, 'second')
    t.is(run.currentStep?.id, 'second')
  }
  for (const run of await runsOf(services, tenant, automation.id)) {
    t.deepEqual(await trailOf(services, run.id), [
      'start ENTERED→next',
      'pause FAST_FORWARD→next',
      'second WAITING',
    ])
  }
  const ended = await fastForward(automation.id, subscribers[0] ?? '')
  t.is(ended.toStep, null)
  t.is(ended.run.status, 'COMPLETED')
  t.is((await refusal(fastForward(automation.id, subscribers[0] ?? ''))).code, 'WRONG_STATE')
  t.is(
    (await refusal(fastForward(automation.id, subscribers[1] ?? '', { expectedStepId: 'tag' }))).code,
    'WRONG_STATE',
  )
})

test('a step that fails ends the run, unless the step says otherwise', async (t) => {
  const gone: Step['conditions'] = [{ field: 'tags', operator: 'has_any', value: ['a tag that nobody made'] }]
  const outcome = async (onError: Step['onError']) => {
    const automation = await publish(
      services,
      tenant,
      chain([
        step('start', 'TRIGGER', { type: 'MANUAL' }),
        step('broken', 'ADD_TAG', { tagNames: ['x'] }, { conditions: gone, onError }),
        TAGGED,
      ]),
    )
    const input = {
      workflowId: encodeId('wf', automation.id),
      subscriberId: encodeId('sub', await tenant.subscribe()),
    }
    await tenant.within((call) => enterByHand(call, input))
    const run = await eventually('the end', async () =>
      (await runsOf(services, tenant, automation.id)).find(({ exitReason }) => exitReason !== null),
    )
    return [run.status, run.exitReason, ...(await trailOf(services, run.id)).slice(1)]
  }
  t.deepEqual(await outcome('FAIL'), ['FAILED', 'ERROR', 'broken FAILED'])
  t.deepEqual(await outcome('EXIT'), ['COMPLETED', 'ERROR', 'broken FAILED'])
  t.deepEqual(await outcome('CONTINUE'), ['COMPLETED', 'END', 'broken FAILED→next', 'tag DONE→next'])
})

test('a writing step that is refused leaves nothing behind, and the steps around it are done once', async (t) => {
  const automation = await publish(
    services,
    tenant,
    chain([
      step('start', 'TRIGGER', { type: 'MANUAL' }),
      step('before', 'ADD_TAG', { tagNames: ['before the refusal'] }),
      // Tools accept no definition with an empty tag name.
      step('refused', 'ADD_TAG', { tagNames: ['never given', ' '] }, { onError: 'CONTINUE' }),
      step('again', 'REMOVE_TAG', { tagNames: [''] }, { onError: 'CONTINUE' }),
      step('after', 'ADD_TAG', { tagNames: ['after the refusal'] }),
    ]),
  )
  const subscriberId = await tenant.subscribe()
  const input = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', subscriberId) }
  await tenant.within((call) => enterByHand(call, input))
  const run = await world.runWhen(automation.id, { status: 'COMPLETED' })
  t.deepEqual((await trailOf(services, run.id)).slice(1), [
    'before DONE→next',
    'refused FAILED→next',
    'again FAILED→next',
    'after DONE→next',
  ])
  const events = await rows<{ tag: string }>(
    services.orm.em.fork(),
    sql`select data ->> 'tag' as tag from subscriber_event
      where subscriber_id = ${subscriberId} and type = 'TAG_ADDED' order by id`,
  )
  t.deepEqual(
    events.map(({ tag }) => tag),
    ['before the refusal', 'after the refusal'],
  )
  const failures = await rows(
    services.orm.em.fork(),
    sql`select 1 from decision where run_id = ${run.id} and action = 'STEP_FAILED'`,
  )
  t.is(failures.length, 2)
})

test('entering by hand is refused for workflows that are not active, foreign ids and unknown steps', async (t) => {
  const draft = await publish(services, tenant, chain([START, TAGGED]), { status: 'PAUSED' })
  const automation = await publish(
    services,
    tenant,
    chain([step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT, TAGGED]),
  )
  const other = await makeTenant(services)
  const subscriberId = encodeId('sub', await tenant.subscribe())
  const foreign = encodeId('sub', await other.subscribe())
  const workflowId = encodeId('wf', automation.id)
  const enter = (input: Parameters<typeof enterByHand>[1], who = tenant) =>
    who.within((call) => enterByHand(call, input))
  t.is((await refusal(enter({ workflowId: encodeId('wf', draft.id), subscriberId }))).code, 'WRONG_STATE')
  t.is((await refusal(enter({ workflowId, subscriberId: foreign }))).code, 'NOT_FOUND')
  t.is((await refusal(enter({ workflowId, subscriberId: foreign }, other))).code, 'NOT_FOUND')
  t.is((await refusal(enter({ workflowId: encodeId('wf', newId()), subscriberId }))).code, 'NOT_FOUND')
  t.is((await refusal(enter({ workflowId, subscriberId, startStepId: 'nowhere' }))).code, 'INVALID_INPUT')
  const run = await enter({ workflowId, subscriberId, startStepId: 'tag' })
  await world.runWhen(automation.id, { status: 'COMPLETED' })
  const { timeline } = await tenant.within((call) => readTimeline(call, run.id))
  t.deepEqual(
    timeline.map(({ step: { id } }) => id),
    ['tag'],
  )
  t.is((await refusal(other.within((call) => readTimeline(call, run.id)))).code, 'NOT_FOUND')
  t.is((await refusal(fastForward(automation.id, newId()))).code, 'NOT_FOUND')
})

test('runs are listed newest first, in pages bound to their query', async (t) => {
  const automation = await publish(
    services,
    tenant,
    chain([step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT], { reEntry: { mode: 'EVERY_TIME' } }),
  )
  const subscriberId = encodeId('sub', await tenant.subscribe())
  const input = { workflowId: encodeId('wf', automation.id), subscriberId }
  for (let count = 0; count < 3; count++) await tenant.within((call) => enterByHand(call, input))
  const first = await tenant.within((call) => listRuns(call, { subscriberId, limit: 2 }))
  t.is(first.runs.length, 2)
  t.true(first.hasMore)
  const second = await tenant.within((call) =>
    listRuns(call, { subscriberId, limit: 2, cursor: first.nextCursor ?? '' }),
  )
  t.is(second.runs.length, 1)
  t.is(second.nextCursor, null)
  t.true((second.runs[0]?.id ?? '') < (first.runs[1]?.id ?? ''))
  t.regex(first.runs[0]?.temporalUrl ?? '', /\/workflows\/run%2Fwf_/)
  const other = tenant.within((call) =>
    listRuns(call, { subscriberId, limit: 2, status: 'FAILED', cursor: first.nextCursor ?? '' }),
  )
  t.is((await refusal(other)).code, 'INVALID_INPUT')
  await tenant.within((call) => removeFromWorkflow(call, input))
})

test('Temporal finds the runs of a subscriber and says where they stand', async (t) => {
  const automation = await publish(
    services,
    tenant,
    chain([step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT]),
    { name: 'Log book' },
  )
  const subscriberId = encodeId('sub', await tenant.subscribe())
  await tenant.within((call) =>
    enterByHand(call, { workflowId: encodeId('wf', automation.id), subscriberId }),
  )
  const client = await services.temporal.client()
  const found = await eventually('the run in the list', async () => {
    for await (const each of client.workflow.list({
      query: `SubscriberId='${subscriberId}' and RunState='WAITING'`,
    }))
      return each
    return null
  })
  t.is(found.type, 'AutomationRun')
  const described = await client.workflow.getHandle(found.workflowId).describe()
  t.is(await described.staticSummary(), `Log book v1 · ${subscriberId}`)
  const history = JSON.stringify(await client.workflow.getHandle(found.workflowId).fetchHistory())
  t.false(history.includes('reader.example'))
})

test('a run whose workflow is gone is closed or gets one again', async (t) => {
  const graph = chain([step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT, TAGGED])
  const park = async () => {
    const automation = await publish(services, tenant, graph)
    const subscriberId = await tenant.subscribe()
    const ids = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', subscriberId) }
    await tenant.within((call) => enterByHand(call, ids))
    const { id } = await world.runWhen(automation.id, { status: 'WAITING' })
    const client = await services.temporal.client()
    return {
      automation,
      client,
      becomeOverdue: () =>
        execute(
          services.orm.em.fork(),
          sql`update automation_run set wake_at = now() - interval '1 hour' where id = ${id}`,
        ),
      handle: client.workflow.getHandle(runWorkflowId(ids.workflowId, ids.subscriberId, 1)),
    }
  }
  const terminated = await park()
  await terminated.handle.terminate('by an operator')
  const lost = await park()
  await lost.client.workflowService.deleteWorkflowExecution({
    namespace: services.config.temporal.namespace,
    workflowExecution: { workflowId: lost.handle.workflowId },
  })
  for (const each of [terminated, lost]) await each.becomeOverdue()
  await eventually('both to be put right', async () => {
    await reconcile(services, 0)
    const [one] = await runsOf(services, tenant, terminated.automation.id)
    const [other] = await runsOf(services, tenant, lost.automation.id)
    return one?.status === 'CANCELED' && other?.status === 'COMPLETED'
  })
  const canceled = await park()
  await canceled.handle.cancel()
  t.is((await world.runWhen(canceled.automation.id, { status: 'CANCELED' })).exitReason, 'MANUAL')
})

test('a run that gets its workflow again knows how late it is', async (t) => {
  const lateSend = { maxLateness: { amount: 1, unit: 'HOURS' as const }, action: 'SKIP' as const }
  const steps = [step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT, emailStep('hello')]
  const automation = await publish(services, tenant, chain(steps, { lateSend }))
  const ids = {
    workflowId: encodeId('wf', automation.id),
    subscriberId: encodeId('sub', await tenant.subscribe()),
  }
  await tenant.within((call) => enterByHand(call, ids))
  const { id } = await world.runWhen(automation.id, { status: 'WAITING' })
  const client = await services.temporal.client()
  await client.workflowService.deleteWorkflowExecution({
    namespace: services.config.temporal.namespace,
    workflowExecution: { workflowId: runWorkflowId(ids.workflowId, ids.subscriberId, 1) },
  })
  await execute(
    services.orm.em.fork(),
    sql`update automation_run set wake_at = now() - interval '5 hours' where id = ${id}`,
  )
  await eventually('it to be put right', async () => {
    await reconcile(services, 0)
    const [run] = await runsOf(services, tenant, automation.id)
    return run?.status === 'COMPLETED'
  })
  t.deepEqual((await trailOf(services, id)).slice(-1), ['hello SKIPPED→next'])
})

test.serial('what cannot be put right in one organization keeps no other waiting', async (t) => {
  const graph = chain([step('start', 'TRIGGER', { type: 'MANUAL' }), LONG_WAIT])
  const lose = async (owner: Tenant) => {
    const { id } = await publish(services, owner, graph)
    const ids = { workflowId: encodeId('wf', id), subscriberId: encodeId('sub', await owner.subscribe()) }
    await owner.within((call) => enterByHand(call, ids))
    const [run] = await eventually('a run that waits', async () => {
      const found = await runsOf(services, owner, id)
      return found[0]?.status === 'WAITING' && found
    })
    const client = await services.temporal.client()
    await client.workflow.getHandle(runWorkflowId(ids.workflowId, ids.subscriberId, 1)).terminate()
    const em = services.orm.em.fork()
    await execute(
      em,
      sql`update automation_run set wake_at = now() - interval '1 hour' where id = ${run?.id}`,
    )
    return id
  }
  const [sick, well] = [await makeTenant(services), await makeTenant(services)]
  await lose(sick)
  const id = await lose(well)
  const refused = { write: 'update', table: 'automation_run', organizationId: sick.id } as const
  await whileRefused(services, refused, () => reconcile(services, 0))
  t.is((await runsOf(services, well, id))[0]?.status, 'CANCELED')
})
