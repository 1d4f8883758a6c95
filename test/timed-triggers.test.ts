import test from 'ava'
import { sql } from 'kysely'

import type { Settings } from '../schema/automation.ts'
import type { TriggerConfig } from '../schema/automation-triggers.ts'
import { execute, row, rows } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import { triggerScheduleId } from '../temporal/contract.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { decisionsOf, step } from './helpers/automation.ts'
import { eventually } from './helpers/eventually.ts'

const QUEUE = `timed-${process.pid}`
const schedules: string[] = []
let api: TestApi
let engine: Engine

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: QUEUE, LOG_LEVEL: 'error' })
  engine = await startEngine(api.services)
  await engine.ready
})
test.after.always(async () => {
  const client = await api.services.temporal.client()
  for (const id of schedules)
    await client.schedule
      .getHandle(id)
      .delete()
      .catch(() => undefined)
  await engine?.stop()
  await api?.close()
})

const EVERY_TIME = { timezone: 'UTC', reEntry: { mode: 'EVERY_TIME' } } as const
const HOUR = 3_600_000

async function draft(organization: TestOrganization, config: TriggerConfig | object, settings: object = {}) {
  const { workflow } = await organization.data('create_workflow', { name: 'Timed' })
  return await organization.call('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    settings,
    steps: [{ id: 'start', type: 'TRIGGER', config }, step('seen', 'ADD_TAG', { tagNames: ['seen'] })],
    edges: [{ from: 'start', to: 'seen' }],
  })
}

async function live(
  organization: TestOrganization,
  config: TriggerConfig,
  settings: Partial<Settings> = EVERY_TIME,
): Promise<string> {
  const { body } = await draft(organization, config, settings)
  const workflowId: string = body.data.workflow.id
  const published = await organization.confirmed('publish_workflow', { workflowId })
  if (published.status !== 200) throw new Error(JSON.stringify(published.body))
  schedules.push(scheduleOf(workflowId))
  return workflowId
}

function scheduleOf(workflowId: string): string {
  return triggerScheduleId(QUEUE, workflowId, 'start')
}

async function handleOf(workflowId: string) {
  const client = await api.services.temporal.client()
  return client.schedule.getHandle(scheduleOf(workflowId))
}

async function person(organization: TestOrganization, name: string, fields: object = {}): Promise<string> {
  const { subscriber } = await organization.data('add_subscriber', {
    email: `${name}@example.com`,
    name,
    fields,
  })
  return subscriber.id
}

type Row = { lookedUntil: string; nextAt: string | null }

async function rowOf(workflowId: string): Promise<Row | null> {
  return await row<Row>(
    api.services.orm.em.fork(),
    sql`select looked_until as "lookedUntil", next_at as "nextAt" from automation_schedule
      where automation_id = ${decodeId('wf', workflowId)}`,
  )
}

/** As if nobody had looked for so long. */
async function rewind(workflowId: string, milliseconds: number): Promise<void> {
  await execute(
    api.services.orm.em.fork(),
    sql`update automation_schedule set looked_until = now() - make_interval(secs => ${milliseconds / 1000}::float8)
      where automation_id = ${decodeId('wf', workflowId)}`,
  )
}

/** Has Temporal's schedule fire now, and waits until everybody whom it found is decided on. */
async function fire(workflowId: string): Promise<void> {
  const handle = await handleOf(workflowId)
  await eventually('the schedule', () => handle.describe())
  const before = (await rowOf(workflowId))?.lookedUntil
  const look = async () => {
    // A schedule that is triggered twice in a second fires once.
    await handle.trigger()
    return (await rowOf(workflowId))?.lookedUntil !== before
  }
  await eventually('a look', look, { withinMs: 30_000, everyMs: 400 })
  await settled(workflowId)
}

async function settled(workflowId: string): Promise<void> {
  await eventually(
    'its intakes',
    async () => {
      const open = await row(
        api.services.orm.em.fork(),
        sql`select 1 from automation_intake where automation_id = ${decodeId('wf', workflowId)} and status = 'RUNNING'`,
      )
      return open === null
    },
    { withinMs: 30_000 },
  )
}

/** The names of whoever entered, one for each run. */
async function entered(workflowId: string): Promise<string> {
  const found = await rows<{ name: string }>(
    api.services.orm.em.fork(),
    sql`select s.name from automation_run run join subscriber s on s.id = run.subscriber_id
      where run.automation_id = ${decodeId('wf', workflowId)} order by s.name, run.number`,
  )
  return found.map(({ name }) => name).join(' ')
}

/** A time of the day so long ago, in UTC, with the day that it is on. */
function ago(milliseconds: number): { day: string; time: string } {
  const text = new Date(Date.now() - milliseconds).toISOString()
  return { day: text.slice(0, 10), time: text.slice(11, 16) }
}

