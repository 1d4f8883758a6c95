import test from 'ava'
import { sql } from 'kysely'

import type { Settings } from '../schema/automation.ts'
import { CONFLICT_STRATEGIES, type ConflictStrategy, GROUP_LIMITS } from '../schema/workflow-group.ts'
import { Failure } from '../src/catalogue/failure.ts'
import type { Call } from '../src/catalogue/tool.ts'
import { execute, row, rows } from '../src/database.ts'
import { updateStatus } from '../src/domain/automations/definition/status.ts'
import { assignGroup } from '../src/domain/automations/groups/group-assignment.ts'
import { findStalePlaces } from '../src/domain/automations/groups/group-queue.ts'
import { createGroup } from '../src/domain/automations/groups/groups.ts'
import { catchMissedEvents } from '../src/domain/automations/runs/overdue.ts'
import { cancelRuns } from '../src/domain/automations/runs/runs.ts'
import { recordEvents } from '../src/domain/events.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { reconcile } from '../worker/reconciler.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import {
  decisionsOf,
  edges,
  makeTenant,
  publish,
  runsOf,
  step,
  type Tenant,
  trailOf,
} from './helpers/automation.ts'
import { testServices } from './helpers/database.ts'
import { eventually } from './helpers/eventually.ts'
import { inTurns } from './helpers/in-turns.ts'

let api: TestApi
let engine: Engine
let tenant: Tenant

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `groups-${process.pid}`, LOG_LEVEL: 'error' })
  engine = await startEngine(api.services)
  await engine.ready
  tenant = await makeTenant(api.services)
})
test.after.always(async () => {
  await engine?.stop()
  await api?.close()
})

const create = (organization: TestOrganization, input: object) =>
  organization.data('create_workflow_group', { name: 'Onboarding', conflictStrategy: 'FIRST_WINS', ...input })

/** Publishes a workflow that subscribers enter by an event of this type, and then wait in. */
async function waiting(
  eventType: string,
  groupId: string | null,
  settings: Partial<Settings> = {},
  successGoals: unknown[] = [],
): Promise<string> {
  const steps = [
    step('start', 'TRIGGER', { type: 'EVENT', eventType }),
    step('pause', 'WAIT_UNTIL', {
      mode: 'EVENT',
      eventType: `END_${eventType}`,
      scope: 'STEP',
      onTimeout: 'CONTINUE',
    }),
  ]
  const { id } = await publish(
    api.services,
    tenant,
    {
      steps,
      edges: edges(['start', 'pause']),
      settings: { reEntry: { mode: 'EVERY_TIME' }, ...settings },
      successGoals,
    },
    { name: eventType },
  )
  await assign(id, groupId)
  return id
}

async function assign(automationId: string, groupId: string | null): Promise<void> {
  await execute(
    api.services.orm.em.fork(),
    sql`update automation set group_id = ${groupId} where organization_id = ${tenant.id} and id = ${automationId}`,
  )
}

async function makeGroup(
  conflictStrategy: ConflictStrategy,
  maxQueueAge: object | null = null,
): Promise<string> {
  const id = newId()
  await execute(
    api.services.orm.em.fork(),
    sql`insert into automation_group (id, organization_id, name, conflict_strategy, max_queue_age)
      values (${id}, ${tenant.id}, ${id}, ${conflictStrategy}, ${maxQueueAge && JSON.stringify(maxQueueAge)}::jsonb)`,
  )
  return id
}

const happened = (subscriberId: string, type: string) =>
  tenant.within((call) => recordEvents(call, [{ subscriberId, type }]))

