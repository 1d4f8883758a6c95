import { fork } from 'node:child_process'

import test from 'ava'
import { type RawBuilder, sql } from 'kysely'

import { execute, rows } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import { segmentScheduleId } from '../temporal/contract.ts'
import { ensureSchedules } from '../worker/schedules.ts'
import { startSegmentWatch } from '../worker/segment-watch.ts'
import { startEngine } from '../worker/workers.ts'
import { startApi, type TestOrganization } from './helpers/api.ts'
import { whileRefused } from './helpers/database.ts'
import { eventually } from './helpers/eventually.ts'
import { publishWorkflow } from './helpers/workflow.ts'

const QUEUE = `refresh-${process.pid}`
const DAY = { amount: 1, unit: 'DAYS' }

test('the schedule moves people into and out of segments by the passing of time', async (t) => {
  const api = await startApi({ TEMPORAL_TASK_QUEUE: QUEUE })
  const em = api.services.orm.em.fork()
  const engine = await startEngine(api.services)
  const watch = startSegmentWatch(api.services)
  const client = await api.services.temporal.client()
  await ensureSchedules(client, QUEUE)
  await ensureSchedules(client, QUEUE)
  const schedule = client.schedule.getHandle(segmentScheduleId(QUEUE))
  t.teardown(async () => {
    await schedule.delete()
    await watch.stop()
    await engine.stop()
    await api.close()
  })
  const described = await schedule.describe()
  t.is(described.policies.overlap, 'SKIP')
  t.deepEqual(
    described.spec.intervals?.map(({ every }) => every),
    [15 * 60_000],
  )

  const [organization, other] = [await api.organization(), await api.organization()]
  const segment = async (...filters: unknown[]): Promise<string> =>
    (await organization.data('create_segment', { name: 'Segment', filters })).segment.id
  const fresh = await segment({ field: 'createdAt', operator: 'within_last', value: DAY })
  const old = await segment({ not: { field: 'segment', operator: 'has_any', value: [fresh] } })
  // A fixed date does not move with time, so this segment needs no periodic comparison.
  const fixed = await segment({ field: 'createdAt', operator: 'before', value: '2021-01-01' })
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId: old })
  const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId: fresh })
  await live(organization, { type: 'SEGMENT_ENTERED', segmentId: fixed })
  const { subscriber: ann } = await organization.data('add_subscriber', { email: 'ann@example.com' })
  await organization.data('add_subscriber', { email: 'bob@example.com' })
  await other.data('add_subscriber', { email: 'ann@example.com' })
  const settled = () =>
    eventually('the segments to settle', async () => {
      const left = await rows(
        em,
        sql`select from segment_change union all select from watched_segment where recheck_at is not null`,
      )
      return left.length === 0
    })
  await settled()

  await execute(
    em,
    sql`update subscriber set created_at = '2020-01-01' where id = ${decodeId('sub', ann.id)}`,
  )
  await schedule.trigger()
  const entered = async (workflowId: string) => {
    const found = await rows<{ email: string }>(
      em,
      sql`select subscriber.email from automation_run run
        join subscriber on subscriber.organization_id = run.organization_id and subscriber.id = run.subscriber_id
        where run.automation_id = ${decodeId('wf', workflowId)} order by 1`,
    )
    return found.map(({ email }) => email)
  }
  await eventually('ann to enter', async () => (await entered(entering)).length > 0)
  await settled()
  t.deepEqual(await entered(entering), ['ann@example.com'])
  t.deepEqual(await entered(leaving), ['ann@example.com'])
  const { info } = await schedule.describe()
  const started = info.recentActions.at(-1)?.action.workflow.workflowId ?? ''
  t.deepEqual(await client.workflow.getHandle(started).result(), { organizations: 1, segments: 2 })
})