test('DATE_FIELD lets in whoever has the date, by its filters, and once for each date', async (t) => {
  const organization = await api.organization()
  const { day, time } = ago(HOUR)
  await person(organization, 'ann', { birthday: `1990${day.slice(4)}` })
  await person(organization, 'bob', { birthday: `1985${day.slice(4)}` })
  await person(organization, 'cid', { birthday: '1990-01-01', other: '1990-01-01' })
  await person(organization, 'dan')
  const gone = await person(organization, 'eve', { birthday: `1991${day.slice(4)}` })
  await organization.confirmed('unsubscribe', { subscriberId: gone })
  const workflowId = await live(organization, {
    type: 'DATE_FIELD',
    field: 'birthday',
    direction: 'AFTER',
    anniversary: true,
    at: time,
    filters: [{ field: 'name', operator: 'not_equals', value: 'bob' }],
  })
  const stranger = await api.organization()
  await person(stranger, 'fay', { birthday: `1990${day.slice(4)}` })
  await fire(workflowId)
  t.is(await entered(workflowId), '', 'its time was over when it was published')
  await rewind(workflowId, 2 * HOUR)
  await fire(workflowId)
  t.is(await entered(workflowId), 'ann')
  t.deepEqual(await decisionsOf(api.services, decodeId('wf', workflowId)), ['ENTRY_REFUSED FILTERS'])
  for (let round = 0; round < 2; round++) {
    await rewind(workflowId, 2 * HOUR)
    await fire(workflowId)
  }
  t.is(await entered(workflowId), 'ann')
  const [run] = await rows<{ trigger: object; context: object }>(
    api.services.orm.em.fork(),
    sql`select trigger, context from automation_run where automation_id = ${decodeId('wf', workflowId)}`,
  )
  const dueAt = `${day}T${time}:00.000Z`
  t.like(run?.trigger, { type: 'DATE_FIELD', dueAt })
  t.deepEqual(run?.context, { field: 'birthday', date: day, dueAt })
})

test('who was due longer than a day ago is told so, and does not enter', async (t) => {
  const organization = await api.organization()
  const [late, later] = [ago(3 * HOUR), ago(30 * HOUR)]
  await person(organization, 'ann', { trial: `${late.day}T${late.time}:00Z` })
  await person(organization, 'bob', { trial: `${later.day}T${later.time}:00Z` })
  const workflowId = await live(organization, {
    type: 'DATE_FIELD',
    field: 'trial',
    direction: 'AFTER',
    anniversary: false,
  })
  await rewind(workflowId, 100 * HOUR)
  await fire(workflowId)
  t.is(await entered(workflowId), 'ann')
  t.deepEqual(await decisionsOf(api.services, decodeId('wf', workflowId)), ['ENTRY_REFUSED MISSED'])
})

test('a schedule follows its workflow: made, paused, resumed, changed and deleted with it', async (t) => {
  const organization = await api.organization()
  await person(organization, 'ann', { birthday: '1990-01-01' })
  await organization.data('update_organization_settings', { timezone: 'Europe/Paris' })
  const config = {
    type: 'DATE_FIELD',
    field: 'birthday',
    direction: 'AFTER',
    anniversary: true,
    at: '09:30',
  } as const
  const workflowId = await live(organization, config, {})
  const handle = await handleOf(workflowId)
  const is = (what: string, expected: object) =>
    eventually(what, async () => {
      const { state, spec } = await handle.describe()
      const [{ hour, minute } = {}] = spec.calendars ?? []
      const seen = {
        paused: state.paused,
        hour: hour?.[0]?.start,
        minute: minute?.[0]?.start,
        zone: spec.timezone,
      }
      return Object.entries(expected).every(([key, value]) => Reflect.get(seen, key) === value)
    })
  await is('a running schedule', { paused: false, hour: 9, minute: 30, zone: 'Europe/Paris' })
  const status = (next: string) =>
    organization.confirmed('update_workflow_status', { workflowId, status: next })
  await status('PAUSED')
  await is('a paused one', { paused: true })
  t.is((await rowOf(workflowId))?.nextAt, null)
  await rewind(workflowId, HOUR)
  const before = Date.now()
  await status('ACTIVE')
  await is('a running one again', { paused: false })
  t.true(
    Date.parse((await rowOf(workflowId))?.lookedUntil ?? '') > before - 1_000,
    'the pause is not made up for',
  )
  await organization.data('update_organization_settings', { timezone: 'Asia/Tokyo' })
  await is('another zone', { paused: false, zone: 'Asia/Tokyo' })
  await handle.pause('an operator knows why')
  await organization.data('update_organization_settings', { timezone: 'UTC' })
  await is('what an operator paused', { paused: true, zone: 'UTC' })
  await handle.unpause()
  await status('ARCHIVED')
  await eventually('no schedule', () =>
    handle.describe().then(
      () => false,
      () => true,
    ),
  )
  t.is(await rowOf(workflowId), null)
  await status('PAUSED')
  await is('a paused one out of the archive', { paused: true })
})

test('a trigger by a date needs a date field, and every fault is told at once', async (t) => {
  const organization = await api.organization()
  await person(organization, 'ann', { birthday: '1990-01-01', plan: 'pro' })
  const faults = async (config: object) => {
    const answer = await draft(organization, config)
    t.is(answer.status, 400)
    const details: { path: string; message: string }[] = answer.body.details
    return details.map(({ path, message }) => `${path}: ${message}`).join('\n')
  }
  const date = { type: 'DATE_FIELD', field: 'birthday' }
  t.regex(
    await faults({ ...date, field: 'birthdya' }),
    /config\.field: there is no custom field .*"birthday"/,
  )
  t.regex(await faults({ ...date, field: 'plan' }), /config\.field: needs a date field/)
  const many = await faults({
    ...date,
    at: '9:00',
    direction: 'ASIDE',
    offset: { amount: 10_000, unit: 'DAYS' },
    zone: 'UTC',
  })
  for (const path of ['at', 'direction', 'offset.amount', 'zone'])
    t.true(many.includes(`config.${path}:`), many)
})