/** Waits until the runs of these workflows are as expected, each as "status exitReason". */
async function become(
  t: { deepEqual(one: unknown, other: unknown): unknown },
  expected: Record<string, string[]>,
) {
  const look = async () =>
    Object.fromEntries(
      await Promise.all(
        Object.keys(expected).map(async (id) => [
          id,
          (await runsOf(api.services, tenant, id)).map(({ status, exitReason }) =>
            `${status} ${exitReason ?? ''}`.trim(),
          ),
        ]),
      ),
    )
  await eventually(
    `runs like ${JSON.stringify(expected)}`,
    async () => JSON.stringify(await look()) === JSON.stringify(expected),
  ).catch(() => undefined)
  t.deepEqual(await look(), expected)
}

test('a group is made once for its name and strategy, read, renamed and listed', async (t) => {
  const organization = await api.organization()
  const { group } = await create(organization, {})
  t.like(group, { name: 'Onboarding', conflictStrategy: 'FIRST_WINS', maxQueueAge: null, workflows: [] })
  t.deepEqual(await create(organization, { name: 'ONBOARDING' }), { group })
  const other = await organization.call('create_workflow_group', {
    name: 'onboarding',
    conflictStrategy: 'QUEUE',
  })
  t.is(other.status, 409)
  t.is(other.body.code, 'ALREADY_EXISTS')
  t.regex(other.body.error, /There is a group "Onboarding" already \(grp_\w+, FIRST_WINS\)/)
  const maxQueueAge = { amount: 2, unit: 'DAYS' }
  const queue = (await create(organization, { name: 'Queue', conflictStrategy: 'QUEUE', maxQueueAge })).group
  t.deepEqual(queue.maxQueueAge, maxQueueAge)
  t.deepEqual((await create(organization, { name: 'Queue', conflictStrategy: 'QUEUE' })).group, queue)
  const longer = { name: 'Queue', conflictStrategy: 'QUEUE', maxQueueAge: { amount: 3, unit: 'DAYS' } }
  t.is((await organization.call('create_workflow_group', longer)).status, 409)
  const { groups } = await organization.data('list_workflow_groups', {})
  t.deepEqual(groups, [group, queue])

  const renamed = (await organization.data('update_workflow_group', { groupId: queue.id, name: 'Later' }))
    .group
  t.like(renamed, { name: 'Later', conflictStrategy: 'QUEUE', maxQueueAge })
  t.true(renamed.updatedAt > queue.updatedAt)
  const endless = await organization.data('update_workflow_group', { groupId: queue.id, maxQueueAge: null })
  t.is(endless.group.maxQueueAge, null)
  for (const tool of ['update_workflow_group', 'create_workflow_group']) {
    const refused = await organization.call(tool, {
      ...(tool === 'update_workflow_group'
        ? { groupId: queue.id }
        : { name: 'Ages', conflictStrategy: 'QUEUE' }),
      maxQueueAge: { amount: 262, unit: 'WEEKS' },
    })
    t.is(refused.status, 400, tool)
    t.is(refused.body.details[0].path, 'maxQueueAge.amount', tool)
  }
  const taken = await organization.call('update_workflow_group', { groupId: queue.id, name: 'onboarding' })
  t.is(taken.body.code, 'ALREADY_EXISTS')
  const changed = await organization.data('update_workflow_group', {
    groupId: queue.id,
    conflictStrategy: 'PRIORITY',
  })
  t.is(changed.group.conflictStrategy, 'PRIORITY')
  t.deepEqual(await organization.data('get_workflow_group', { groupId: queue.id }), changed)
})

test('a queue without QUEUE, a blank name and a name of many lines are refused', async (t) => {
  const organization = await api.organization()
  const maxQueueAge = { amount: 1, unit: 'DAYS' }
  for (const [input, path] of [
    [{ maxQueueAge }, 'maxQueueAge'],
    [{ name: '  ' }, 'name'],
    [{ name: 'a\nb' }, 'name'],
    [{ name: 'x'.repeat(201) }, 'name'],
  ] as const) {
    const answer = await organization.call('create_workflow_group', {
      name: 'Onboarding',
      conflictStrategy: 'FIRST_WINS',
      ...input,
    })
    t.is(answer.status, 400)
    t.is(answer.body.details[0].path, path)
  }
  const { group } = await create(organization, {})
  const queue = await organization.call('update_workflow_group', { groupId: group.id, maxQueueAge })
  t.is(queue.body.code, 'INVALID_INPUT')
})

