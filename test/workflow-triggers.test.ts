import test from 'ava'

import type { TriggerConfig } from '../schema/automation-triggers.ts'
import type { Settings, Step } from '../schema/automation.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { recordEvents } from '../src/domain/events.ts'
import { decodeId, encodeId } from '../src/ids.ts'
import { watchEchoes } from '../worker/echo-watch.ts'
import { watchSegments } from '../worker/segment-watch.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { decisionsOf, runsOf, step } from './helpers/automation.ts'
import { eventually } from './helpers/eventually.ts'

let api: TestApi
let engine: Engine

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `triggers-${process.pid}`, LOG_LEVEL: 'error' })
  engine = await startEngine(api.services)
  await engine.ready
})
test.after.always(async () => {
  await engine?.stop()
  await api?.close()
})

const SEEN = step('seen', 'ADD_TAG', { tagNames: ['seen'] })
const EVERY_TIME = { reEntry: { mode: 'EVERY_TIME' } } as const

async function draft(
  organization: TestOrganization,
  config: TriggerConfig,
  settings: Partial<Settings>,
  second: Step = SEEN,
) {
  const { workflow } = await organization.data('create_workflow', { name: config.type })
  return await organization.call('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    settings,
    steps: [{ id: 'start', type: 'TRIGGER', config }, second],
    edges: [{ from: 'start', to: second.id }],
  })
}

/** Publishes a workflow with this trigger. */
async function live(
  organization: TestOrganization,
  config: TriggerConfig,
  settings: Partial<Settings> = EVERY_TIME,
  second: Step = SEEN,
): Promise<string> {
  const { body } = await draft(organization, config, settings, second)
  const workflowId: string = body.data.workflow.id
  const published = await organization.confirmed('publish_workflow', { workflowId })
  if (published.status !== 200) throw new Error(JSON.stringify(published.body))
  return workflowId
}

async function person(organization: TestOrganization, name: string, more: object = {}): Promise<string> {
  const { subscriber } = await organization.data('add_subscriber', { email: `${name}@example.com`, ...more })
  return subscriber.id
}

async function runs(organization: TestOrganization, workflowId: string): Promise<number> {
  return (await runsOf(api.services, organization, decodeId('wf', workflowId))).length
}

test('UNSUBSCRIBED lets in whoever unsubscribes, by its filters, once unless the settings say otherwise', async (t) => {
  const organization = await api.organization()
  const leaving = await live(organization, { type: 'UNSUBSCRIBED' }, {})
  const filtered = await live(organization, {
    type: 'UNSUBSCRIBED',
    filters: [{ field: 'name', operator: 'equals', value: 'Ann' }],
  })
  const [ann, bob] = [await person(organization, 'ann', { name: 'Ann' }), await person(organization, 'bob')]
  for (const subscriberId of [ann, bob]) await organization.confirmed('unsubscribe', { subscriberId })
  t.is(await runs(organization, leaving), 2)
  t.is(await runs(organization, filtered), 1)
  t.deepEqual(await decisionsOf(api.services, decodeId('wf', filtered)), ['ENTRY_REFUSED FILTERS'])
  // Triggers for a state let a person enter only once, unless the settings say otherwise.
  await organization.data('update_subscriber', { subscriber: ann, resubscribe: true })
  await organization.confirmed('unsubscribe', { subscriberId: ann })
  t.is(await runs(organization, leaving), 2)
  t.is(await runs(organization, filtered), 2)
})

