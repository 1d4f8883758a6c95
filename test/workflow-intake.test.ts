import test from 'ava'
import { sql } from 'kysely'

import { execute, row, rows } from '../src/database.ts'
import { continueIntake } from '../src/domain/automations/entry/intake.ts'
import { claimOutbox } from '../src/domain/outbox.ts'
import { decodeId } from '../src/ids.ts'
import { reconcile } from '../worker/reconciler.ts'
import { startEngine } from '../worker/workers.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { runsOf, step } from './helpers/automation.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { UNFOLLOWED } from './helpers/control.ts'
import { eventually } from './helpers/eventually.ts'
import { publishWorkflow } from './helpers/workflow.ts'

const QUEUE = { TEMPORAL_TASK_QUEUE: `intake-${process.pid}`, LOG_LEVEL: 'error' }
let api: TestApi

test.before(async () => {
  api = await startApi(QUEUE)
})
test.after.always(async () => {
  await api?.close()
})

const LONG_WAIT = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })

async function live(organization: TestOrganization, more: { filters?: unknown[]; settings?: object } = {}) {
  const { filters = [], settings = { reEntry: { mode: 'ONCE' } } } = more
  const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL', filters } }
  return await publishWorkflow(organization, [start, LONG_WAIT], { settings })
}

/** Creates `size` people; every third name begins with "vip". */
async function crowd(organization: TestOrganization, size: number): Promise<void> {
  await execute(
    api.services.orm.em.fork(),
    sql`insert into subscriber (id, organization_id, email, name, status)
      select new_id(), ${organization.id}, 'p' || number || '@reader.example',
        case when number % 3 = 0 then 'vip ' else 'p ' end || number, 'SUBSCRIBED'
      from generate_series(1, ${size}::int) as number`,
  )
}

const VIPS = [{ field: 'name', operator: 'starts_with', value: 'vip' }]

type Intake = { status: string; looked: number; entered: number }

async function finished(workflowId: string, withinMs = 90_000): Promise<Intake> {
  return await eventually(
    'the intake to end',
    async () => {
      const intake = await intakeOf(workflowId)
      return intake && intake.status !== 'RUNNING' && intake
    },
    { withinMs, everyMs: 100 },
  )
}

async function intakeOf(workflowId: string): Promise<Intake | null> {
  return await row<Intake>(
    api.services.orm.em.fork(),
    sql`select status, looked, entered from automation_intake
      where automation_id = ${decodeId('wf', workflowId)} order by id desc limit 1`,
  )
}

test('what cannot be is refused before anybody is asked to confirm, and another organization sees nothing', async (t) => {
  const organization = await api.organization()
  const workflowId = await live(organization)
  const { segment } = await organization.data('create_segment', { name: 'VIPs', filters: VIPS })
  const add = (input: object) => organization.call('add_subscribers_to_workflow', { workflowId, ...input })
  t.is((await add({})).body.code, 'INVALID_INPUT')
  t.is((await add({ filters: VIPS, segmentId: segment.id })).body.code, 'INVALID_INPUT')
  t.is((await add({ filters: [{ field: 'nope', operator: 'equals', value: 1 }] })).body.code, 'INVALID_INPUT')
  t.is((await add({ filters: [], limit: 0 })).body.code, 'INVALID_INPUT')
  const none = await organization.confirmed('add_subscribers_to_workflow', { workflowId, filters: VIPS })
  t.deepEqual(none.body.data, { count: 0, temporalUrl: null })
  t.is(await intakeOf(workflowId), null)
  const stranger = await api.organization()
  t.is((await stranger.call('add_subscribers_to_workflow', { workflowId, filters: [] })).status, 404)
  const theirs = await live(stranger)
  const foreign = { workflowId: theirs, segmentId: segment.id }
  t.is((await stranger.call('add_subscribers_to_workflow', foreign)).status, 404)
  await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  t.is((await add({ filters: [] })).body.code, 'WRONG_STATE')
  const byKey = await live(organization, { settings: { reEntry: { mode: 'PER_KEY', keyPath: 'order' } } })
  const keyless = await organization.call('add_subscribers_to_workflow', { workflowId: byKey, filters: [] })
  t.like(keyless.body, { code: 'WRONG_STATE', details: { reason: 'NO_KEY' } })
})