test('an organization that has all the groups it may still gets the answer to a repeat', async (t) => {
  const organization = await api.organization()
  const { group } = await create(organization, {})
  await execute(
    api.services.orm.em.fork(),
    sql`insert into automation_group (id, organization_id, name, conflict_strategy)
      select new_id(), ${organization.id}, 'Group ' || n, 'QUEUE' from generate_series(2, ${GROUP_LIMITS.groups}::int) n`,
  )
  t.deepEqual(await create(organization, {}), { group })
  const another = { name: 'Another', conflictStrategy: 'QUEUE' }
  const refused = await organization.call('create_workflow_group', another)
  t.like(refused.body, { code: 'WRONG_STATE' })
  t.regex(refused.body.error, /at most 200 workflow groups/)
  t.is((await organization.data('list_workflow_groups', {})).groups.length, GROUP_LIMITS.groups)
})

test('simultaneous calls make no more groups than an organization may have', async (t) => {
  const busy = await makeTenant(api.services)
  const em = api.services.orm.em.fork()
  await execute(
    em,
    sql`insert into automation_group (id, organization_id, name, conflict_strategy)
      select new_id(), ${busy.id}, 'Group ' || n, 'QUEUE' from generate_series(2, ${GROUP_LIMITS.groups}::int) n`,
  )
  const create = (call: Call, name: string) => createGroup(call, { name, conflictStrategy: 'QUEUE' })
  const { second } = await busy.within(async (call) => {
    await create(call, 'First')
    let isAnswered = false
    const asked = busy.within((other) => create(other, 'Second')).finally(() => (isAnswered = true))
    const answer = asked.catch((error: unknown) => error)
    await eventually(
      'the second call to wait for the first, or to be answered',
      async () =>
        isAnswered || (await row(em, sql`select pid from pg_stat_activity where wait_event = 'advisory'`)),
    )
    return { second: answer }
  })
  const refused = await second
  t.true(refused instanceof Failure && refused.code === 'WRONG_STATE')
})

test('a group is deleted only after a fresh read, while no workflow is assigned, by its own organization', async (t) => {
  const organization = await api.organization()
  const { group } = await create(organization, {})
  const { workflow } = await organization.data('create_workflow', { name: 'Series' })
  const assigned = await organization.data('set_workflow_group', {
    workflowId: workflow.id,
    groupId: group.id,
  })
  t.deepEqual(assigned.group.workflows, [{ id: workflow.id, name: 'Series', status: 'DRAFT' }])
  const remove = (expectedUpdatedAt: string) =>
    organization.call('delete_workflow_group', { groupId: group.id, expectedUpdatedAt })
  t.is((await remove(group.updatedAt)).body.code, 'STALE_VERSION')
  const refused = await remove(assigned.group.updatedAt)
  t.is(refused.body.code, 'WRONG_STATE')
  t.regex(refused.body.error, /“Series” \(wf_\w+\); detach them/)
  const stranger = await api.organization()
  for (const [tool, input] of [
    ['get_workflow_group', { groupId: group.id }],
    ['delete_workflow_group', { groupId: group.id, expectedUpdatedAt: group.updatedAt }],
    ['set_workflow_group', { workflowId: workflow.id, groupId: null }],
  ] as const) {
    t.is((await stranger.call(tool, input)).status, 404)
  }
  await organization.data('set_workflow_group', { workflowId: workflow.id, groupId: null })
  const fresh = (await organization.data('get_workflow_group', { groupId: group.id })).group
  t.deepEqual(fresh.workflows, [])
  const challenge = await remove(fresh.updatedAt)
  t.is(challenge.status, 428)
  const done = await organization.confirmed('delete_workflow_group', {
    groupId: group.id,
    expectedUpdatedAt: fresh.updatedAt,
  })
  t.is(done.status, 200)
  t.is((await organization.call('get_workflow_group', { groupId: group.id })).status, 404)
})