test('FIELD_UPDATED listens to one field, and to the values it comes from and goes to', async (t) => {
  const organization = await api.organization()
  const ann = await person(organization, 'ann', { fields: { plan: 'free', seats: 1 } })
  const stranger = await api.organization()
  await person(stranger, 'eve', { fields: { plan: 'free' } })
  const workflows = {
    any: await live(organization, { type: 'FIELD_UPDATED', field: 'plan' }),
    toPro: await live(organization, { type: 'FIELD_UPDATED', field: 'plan', to: 'pro' }),
    fromPro: await live(organization, { type: 'FIELD_UPDATED', field: 'plan', from: 'pro' }),
    freeToPro: await live(organization, { type: 'FIELD_UPDATED', field: 'plan', from: 'free', to: 'pro' }),
    cleared: await live(organization, { type: 'FIELD_UPDATED', field: 'plan', to: null }),
    seats: await live(organization, { type: 'FIELD_UPDATED', field: 'seats', to: 5 }),
    name: await live(organization, { type: 'FIELD_UPDATED', field: 'name' }),
    theirs: await live(stranger, { type: 'FIELD_UPDATED', field: 'plan' }),
  }
  const change = (more: object) => organization.data('update_subscriber', { subscriber: ann, ...more })
  await change({ fields: { plan: 'pro' } })
  await change({ fields: { plan: 'pro' } })
  await change({ fields: { plan: 'team', seats: 5 } })
  await change({ fields: { plan: null } })
  await change({ fields: { plan: 'pro' }, triggerWorkflows: false })
  await change({ name: 'Ann' })
  const counts = await Promise.all(
    Object.entries(workflows).map(async ([key, id]) => [
      key,
      await runs(key === 'theirs' ? stranger : organization, id),
    ]),
  )
  t.deepEqual(Object.fromEntries(counts), {
    any: 3,
    toPro: 1,
    fromPro: 1,
    freeToPro: 1,
    cleared: 1,
    seats: 1,
    name: 1,
    theirs: 0,
  })
})

test('FIELD_UPDATED tells a custom field from the built-in one of the same name', async (t) => {
  const organization = await api.organization()
  const fields = { country: 'north', status: 'new' }
  const subscriber = await person(organization, 'ann', { country: 'FR', fields })
  const workflows = {
    builtIn: await live(organization, { type: 'FIELD_UPDATED', field: 'country' }),
    custom: await live(organization, { type: 'FIELD_UPDATED', field: 'customFields.country', to: 'south' }),
    status: await live(organization, { type: 'FIELD_UPDATED', field: 'status' }),
    prefixed: await live(organization, { type: 'FIELD_UPDATED', field: 'customFields.status' }),
  }
  const counts = async () => {
    const counted = Object.entries(workflows).map(
      async ([name, id]) => [name, await runs(organization, id)] as const,
    )
    return Object.fromEntries(await Promise.all(counted))
  }
  await organization.data('update_subscriber', { subscriber, country: 'DE' })
  await organization.confirmed('add_suppression', { email: 'ann@reader.example' })
  t.deepEqual(await counts(), { builtIn: 1, custom: 0, status: 0, prefixed: 0 })
  await organization.data('update_subscriber', { subscriber, fields: { country: 'south', status: 'old' } })
  t.deepEqual(await counts(), { builtIn: 1, custom: 1, status: 1, prefixed: 1 })
  const absent = { type: 'FIELD_UPDATED', field: 'customFields.name' } as const
  const { body } = await draft(organization, absent, {})
  t.regex(body.details[0].message, /there is no field "customFields\.name"/)
})

test("the days in the conditions of an event are those of the organization's time zone", async (t) => {
  const organization = await api.organization()
  await organization.data('update_organization_settings', { timezone: 'Pacific/Auckland' })
  const subscriberId = await person(organization, 'ann')
  const when = (operator: 'before' | 'gte') =>
    live(organization, {
      type: 'EVENT',
      eventType: 'BOOKED',
      where: [{ path: 'metadata.at', operator, value: '2025-03-02' }],
    })
  const [before, since] = [await when('before'), await when('gte')]
  // In Auckland it is one o'clock in the morning of the next day.
  const answer = await api.request('POST', '/api/v2/events', {
    token: organization.token,
    body: { subscriberId, eventType: 'BOOKED', metadata: { at: '2025-03-01T12:00:00Z' } },
  })
  t.is(answer.status, 201, JSON.stringify(answer.body))
  t.deepEqual([await runs(organization, before), await runs(organization, since)], [0, 1])
})

