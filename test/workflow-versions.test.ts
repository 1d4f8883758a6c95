import anyTest, { type TestFn } from 'ava'
import { sql } from 'kysely'

import { execute, rows } from '../src/database.ts'
import { loadVersion } from '../src/domain/automations/definition/versions.ts'
import { decodeId } from '../src/ids.ts'
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
const EMPTY = { id: 'empty', type: 'EMAIL', config: {} }
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

test('a process keeps the versions it used last, as many as it has room for', async (t) => {
  const { api } = t.context
  const own = await api.organization()
  const em = () => api.services.orm.em.fork()
  const { workflow } = await own.data('create_workflow', { name: 'Large' })
  const insert = async (count: number, bytes: number) =>
    await rows<{ id: string }>(
      em(),
      sql`insert into automation_version (id, organization_id, automation_id, number, definition)
        select new_id(), ${own.id}, ${decodeId('wf', workflow.id)}, coalesce(max(version.number), 0) + n,
          jsonb_build_object('steps', '[]'::jsonb, 'edges', '[]'::jsonb, 'name', repeat('x', ${bytes}::int))
        from generate_series(1, ${count}::int) n
        left join automation_version version on version.automation_id = ${decodeId('wf', workflow.id)}
        group by n returning id`,
    )
  const [first, last] = await insert(2, 10)
  if (!first || !last) throw new Error('no versions were made')
  const large = await insert(40, 1_000_000)
  for (const { id } of [first, ...large, last]) await loadVersion(em(), own.id, id)
  await execute(em(), sql`delete from automation_version where organization_id = ${own.id}`)
  t.is((await loadVersion(em(), own.id, last.id)).number, 2)
  await t.throwsAsync(loadVersion(em(), own.id, first.id), { message: /does not exist/ })
})

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
  const page = { workflowId: two.id, limit: 1 }
  const newest = await own.data('list_workflow_versions', page)
  t.like(newest, { versions: [{ number: 2 }], hasMore: true })
  const oldest = await own.data('list_workflow_versions', { ...page, cursor: newest.nextCursor })
  t.like(oldest, { versions: [{ number: 1 }], nextCursor: null, hasMore: false })

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

type Live = Draft & {
  status: string
  publishedVersion: { number: number } | null
  draft: { steps: { id: string; config: Record<string, string> }[] }
}

async function live(own: TestOrganization, tag: string): Promise<Live> {
  const { workflow } = await own.data('create_workflow', { name: 'Live' })
  const trigger = { id: 'start', type: 'TRIGGER', config: { type: 'TAG_ADDED', tagNames: [tag] } }
  await configure(own, workflow, [trigger, hello('One'), pause(1)])
  return (await published(own, workflow)) as Live
}

async function read(own: TestOrganization, { id }: Draft): Promise<Live> {
  return (await own.data('get_workflow', { workflowId: id })).workflow
}

async function versionsOf(own: TestOrganization, email: string): Promise<number[]> {
  const { runs } = await own.data('get_subscriber_workflow_runs', { email })
  return runs.map(({ version }: { version: { number: number } }) => version.number)
}

test('saving a draft publishes nothing: people enter as before until the next publishing', async (t) => {
  const { own } = t.context
  const one = await live(own, 'drafted')
  const other = { id: 'start', type: 'TRIGGER', config: { type: 'TAG_ADDED', tagNames: ['published'] } }
  // Saving a draft needs no confirmation.
  const saved = await configure(own, one, [other, TAG, pause(2)], { settings: { priority: 90 } })
  t.like(saved, { status: 'ACTIVE', publishedVersion: { number: 1 } })
  t.is((await own.data('list_workflow_versions', { workflowId: one.id })).versions.length, 1)
  await own.data('add_subscriber', { email: 'before@example.com', tags: ['drafted', 'published'] })
  t.deepEqual(await versionsOf(own, 'before@example.com'), [1])
  const two = await published(own, one)
  t.like(two, { status: 'ACTIVE', publishedVersion: { number: 2 } })
  await own.data('add_subscriber', { email: 'after@example.com', tags: ['drafted', 'published'] })
  t.deepEqual(await versionsOf(own, 'after@example.com'), [2])
  t.deepEqual(await versionsOf(own, 'before@example.com'), [1])
})