test('FIRST_WINS skips the newcomer, says so in the ledger, and lets them in later as if they had never come', async (t) => {
  const groupId = await makeGroup('FIRST_WINS')
  const first = await waiting('F1', groupId)
  const second = await waiting('F2', groupId, { reEntry: { mode: 'ONCE' } })
  const subscriberId = await tenant.subscribe()
  await happened(subscriberId, 'F1')
  await happened(subscriberId, 'F2')
  await happened(subscriberId, 'F1')
  await become(t, { [first]: ['WAITING', 'SKIPPED GROUP_CONFLICT'], [second]: ['SKIPPED GROUP_CONFLICT'] })
  t.deepEqual(await decisionsOf(api.services, second), ['ENTRY_REFUSED GROUP_CONFLICT'])
  await happened(subscriberId, 'END_F1')
  await become(t, { [first]: ['COMPLETED END', 'SKIPPED GROUP_CONFLICT'] })
  await happened(subscriberId, 'F2')
  await become(t, { [second]: ['SKIPPED GROUP_CONFLICT', 'WAITING'] })
  await happened(await tenant.subscribe(), 'F1')
  await become(t, { [first]: ['COMPLETED END', 'SKIPPED GROUP_CONFLICT', 'WAITING'] })
})

test('LAST_WINS cancels the earlier run, in the middle of its wait', async (t) => {
  const groupId = await makeGroup('LAST_WINS')
  const [first, second] = [await waiting('L1', groupId), await waiting('L2', groupId)]
  const subscriberId = await tenant.subscribe()
  await happened(subscriberId, 'L1')
  await become(t, { [first]: ['WAITING'] })
  await happened(subscriberId, 'L2')
  await become(t, { [first]: ['CANCELED GROUP_CONFLICT'], [second]: ['WAITING'] })
})

test('PRIORITY lets the higher one in, and the first one stay among equals', async (t) => {
  const groupId = await makeGroup('PRIORITY')
  const low = await waiting('P1', groupId, { priority: 10 })
  const middle = await waiting('P2', groupId)
  const equal = await waiting('P3', groupId)
  const high = await waiting('P4', groupId, { priority: 90 })
  const subscriberId = await tenant.subscribe()
  for (const type of ['P2', 'P1', 'P3', 'P4', 'P2']) await happened(subscriberId, type)
  await become(t, {
    [low]: ['SKIPPED GROUP_CONFLICT'],
    [middle]: ['CANCELED GROUP_CONFLICT', 'SKIPPED GROUP_CONFLICT'],
    [equal]: ['SKIPPED GROUP_CONFLICT'],
    [high]: ['WAITING'],
  })
})

test('QUEUE lets everybody in, one after the other and in their order, however the run before ends', async (t) => {
  const groupId = await makeGroup('QUEUE')
  const [one, two, three] = [
    await waiting('Q1', groupId),
    await waiting('Q2', groupId),
    await waiting('Q3', groupId),
  ]
  const subscriberId = await tenant.subscribe()
  for (const type of ['Q1', 'Q2', 'Q3']) await happened(subscriberId, type)
  await become(t, { [one]: ['WAITING'], [two]: ['QUEUED'], [three]: ['QUEUED'] })
  t.deepEqual(await trailOf(api.services, (await runsOf(api.services, tenant, two))[0]?.id ?? ''), [])
  await happened(subscriberId, 'END_Q1')
  await become(t, { [one]: ['COMPLETED END'], [two]: ['WAITING'], [three]: ['QUEUED'] })
  const [second] = await runsOf(api.services, tenant, two)
  await tenant.within((call) => cancelRuns(call, [second?.id ?? ''], 'MANUAL'))
  await become(t, { [two]: ['CANCELED MANUAL'], [three]: ['WAITING'] })
  await happened(subscriberId, 'END_Q3')
  await become(t, { [three]: ['COMPLETED END'] })
})