test.serial(
  'everybody who matches enters once, in the background, killed in the middle or not',
  async (t) => {
    const organization = await api.organization()
    const workflowId = await live(organization, { filters: VIPS })
    await crowd(organization, 3_600)
    const challenge = await organization.call('add_subscribers_to_workflow', { workflowId, filters: [] })
    t.is(challenge.status, 428)
    t.is(challenge.body.summary.recipients, 1_200)
    const answer = await organization.confirmed('add_subscribers_to_workflow', { workflowId, filters: [] })
    t.is(answer.body.data.count, 1_200)
    t.regex(answer.body.data.temporalUrl, /intake/)
    const start = () => startProcess(api.services, 'test/helpers/worker-process.ts')
    let worker = start()
    try {
      for (const reached of [1, 501]) {
        await eventually(
          `${reached} people`,
          async () => ((await intakeOf(workflowId))?.looked ?? 0) >= reached,
          {
            withinMs: 60_000,
          },
        )
        await endProcess(worker)
        worker = start()
      }
      t.deepEqual(await finished(workflowId), { status: 'COMPLETED', looked: 1_200, entered: 1_200 })
    } finally {
      await endProcess(worker)
    }
    const [counted] = await rows<{ runs: number; people: number; others: number }>(
      api.services.orm.em.fork(),
      sql`select count(*)::int as runs, count(distinct subscriber_id)::int as people,
        (count(*) filter (where name not like 'vip%'))::int as others
      from automation_run run join subscriber on subscriber.id = run.subscriber_id
      where automation_id = ${decodeId('wf', workflowId)}`,
    )
    t.deepEqual(counted, { runs: 1_200, people: 1_200, others: 0 })
  },
)

test.serial(
  'whoever acts alone goes before a crowd, of which the relay tells Temporal a hundred at a time',
  async (t) => {
    const organization = await api.organization()
    const workflowId = await live(organization, { settings: { reEntry: { mode: 'EVERY_TIME' } } })
    await crowd(organization, 300)
    await organization.confirmed('add_subscribers_to_workflow', { workflowId, filters: [] })
    const [intake] = await rows<{ id: string }>(
      api.services.orm.em.fork(),
      sql`select id from automation_intake where automation_id = ${decodeId('wf', workflowId)}`,
    )
    await continueIntake(api.services, organization.id, intake?.id ?? '', UNFOLLOWED)
    await organization.data('add_subscriber_to_workflow', { workflowId, email: 'p7@reader.example' })
    t.is((await runsOf(api.services, organization, decodeId('wf', workflowId))).length, 301)
    const claimed = await claimOutbox(api.services.orm.em.fork(), 1, 1)
    const [alone] = await rows<{ number: number; type: string }>(
      api.services.orm.em.fork(),
      sql`select run.number, trigger ->> 'type' as type from automation_run run
      join subscriber on subscriber.id = run.subscriber_id
      where run.organization_id = ${organization.id} and email = 'p7@reader.example' order by run.id desc limit 1`,
    )
    t.true(claimed[0]?.workflowId.endsWith(`/${alone?.number}`))
    t.is(alone?.number, 2)
  },
)