test('a field that does not exist is refused where it stands, with the name it may mean', async (t) => {
  const organization = await api.organization()
  await person(organization, 'ann', { fields: { birthday: '1990-01-01' } })
  const answer = await draft(organization, { type: 'FIELD_UPDATED', field: 'birthdya' }, {})
  t.is(answer.status, 400)
  t.like(answer.body.details[0], { stepId: 'start', path: 'steps[0].config.field' })
  t.regex(answer.body.details[0].message, /no field "birthdya"; .*birthday/)
})

test('FIELD_UPDATED refuses values that its field never has', async (t) => {
  const organization = await api.organization()
  await organization.data('update_organization_settings', { timezone: 'Europe/Paris' })
  await person(organization, 'ann', { fields: { seats: 5, due: '2027-03-01', active: true, plan: 'free' } })
  const faultsOf = async (field: string, from: unknown, to: unknown) => {
    const { body } = await draft(organization, { type: 'FIELD_UPDATED', field, from, to } as never, {})
    return (body.details ?? []).map(
      ({ path, message }: { path: string; message: string }) => `${path}: ${message}`,
    )
  }
  t.deepEqual(await faultsOf('seats', 4, null), [])
  t.deepEqual(await faultsOf('due', '2027-03-01', '2027-03-01T08:00:00.000Z'), [])
  t.deepEqual(await faultsOf('active', false, true), [])
  t.deepEqual(await faultsOf('name', null, 'Ann'), [])
  const because = (type: string) => `because the field has the type ${type}`
  t.deepEqual(await faultsOf('seats', '4', true), [
    `steps[0].config.from: must be a number, not text, ${because('number')}`,
    `steps[0].config.to: must be a number, not a boolean, ${because('number')}`,
  ])
  t.deepEqual(await faultsOf('plan', null, 5), [
    `steps[0].config.to: must be a string, not a number, ${because('string')}`,
  ])
  t.deepEqual(await faultsOf('due', 'soon', '2027-03-01T09:00'), [
    `steps[0].config.from: must be an ISO 8601 date, such as "2027-03-01", not text, ${because('date')}`,
    'steps[0].config.to: is stored as "2027-03-01T08:00:00.000Z"; write that',
  ])
  const text = 'must be text, or null for none, because name is text'
  t.deepEqual(await faultsOf('name', 5, ''), [`steps[0].config.from: ${text}`, `steps[0].config.to: ${text}`])
  t.deepEqual(await faultsOf('country', 'FR', 'de'), [
    'steps[0].config.to: is not a country; write its ISO 3166-1 alpha-2 code in capitals, such as "FR"',
  ])
})

test('WORKFLOW_EVENT lets people enter because of what another workflow came to', async (t) => {
  const organization = await api.organization()
  const first = await live(organization, { type: 'MANUAL' })
  const after = await live(organization, {
    type: 'WORKFLOW_EVENT',
    workflowId: first,
    event: 'WORKFLOW_COMPLETED',
    filters: [{ field: 'entry.exitReason', operator: 'equals', value: 'END' }],
  })
  const canceled = await live(organization, {
    type: 'WORKFLOW_EVENT',
    workflowId: first,
    event: 'WORKFLOW_CANCELED',
  })
  const subscriberId = await person(organization, 'ann')
  await organization.data('add_subscriber_to_workflow', { workflowId: first, subscriberId })
  await eventually('the second run', async () => {
    await watchEchoes(api.services)
    return (await runs(organization, after)) === 1
  })
  t.is(await runs(organization, canceled), 0)
  // Only WORKFLOW_EVENT triggers react to the events of runs.
  t.is(await runs(organization, first), 1)
})