const BOUGHT = [{ id: 'bought', on: 'BOUGHT' }]
const BUYS = {
  id: 'buy',
  name: 'Buys',
  event: 'BOUGHT',
  windowDays: 30,
  countFrom: 'ENTRY',
  exitOnReach: true,
}

/** Returns the number of exit rules and goals that listen for events, for each run of an automation. */
async function listeners(automationId: string): Promise<Record<string, number>> {
  const found = await rows<{ id: string; count: number }>(
    api.services.orm.em.fork(),
    sql`select id, (select count(*) from run_wait where run_id = id and rule_id <> '')::int
        + (select count(*) from goal_watch where run_id = id)::int as count
      from automation_run where automation_id = ${automationId}`,
  )
  return Object.fromEntries(found.map(({ id, count }) => [id, count]))
}

/** Returns the automations in which this person's runs started, in order. */
async function startedBy(subscriberId: string): Promise<string[]> {
  const found = await rows<{ workflowId: string }>(
    api.services.orm.em.fork(),
    sql`select data ->> 'workflowId' as "workflowId" from subscriber_event
      where subscriber_id = ${subscriberId} and type = 'WORKFLOW_STARTED' order by id`,
  )
  return found.map(({ workflowId }) => decodeId('wf', workflowId))
}

test('an exit rule or a goal ends a run that queues, which then never begins', async (t) => {
  const groupId = await makeGroup('QUEUE')
  const holder = await waiting('E0', groupId)
  const ruled = await waiting('E1', groupId, { exitRules: BOUGHT })
  const aiming = await waiting('E2', groupId, {}, [BUYS])
  const last = await waiting('E3', groupId)
  const subscriberId = await tenant.subscribe()
  for (const type of ['E0', 'E1', 'E2', 'E3']) await happened(subscriberId, type)
  await become(t, { [holder]: ['WAITING'], [ruled]: ['QUEUED'], [aiming]: ['QUEUED'] })
  await happened(subscriberId, 'BOUGHT')
  await become(t, {
    [holder]: ['WAITING'],
    [ruled]: ['CANCELED EXIT_RULE'],
    [aiming]: ['COMPLETED GOAL'],
    [last]: ['QUEUED'],
  })
  t.deepEqual(await decisionsOf(api.services, ruled), ['RUN_ENDED EXIT_RULE'])
  t.deepEqual(await decisionsOf(api.services, aiming), ['RUN_ENDED GOAL'])
  await happened(subscriberId, 'END_E0')
  await become(t, { [holder]: ['COMPLETED END'], [last]: ['WAITING'] })
  t.deepEqual(await startedBy(subscriberId), [holder, last])
})

test('what came while a run queued and nobody told it is found when its turn comes', async (t) => {
  const groupId = await makeGroup('QUEUE')
  const holder = await waiting('N0', groupId)
  const ruled = await waiting('N1', groupId, { exitRules: BOUGHT })
  const subscriberId = await tenant.subscribe()
  for (const type of ['N0', 'N1']) await happened(subscriberId, type)
  await become(t, { [holder]: ['WAITING'], [ruled]: ['QUEUED'] })
  await execute(
    api.services.orm.em.fork(),
    sql`delete from run_wait using automation_run run where run_wait.run_id = run.id and run.automation_id = ${ruled}`,
  )
  await happened(subscriberId, 'BOUGHT')
  await become(t, { [ruled]: ['QUEUED'] })
  await happened(subscriberId, 'END_N0')
  await become(t, { [holder]: ['COMPLETED END'], [ruled]: ['CANCELED EXIT_RULE'] })
})