test('an organization whose segments cannot be compared holds up no other', async (t) => {
  const queue = `refresh-sick-${process.pid}`
  const api = await startApi({ TEMPORAL_TASK_QUEUE: queue, LOG_LEVEL: 'error' })
  const engine = await startEngine(api.services)
  const watch = startSegmentWatch(api.services)
  const client = await api.services.temporal.client()
  await ensureSchedules(client, queue)
  const schedule = client.schedule.getHandle(segmentScheduleId(queue))
  t.teardown(async () => {
    await schedule.delete()
    await watch.stop()
    await engine.stop()
    await api.close()
  })
  const em = api.services.orm.em.fork()
  const withAnOldPerson = async () => {
    const organization = await api.organization()
    const filters = [{ field: 'createdAt', operator: 'more_than_ago', value: DAY }]
    const { segment } = await organization.data('create_segment', { name: 'Old', filters })
    const workflowId = await live(organization, { type: 'SEGMENT_ENTERED', segmentId: segment.id })
    await organization.data('add_subscriber', { email: 'ann@example.com' })
    return { id: organization.id, workflowId }
  }
  // Organizations are looked at in the order of their ids.
  const [sick, well] = [await withAnOldPerson(), await withAnOldPerson()]
  await eventually('the segments to settle', async () => {
    const left = await rows(
      em,
      sql`select from segment_change union all select from watched_segment where recheck_at is not null`,
    )
    return left.length === 0
  })
  await execute(em, sql`update subscriber set created_at = '2020-01-01'`)
  const refused = { write: 'insert', table: 'segment_change', organizationId: sick.id } as const
  const run = sql`select from automation_run where automation_id = ${decodeId('wf', well.workflowId)}`
  await whileRefused(api.services, refused, async () => {
    await schedule.trigger()
    await eventually('ann of the other organization to enter', async () => (await rows(em, run)).length === 1)
  })
  t.pass()
})

test('a watch that is killed with -9 in the middle of its work, again and again, moves everybody exactly once', async (t) => {
  const count = 1_500
  const api = await startApi()
  t.teardown(() => api.close())
  const em = api.services.orm.em.fork()
  const organization = await api.organization()
  await organization.data('create_tag', { name: 'vip' })
  const { segment } = await organization.data('create_segment', {
    name: 'Vips',
    filters: [{ field: 'tags', operator: 'has_any', value: ['vip'] }],
  })
  const workflowId = await live(organization, { type: 'SEGMENT_ENTERED', segmentId: segment.id })
  for (let from = 0; from < count; from += 500) {
    const subscribers = Array.from({ length: 500 }, (_, index) => ({
      email: `p${from + index}@example.com`,
      status: 'SUBSCRIBED',
      tags: ['vip'],
    }))
    await organization.data('import_subscribers', { subscribers, triggerWorkflows: true })
  }
  const env = { ...process.env, DATABASE_URL: api.services.databaseUrl, LOG_LEVEL: 'silent' }
  const start = () => {
    const child = fork(new URL('helpers/watch-process.ts', import.meta.url), { env })
    t.teardown(() => child.kill('SIGKILL'))
    return child
  }
  const watchers = (condition: RawBuilder<unknown>) =>
    rows(
      em,
      sql`select from pg_stat_activity where datname = current_database()
        and application_name = 'postloom watcher' and ${condition}`,
    )
  // Each process gets as far as the locked table.
  for (const table of ['subscriber_event', 'automation_run', 'outbox']) {
    const child = start()
    await em.transactional(async (closing) => {
      await execute(closing, sql`lock table ${sql.table(table)} in share row exclusive mode`)
      await eventually(
        `a watch that has written, not committed, and waits for ${table}`,
        async () => (await watchers(sql`backend_xid is not null and wait_event_type = 'Lock'`)).length > 0,
        { withinMs: 60_000 },
      )
      child.kill('SIGKILL')
    })
    await eventually('its transaction to be undone', async () => (await watchers(sql`true`)).length === 0)
  }
  start()
  await eventually(
    'every change to be looked at',
    async () => {
      const left = await rows(em, sql`select from segment_change limit 1`)
      return left.length === 0
    },
    { withinMs: 60_000 },
  )
  const found = await rows(
    em,
    sql`select (select count(*)::int from segment_member) as members, count(*)::int as runs,
        count(distinct subscriber_id)::int as people,
        (select count(*)::int from subscriber_event where type = 'SEGMENT_ENTERED') as events
      from automation_run where automation_id = ${decodeId('wf', workflowId)}`,
  )
  t.deepEqual(found, [{ members: count, runs: count, people: count, events: count }])
})

async function live(organization: TestOrganization, config: object): Promise<string> {
  const settings = { reEntry: { mode: 'EVERY_TIME' } }
  return await publishWorkflow(organization, [{ id: 'start', type: 'TRIGGER', config }], { settings })
}