test.serial('a segment, a limit, a pause in the middle and an archive', async (t) => {
  const organization = await api.organization()
  const workflowId = await live(organization, { settings: { reEntry: { mode: 'AFTER_EXIT' } } })
  await crowd(organization, 90)
  const { segment } = await organization.data('create_segment', { name: 'VIPs', filters: VIPS })
  const add = (input: object) =>
    organization.confirmed('add_subscribers_to_workflow', { workflowId, ...input })
  await add({ segmentId: segment.id, limit: 10 })
  await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  const engine = await startEngine(api.services)
  t.teardown(() => engine.stop())
  await engine.ready
  const client = await api.services.temporal.client()
  await eventually(
    'the intake to wait',
    async () => {
      const [intake] = await rows<{ id: string }>(
        api.services.orm.em.fork(),
        sql`select id from automation_intake where automation_id = ${decodeId('wf', workflowId)}`,
      )
      const handle = client.workflow.getHandle(`intake/${workflowId}/${intake?.id}`)
      const { events } = await handle.fetchHistory()
      return events?.some(({ timerStartedEventAttributes }) => timerStartedEventAttributes)
    },
    { withinMs: 60_000 },
  )
  t.deepEqual(await intakeOf(workflowId), { status: 'RUNNING', looked: 0, entered: 0 })
  await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })
  t.deepEqual(await finished(workflowId), { status: 'COMPLETED', looked: 10, entered: 10 })
  await add({ segmentId: segment.id })
  t.deepEqual(await finished(workflowId), { status: 'COMPLETED', looked: 30, entered: 20 })
  t.is((await runsOf(api.services, organization, decodeId('wf', workflowId))).length, 30)
  await engine.stop()
  await add({ filters: [] })
  await organization.confirmed('update_workflow_status', { workflowId, status: 'ARCHIVED' })
  const [late] = await rows<{ id: string }>(
    api.services.orm.em.fork(),
    sql`select id from automation_intake where automation_id = ${decodeId('wf', workflowId)} order by id desc limit 1`,
  )
  await continueIntake(api.services, organization.id, late?.id ?? '', UNFOLLOWED)
  t.deepEqual(await intakeOf(workflowId), { status: 'CANCELED', looked: 0, entered: 0 })
})

test.serial(
  'an intake whose workflow was terminated has failed and says so; one that was never begun goes on',
  async (t) => {
    const organization = await api.organization()
    const workflowId = await live(organization)
    await crowd(organization, 30)
    const add = () => organization.confirmed('add_subscribers_to_workflow', { workflowId, filters: [] })
    await add()
    await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
    let engine = await startEngine(api.services)
    t.teardown(() => engine.stop())
    const client = await api.services.temporal.client()
    const { id, ...begun } = await newest(workflowId)
    t.like(begun, { status: 'RUNNING', error: null })
    const handle = client.workflow.getHandle(`intake/${workflowId}/${id}`)
    await eventually('the workflow to be there', () => handle.describe().catch(() => null))
    await reconcile(api.services, 0)
    t.is((await newest(workflowId)).status, 'RUNNING')
    await handle.terminate('wrong people')
    for (let round = 0; round < 2; round++) await reconcile(api.services, 0)
    const ended = await newest(workflowId)
    t.is(ended.status, 'FAILED')
    t.regex(ended.error ?? '', /TERMINATED.*add the others again/)
    await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })

    await engine.stop()
    await add()
    const lost = await newest(workflowId)
    await execute(
      api.services.orm.em.fork(),
      sql`delete from outbox where workflow_id = ${`intake/${workflowId}/${lost.id}`}`,
    )
    for (let round = 0; round < 2; round++) await reconcile(api.services, 0)
    engine = await startEngine(api.services)
    t.deepEqual(await finished(workflowId), { status: 'COMPLETED', looked: 30, entered: 30 })
    t.is((await runsOf(api.services, organization, decodeId('wf', workflowId))).length, 30)
  },
)

async function newest(workflowId: string): Promise<{ id: string; status: string; error: string | null }> {
  const [intake] = await rows<{ id: string; status: string; error: string | null }>(
    api.services.orm.em.fork(),
    sql`select id, status, error from automation_intake where automation_id = ${decodeId('wf', workflowId)}
      order by id desc limit 1`,
  )
  if (!intake) throw new Error('no intake was begun')
  return intake
}