test('a draft that was never published lets nobody in, by hand or by its trigger', async (t) => {
  const { own } = t.context
  const { workflow } = await own.data('create_workflow', { name: 'Draft' })
  const trigger = { id: 'start', type: 'TRIGGER', config: { type: 'TAG_ADDED', tagNames: ['never'] } }
  await configure(own, workflow, [trigger, pause(1)])
  const email = 'nobody@example.com'
  await own.data('add_subscriber', { email, tags: ['never'] })
  const refused = await own.call('add_subscriber_to_workflow', { workflowId: workflow.id, email })
  t.deepEqual([refused.status, refused.body.code], [409, 'WRONG_STATE'])
  t.regex(refused.body.error, /DRAFT.*publish_workflow/)
  t.deepEqual(await versionsOf(own, email), [])
})

test('what is changed of the email of a step goes out with the next version, and no version changes', async (t) => {
  const { own } = t.context
  const one = await live(own, 'emailed')
  const campaignId = one.draft.steps.find(({ id }) => id === 'hello')?.config['campaignId']
  const difference = async (more: object) =>
    (await own.data('compare_workflow_versions', { workflowId: one.id, fromVersion: 1, ...more })).comparison
  await own.data('edit_campaign', { id: campaignId, subject: 'Edited' })
  const subject = [{ id: 'hello', changes: [{ path: 'email.subject', before: 'One', after: 'Edited' }] }]
  t.like((await difference({})).changed, subject)
  t.true((await difference({ toVersion: 1 })).identical)
  await published(own, one)
  await own.data('edit_campaign', { id: campaignId, subject: 'Edited again' })
  t.like((await difference({ toVersion: 2 })).changed, subject)
})

test('each publishing is a version of its own, also of the same draft and at the same moment', async (t) => {
  const { own } = t.context
  const one = await live(own, 'repeated')
  await published(own, one)
  const same = await own.data('compare_workflow_versions', {
    workflowId: one.id,
    fromVersion: 1,
    toVersion: 2,
  })
  t.true(same.comparison.identical)
  // Two different inputs, because calls with the same input share one confirmation code, which works once.
  const answers = await Promise.all(
    [{ activate: true }, { activate: false }].map((wish) =>
      own.confirmed('publish_workflow', { workflowId: one.id, ...wish }),
    ),
  )
  const numbers = answers.map(({ body }) => body.data.version.number).toSorted((a, b) => a - b)
  t.deepEqual(numbers, [3, 4])
  t.is((await read(own, one)).publishedVersion?.number, 4)
})

test('a draft that became faulty after the question is not published by its answer', async (t) => {
  const { own } = t.context
  const one = await live(own, 'asked')
  const asked = await own.call('publish_workflow', { workflowId: one.id })
  t.is(asked.status, 428)
  const { updatedAt } = await read(own, one)
  await configure(own, { id: one.id, updatedAt }, [START, EMPTY])
  const { confirmationCode } = asked.body
  const refused = await own.call('publish_workflow', { workflowId: one.id, confirmationCode })
  t.deepEqual([refused.status, refused.body.code], [400, 'INVALID_INPUT'])
  t.is((await read(own, one)).publishedVersion?.number, 1)
})

test('a draft is written only by who has read it since: publishing, a status and a group count as changes', async (t) => {
  const { own } = t.context
  const one = await live(own, 'stale')
  const { group } = await own.data('create_workflow_group', { name: 'Stale', conflictStrategy: 'FIRST_WINS' })
  const changes = [
    () => own.confirmed('publish_workflow', { workflowId: one.id }),
    () => own.call('update_workflow_status', { workflowId: one.id, status: 'PAUSED' }),
    () => own.call('set_workflow_group', { workflowId: one.id, groupId: group.id }),
  ]
  for (const change of changes) {
    const { updatedAt } = await read(own, one)
    t.is((await change()).status, 200)
    const input = { workflowId: one.id, expectedUpdatedAt: updatedAt }
    const definition = { steps: [START], edges: [] }
    for (const [tool, more] of [
      ['configure_workflow_draft', definition],
      ['update_workflow_draft', { definition }],
    ] as const) {
      const refused = await own.call(tool, { ...input, ...more })
      t.deepEqual([refused.status, refused.body.code], [409, 'STALE_VERSION'])
    }
  }
  t.is((await read(own, one)).draft.steps.length, 3)
})

test('a workflow in the archive can be edited, and comes back only when it is told to', async (t) => {
  const { own } = t.context
  const one = await live(own, 'archived')
  await own.confirmed('update_workflow_status', { workflowId: one.id, status: 'ARCHIVED' })
  const archived = await read(own, one)
  t.is((await configure(own, archived, [START, pause(5)])).status, 'ARCHIVED')
  t.like(await published(own, one), { status: 'ARCHIVED', publishedVersion: { number: 2 } })
  const back = await own.confirmed('publish_workflow', { workflowId: one.id, activate: true })
  t.like(back.body.data.workflow, { status: 'ACTIVE', publishedVersion: { number: 3 } })
})