test('what a run began with does not end it while it queues', async (t) => {
  const groupId = await makeGroup('QUEUE')
  const holder = await waiting('B0', groupId)
  const ruled = await waiting('B1', groupId, { exitRules: [...BOUGHT, { id: 'again', on: 'B1' }] })
  const subscriberId = await tenant.subscribe()
  await happened(subscriberId, 'B0')
  await tenant.within(async (call) => {
    for (const type of ['B1', 'BOUGHT']) await recordEvents(call, [{ subscriberId, type }])
  })
  await tenant.within((call) => catchMissedEvents(call, 60))
  await become(t, { [holder]: ['WAITING'], [ruled]: ['QUEUED'] })
  await happened(subscriberId, 'B1')
  await become(t, { [ruled]: ['CANCELED EXIT_RULE', 'QUEUED'] })
})

test('a paused workflow is passed over in the queue, and has its turn when it is active again', async (t) => {
  const groupId = await makeGroup('QUEUE')
  const [one, two, three] = [
    await waiting('Z1', groupId),
    await waiting('Z2', groupId),
    await waiting('Z3', groupId),
  ]
  const set = (status: 'ACTIVE' | 'PAUSED') =>
    tenant.within((call) => updateStatus(call, encodeId('wf', two), status))
  const [subscriberId, other] = [await tenant.subscribe(), await tenant.subscribe()]
  for (const type of ['Z1', 'Z2', 'Z3']) await happened(subscriberId, type)
  for (const type of ['Z1', 'Z2']) await happened(other, type)
  await become(t, { [one]: ['WAITING', 'WAITING'], [two]: ['QUEUED', 'QUEUED'], [three]: ['QUEUED'] })
  await set('PAUSED')
  for (const each of [subscriberId, other]) await happened(each, 'END_Z1')
  await become(t, { [two]: ['QUEUED', 'QUEUED'], [three]: ['WAITING'] })
  t.deepEqual(await startedBy(subscriberId), [one, three])
  await happened(subscriberId, 'END_Z3')
  await become(t, { [three]: ['COMPLETED END'] })
  const stale = await findStalePlaces(api.services.orm.em.fork())
  t.false(stale.some(({ places }) => places.some((place) => place.groupId === groupId)))
  // It does not block people who come in the meantime either.
  await happened(subscriberId, 'Z3')
  await become(t, { [three]: ['COMPLETED END', 'WAITING'] })
  await become(t, { [two]: ['QUEUED', 'QUEUED'] })
  await set('ACTIVE')
  await become(t, { [two]: ['QUEUED', 'WAITING'] })
  await happened(subscriberId, 'END_Z3')
  await become(t, { [two]: ['WAITING', 'WAITING'] })
})

test('a paused workflow that leaves its group lets begin who queued, once it is active again', async (t) => {
  const groupId = await makeGroup('QUEUE')
  const [one, two] = [await waiting('O1', groupId), await waiting('O2', groupId)]
  const set = (status: 'ACTIVE' | 'PAUSED') =>
    tenant.within((call) => updateStatus(call, encodeId('wf', two), status))
  const subscriberId = await tenant.subscribe()
  for (const type of ['O1', 'O2']) await happened(subscriberId, type)
  await become(t, { [one]: ['WAITING'], [two]: ['QUEUED'] })
  await set('PAUSED')
  await happened(subscriberId, 'END_O1')
  await become(t, { [one]: ['COMPLETED END'], [two]: ['QUEUED'] })
  await tenant.within((call) => assignGroup(call, encodeId('wf', two), null))
  await set('ACTIVE')
  await become(t, { [two]: ['WAITING'] })
  const stale = await findStalePlaces(api.services.orm.em.fork())
  t.deepEqual(
    stale.flatMap(({ places }) => places).filter((place) => place.subscriberId === subscriberId),
    [],
  )
  await happened(subscriberId, 'END_O2')
  await become(t, { [two]: ['COMPLETED END'] })
  t.deepEqual(await startedBy(subscriberId), [one, two])
})