test('workflows that start each other are cut off after ten runs, and the ledger says so', async (t) => {
  const organization = await api.organization()
  const subscriberId = await person(organization, 'ann')
  const start = await live(organization, { type: 'MANUAL' })
  // The workflow triggers itself. A draft can name its own id only after the workflow exists.
  const { workflow } = await organization.data('get_workflow', { workflowId: start })
  await organization.data('configure_workflow_draft', {
    workflowId: start,
    expectedUpdatedAt: workflow.updatedAt,
    settings: EVERY_TIME,
    steps: [
      step('start', 'TRIGGER', { type: 'MANUAL' }),
      step('again', 'TRIGGER', { type: 'WORKFLOW_EVENT', workflowId: start, event: 'WORKFLOW_COMPLETED' }),
      SEEN,
    ],
    edges: [
      { from: 'start', to: 'seen' },
      { from: 'again', to: 'seen' },
    ],
  })
  await organization.confirmed('publish_workflow', { workflowId: start })
  await organization.data('add_subscriber_to_workflow', { workflowId: start, subscriberId })
  await eventually(
    'the loop to be cut',
    async () => {
      await watchEchoes(api.services)
      return (await decisionsOf(api.services, decodeId('wf', start))).includes('ENTRY_REFUSED LOOP')
    },
    { withinMs: 60_000 },
  )
  t.is(await runs(organization, start), 11)
})

test('workflows that move people in and out of segments for each other are cut off as well', async (t) => {
  const organization = await api.organization()
  const subscriberId = await person(organization, 'ann')
  const segment = async (name: string, filter: object): Promise<string> =>
    (await organization.data('create_segment', { name, filters: [filter] })).segment.id
  await organization.data('get_or_create_tags', { names: ['in'] })
  const tagged = await segment('Tagged', { field: 'tags', operator: 'has_any', value: ['in'] })
  const answered = await segment('Answered', {
    field: 'event',
    operator: 'performed',
    event: 'WEBHOOK_EXECUTED',
  })
  const leave = step('leave', 'REMOVE_TAG', { tagNames: ['in'] })
  const comeBack = step('back', 'ADD_TAG', { tagNames: ['in'] })
  const entered = await live(organization, { type: 'SEGMENT_ENTERED', segmentId: tagged }, EVERY_TIME, leave)
  const left = await live(organization, { type: 'SEGMENT_EXITED', segmentId: tagged }, EVERY_TIME, comeBack)
  const last = await live(organization, { type: 'SEGMENT_ENTERED', segmentId: answered })
  await organization.data('bulk_add_tags', { subscriberIds: [subscriberId], tagNames: ['in'] })
  const decisions = async (workflowId: string) => await decisionsOf(api.services, decodeId('wf', workflowId))
  await eventually(
    'the circle to be cut',
    async () => {
      await watchSegments(api.services)
      return (await decisions(left)).includes('ENTRY_REFUSED LOOP')
    },
    { withinMs: 60_000 },
  )
  t.deepEqual([await runs(organization, entered), await runs(organization, left)], [6, 5])

  // Events that a run causes later, by its request, count as caused by the run too.
  const eleventh = (await runsOf(api.services, organization, decodeId('wf', entered))).at(-1)
  const scope = {
    organizationId: organization.id,
    actor: { kind: 'system' as const, id: 'test', name: 'test' },
  }
  await unitOfWork(api.services, scope, async (call) => {
    const data = { runId: encodeId('run', eleventh?.id ?? '') }
    await recordEvents(call, [
      { subscriberId: decodeId('sub', subscriberId), type: 'WEBHOOK_EXECUTED', data },
    ])
  })
  await eventually('the move to be seen', async () => {
    await watchSegments(api.services)
    return (await decisions(last)).length > 0
  })
  t.deepEqual(await decisions(last), ['ENTRY_REFUSED LOOP'])
  t.is(await runs(organization, last), 0)
})
