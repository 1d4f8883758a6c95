import anyTest, { type TestFn } from 'ava'

import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

const test = anyTest as TestFn<{ api: TestApi; own: TestOrganization }>

test.before(async (t) => {
  const api = await startApi({ TEMPORAL_TASK_QUEUE: `workflow-versions-${process.pid}` })
  t.context = { api, own: await api.organization() }
})
test.after.always((t) => t.context.api?.close())

const START = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
const pause = (amount: number) => ({ id: 'pause', type: 'WAIT', config: { amount, unit: 'DAYS' } })
const hello = (subject: string) => ({
  id: 'hello',
  type: 'EMAIL',
  config: { subject, content: 'Hello', contentType: 'MARKDOWN' },
})
const TAG = { id: 'tag', type: 'ADD_TAG', name: 'Mark them', config: { tagNames: ['seen'] } }
const GOAL = { id: 'bought', name: 'Bought', event: 'SUBSCRIBER_PAYMENT', windowDays: 10 }

type Draft = { id: string; updatedAt: string }

async function configure(
  own: TestOrganization,
  { id, updatedAt }: Draft,
  steps: { id: string }[],
  more = {},
) {
  const edges = steps.slice(1).map((each, index) => ({ from: steps[index]?.id, to: each.id }))
  const input = { workflowId: id, expectedUpdatedAt: updatedAt, steps, edges, ...more }
  return (await own.data('configure_workflow_draft', input)).workflow
}

async function published(own: TestOrganization, { id }: Draft): Promise<Draft> {
  return (await own.confirmed('publish_workflow', { workflowId: id })).body.data.workflow
}

test('versions are listed newest first, and compared with each other and with the draft', async (t) => {
  const { own } = t.context
  const { workflow } = await own.data('create_workflow', { name: 'Versions' })
  const first = await configure(own, workflow, [START, hello('One'), pause(1)], {
    settings: { priority: 10 },
    successGoals: [GOAL],
  })
  const one = await published(own, first)
  const person = await own.data('add_subscriber', { email: 'versions@example.com' })
  await own.data('add_subscriber_to_workflow', { workflowId: one.id, subscriberId: person.subscriber.id })
  const second = await configure(own, one, [START, hello('Two'), TAG, pause(2)], {
    settings: { priority: 20, timezone: 'Europe/Paris' },
    successGoals: [{ ...GOAL, windowDays: 20 }],
  })
  const two = await published(own, second)

  const { versions, hasMore } = await own.data('list_workflow_versions', { workflowId: two.id })
  t.like(versions, [
    { number: 2, isCurrent: true, steps: 4, activeRuns: 0 },
    { number: 1, isCurrent: false, steps: 3, activeRuns: 1 },
  ])
  t.false(hasMore)
  t.true((await own.data('list_workflow_versions', { workflowId: two.id, limit: 1 })).hasMore)

  const compare = async (fromVersion: number, toVersion?: number) =>
    (
      await own.data('compare_workflow_versions', {
        workflowId: two.id,
        fromVersion,
        ...(toVersion && { toVersion }),
      })
    ).comparison
  const between = await compare(1, 2)
  t.deepEqual(between.added, [{ id: 'tag', type: 'ADD_TAG', name: 'Mark them' }])
  t.deepEqual(between.removed, [])
  t.deepEqual(between.changed, [
    {
      id: 'hello',
      type: 'EMAIL',
      name: null,
      changes: [{ path: 'email.subject', before: 'One', after: 'Two' }],
    },
    { id: 'pause', type: 'WAIT', name: null, changes: [{ path: 'config.amount', before: 1, after: 2 }] },
  ])
  t.deepEqual(between.edges, {
    added: [
      { from: 'hello', to: 'tag', port: 'next' },
      { from: 'tag', to: 'pause', port: 'next' },
    ],
    removed: [{ from: 'hello', to: 'pause', port: 'next' }],
  })
  t.deepEqual(between.settings, [
    { path: 'priority', before: 10, after: 20 },
    { path: 'timezone', after: 'Europe/Paris' },
  ])
  t.deepEqual(between.goals, [{ path: 'bought.windowDays', before: 10, after: 20 }])
  t.deepEqual((await compare(2, 1)).removed, between.added)
  t.true((await compare(1, 1)).identical)
  const drafted = await compare(2)
  t.true(drafted.identical, JSON.stringify(drafted))
  t.is(drafted.to.number, null)
  await configure(own, two, [START, hello('Three'), TAG, pause(2)])
  t.like((await compare(2)).changed, [{ id: 'hello', changes: [{ path: 'email.subject', after: 'Three' }] }])
})

test('a version that there is not, and a workflow of another organization, answer as missing', async (t) => {
  const { api, own } = t.context
  const { workflow } = await own.data('create_workflow', { name: 'None' })
  t.deepEqual((await own.data('list_workflow_versions', { workflowId: workflow.id })).versions, [])
  const absent = await own.call('compare_workflow_versions', { workflowId: workflow.id, fromVersion: 1 })
  t.is(absent.body.code, 'NOT_FOUND')
  t.regex(absent.body.error, /list_workflow_versions/)
  const stranger = await api.organization()
  for (const tool of ['list_workflow_versions', 'compare_workflow_versions', 'get_workflow']) {
    const more = tool === 'compare_workflow_versions' ? { fromVersion: 1 } : {}
    t.is((await stranger.call(tool, { workflowId: workflow.id, ...more })).status, 404)
  }
  const { statistics } = await own.data('get_workflow', { workflowId: workflow.id })
  t.like(statistics, { entries: 0, active: 0, completions: 0, goals: [], emails: [], holdouts: [] })
})