test('who queues too long is skipped as EXPIRED, and a queue that nobody released is found', async (t) => {
  const groupId = await makeGroup('QUEUE', { amount: 1, unit: 'HOURS' })
  const one = await waiting('X1', groupId)
  const two = await waiting('X2', groupId, { exitRules: BOUGHT }, [BUYS])
  const [late, stranded] = [await tenant.subscribe(), await tenant.subscribe()]
  for (const subscriberId of [late, stranded])
    for (const type of ['X1', 'X2']) await happened(subscriberId, type)
  await become(t, { [one]: ['WAITING', 'WAITING'], [two]: ['QUEUED', 'QUEUED'] })
  // The one has queued long enough. The other is in the state after a crash, if ending a run and starting the next one
  // were two transactions.
  await execute(
    api.services.orm.em.fork(),
    sql`with expired as (update automation_run set queue_expires_at = now()
        where automation_id = ${two} and subscriber_id = ${late})
      delete from automation_run where automation_id = ${one} and subscriber_id = ${stranded}`,
  )
  await eventually('the queue to be put right', async () => {
    await reconcile(api.services)
    return (await runsOf(api.services, tenant, two)).every(({ status }) => status !== 'QUEUED')
  })
  await become(t, { [one]: ['WAITING'], [two]: ['SKIPPED EXPIRED', 'WAITING'] })
  t.deepEqual(await decisionsOf(api.services, two), ['ENTRY_REFUSED EXPIRED'])
  const [skipped, begun] = await runsOf(api.services, tenant, two)
  const heard = { [String(skipped?.id)]: 0, [String(begun?.id)]: 2 }
  t.deepEqual(await listeners(two), heard)
})

test('who queued in vain has not entered, by no rule of re-entry', async (t) => {
  const groupId = await makeGroup('QUEUE', { amount: 1, unit: 'SECONDS' })
  const holder = await waiting('V0', groupId)
  const cooldown = { amount: 1, unit: 'HOURS' } as const
  const once = await waiting('V1', groupId, { reEntry: { mode: 'ONCE' } })
  const few = await waiting('V2', groupId, { reEntry: { mode: 'EVERY_TIME', maxEntries: 1 } })
  const seldom = await waiting('V3', groupId, { reEntry: { mode: 'AFTER_EXIT', cooldown } })
  const all = [once, few, seldom]
  const subscriberId = await tenant.subscribe()
  const comeAll = async () => {
    for (const type of ['V1', 'V2', 'V3']) await happened(subscriberId, type)
  }
  const expireAll = () =>
    eventually('all to queue in vain', async () => {
      await reconcile(api.services)
      const runs = await Promise.all(all.map((id) => runsOf(api.services, tenant, id)))
      return runs.flat().every(({ status }) => status !== 'QUEUED')
    })
  await happened(subscriberId, 'V0')
  await become(t, { [holder]: ['WAITING'] })
  await comeAll()
  await expireAll()
  await comeAll()
  await expireAll()
  const twice = ['SKIPPED EXPIRED', 'SKIPPED EXPIRED']
  await become(t, { [once]: twice, [few]: twice, [seldom]: twice })

  await happened(subscriberId, 'END_V0')
  await become(t, { [holder]: ['COMPLETED END'] })
  for (const [number, id] of all.entries()) {
    const type = `V${number + 1}`
    await happened(subscriberId, type)
    await become(t, { [id]: [...twice, 'WAITING'] })
    await happened(subscriberId, `END_${type}`)
    await become(t, { [id]: [...twice, 'COMPLETED END'] })
  }
  await comeAll()
  const refusals = (await Promise.all(all.map((id) => decisionsOf(api.services, id)))).map((each) =>
    each.at(-1),
  )
  t.deepEqual(refusals, [
    'ENTRY_REFUSED ALREADY_ENTERED',
    'ENTRY_REFUSED MAX_ENTRIES',
    'ENTRY_REFUSED COOLDOWN',
  ])
})

test('a workflow joins or leaves a group with its runs, unless somebody would be in it twice', async (t) => {
  const group = encodeId('grp', await makeGroup('FIRST_WINS'))
  const [one, two] = [await waiting('S1', decodeId('grp', group)), await waiting('S2', null)]
  const subscriberId = await tenant.subscribe()
  await happened(subscriberId, 'S1')
  await happened(subscriberId, 'S2')
  await become(t, { [one]: ['WAITING'], [two]: ['WAITING'] })
  const set = (automationId: string, groupId: string | null) =>
    tenant.within((call) => assignGroup(call, encodeId('wf', automationId), groupId))
  const refused = await t.throwsAsync(set(two, group))
  t.regex(refused?.message ?? '', /^1 subscriber has more than one active run/)
  await happened(subscriberId, 'END_S1')
  await become(t, { [one]: ['COMPLETED END'] })
  await set(two, group)
  await happened(subscriberId, 'S1')
  await become(t, { [one]: ['COMPLETED END', 'SKIPPED GROUP_CONFLICT'] })
  await set(two, null)
  await happened(subscriberId, 'S1')
  await become(t, { [one]: ['COMPLETED END', 'SKIPPED GROUP_CONFLICT', 'WAITING'] })
})

for (const strategy of CONFLICT_STRATEGIES) {
  test(`R13: whoever comes at the same time, ${strategy} lets each subscriber be in one workflow of the group`, async (t) => {
    // No engine is needed, because the decisions are made on entry.
    const services = await testServices()
    t.teardown(() => services.close())
    const crowd = await makeTenant(services)
    const groupId = newId()
    await execute(
      services.orm.em.fork(),
      sql`insert into automation_group (id, organization_id, name, conflict_strategy)
        values (${groupId}, ${crowd.id}, 'Crowd', ${strategy})`,
    )
    const steps = (eventType: string) => [
      step('start', 'TRIGGER', { type: 'EVENT', eventType }),
      step('pause', 'WAIT', { amount: 1, unit: 'DAYS' }),
    ]
    for (const number of [1, 2, 3, 4, 5]) {
      const { id } = await publish(services, crowd, {
        steps: steps(`C${number}`),
        edges: edges(['start', 'pause']),
        settings: { reEntry: { mode: 'EVERY_TIME' }, priority: number * 10 },
      })
      await execute(services.orm.em.fork(), sql`update automation set group_id = ${groupId} where id = ${id}`)
    }
    const people = await Promise.all(Array.from({ length: 20 }, () => crowd.subscribe()))
    const entries = people.flatMap((subscriberId) =>
      [1, 2, 3, 4, 5, 1, 2, 3, 4, 5].map((number) => ({ subscriberId, type: `C${number}` })),
    )
    await inTurns(entries, (entry) => crowd.within((call) => recordEvents(call, [entry])))
    const held = await rows<{ subscriberId: string; held: number; all: number; best: number }>(
      services.orm.em.fork(),
      sql`select run.subscriber_id as "subscriberId", count(*)::int as all,
          (count(*) filter (where run.status in ('QUEUED', 'ACTIVE', 'WAITING') and queued_at is null))::int as held,
          max(case when run.status in ('QUEUED', 'ACTIVE', 'WAITING') and queued_at is null
            then (definition #>> '{settings,priority}')::int end) as best
        from automation_run run join automation_version version on version.id = run.version_id
        where run.organization_id = ${crowd.id} group by 1`,
    )
    t.is(held.length, people.length)
    t.true(held.every((person) => person.held === 1 && person.all === 10))
    if (strategy === 'PRIORITY') t.true(held.every(({ best }) => best === 50))
  })
}
