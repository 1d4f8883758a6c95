import test from 'ava'
import fc from 'fast-check'
import { sql } from 'kysely'

import type { Call } from '../src/catalogue/tool.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { execute, rows } from '../src/database.ts'
import { signToken } from '../src/delivery/tracking-token.ts'
import { releasePlaces } from '../src/domain/automations/groups/group-queue.ts'
import { cancelRuns } from '../src/domain/automations/runs/runs.ts'
import { applySegmentChanges } from '../src/domain/segments/changes.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { watchSegments } from '../worker/segment-watch.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { decisionsOf } from './helpers/automation.ts'
import { eventually } from './helpers/eventually.ts'
import { publishWorkflow } from './helpers/workflow.ts'

const ACTOR = { kind: 'system' as const, id: 'test', name: 'test' }
let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

type Trigger = { type: 'SEGMENT_ENTERED' | 'SEGMENT_EXITED'; segmentId: string; filters?: unknown[] }
const tagged = (...value: string[]) => ({ field: 'tags', operator: 'has_any', value })

async function segment(organization: TestOrganization, ...filters: unknown[]): Promise<string> {
  await organization.data('get_or_create_tags', { names: ['vip', 'staff'] })
  const made = await organization.data('create_segment', { name: 'Segment', filters })
  return made.segment.id
}

/** Publishes a workflow that people enter every time its trigger fires. */
async function live(organization: TestOrganization, config: Trigger): Promise<string> {
  const steps = [
    { id: 'start', type: 'TRIGGER', config },
    { id: 'tag', type: 'ADD_TAG', config: { tagNames: ['seen'] } },
  ]
  const settings = { reEntry: { mode: 'EVERY_TIME' }, exitOnUnsubscribe: false }
  return await publishWorkflow(organization, steps, { name: config.type, settings })
}

async function person(organization: TestOrganization, name: string, more: object = {}): Promise<string> {
  const { subscriber } = await organization.data('add_subscriber', { email: `${name}@example.com`, ...more })
  return subscriber.id
}

/** Runs the watch until it has no work left for this organization. A broken segment always has work left. */
async function settle({ id }: TestOrganization, { isBroken = false } = {}): Promise<void> {
  await eventually('the segments to settle', async () => {
    await watchSegments(api.services)
    const left = await rows(
      api.services.orm.em.fork(),
      sql`select from segment_change where organization_id = ${id}
        union all select from watched_segment
        where organization_id = ${id} and recheck_at is not null and not ${isBroken}`,
    )
    return left.length === 0
  })
}

/** Returns the names of the people who entered the workflow, after all segments are settled. */
async function entered(
  organization: TestOrganization,
  workflowId: string,
  options: { isBroken?: boolean } = {},
): Promise<string> {
  await settle(organization, options)
  const found = await rows<{ name: string }>(
    api.services.orm.em.fork(),
    sql`select split_part(subscriber.email, '@', 1) as name from automation_run run
      join subscriber on subscriber.organization_id = run.organization_id and subscriber.id = run.subscriber_id
      where run.organization_id = ${organization.id} and run.automation_id = ${decodeId('wf', workflowId)}
      order by 1`,
  )
  return found.map(({ name }) => name).join(' ')
}

const change = (organization: TestOrganization, subscriber: string, more: object) =>
  organization.data('update_subscriber', { subscriber, ...more })

for (const [title, filters, enter, leave] of [
  [
    'a tag',
    [tagged('vip')],
    (organization: TestOrganization, id: string) =>
      organization.data('bulk_add_tags', { subscriberIds: [id], tagNames: ['VIP'] }),
    (organization: TestOrganization, id: string) =>
      organization.data('bulk_remove_tags', { subscriberIds: [id], tagNames: ['vip'] }),
  ],
  [
    'a name',
    [{ field: 'name', operator: 'is_set' }],
    (organization: TestOrganization, id: string) => change(organization, id, { name: 'Ann' }),
    (organization: TestOrganization, id: string) => change(organization, id, { name: '' }),
  ],
  [
    'a payment and a refund',
    [{ field: 'revenue', operator: 'gte', value: 50 }],
    (organization: TestOrganization, subscriberId: string) =>
      organization.data('create_event', {
        subscriberId,
        eventType: 'SUBSCRIBER_PAYMENT',
        amount: 50,
        currency: 'EUR',
      }),
    (organization: TestOrganization, subscriberId: string) =>
      organization.data('create_event', {
        subscriberId,
        eventType: 'SUBSCRIBER_REFUND',
        amount: 1,
        currency: 'EUR',
      }),
  ],
  [
    'unsubscribing and coming back',
    [{ field: 'status', operator: 'equals', value: 'UNSUBSCRIBED' }],
    (organization: TestOrganization, subscriberId: string) =>
      organization.confirmed('unsubscribe', { subscriberId }),
    (organization: TestOrganization, id: string) => change(organization, id, { resubscribe: true }),
  ],
] as const) {
  test(`somebody enters and leaves a segment by ${title}, each once`, async (t) => {
    const organization = await api.organization()
    const segmentId = await segment(organization, ...filters)
    const member = await person(organization, 'member')
    await enter(organization, member)
    const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
    const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId })
    const ann = await person(organization, 'ann')
    t.is(await entered(organization, entering), '')
    await enter(organization, ann)
    await change(organization, ann, { country: 'FR', resubscribe: false })
    t.is(await entered(organization, entering), 'ann')
    await leave(organization, ann)
    await leave(organization, member)
    t.is(await entered(organization, leaving), 'ann member')
    t.is(await entered(organization, entering), 'ann')
  })
}

test('people who are made without being subscribed are looked at too', async (t) => {
  const organization = await api.organization({ doubleOptIn: true })
  const pending = await segment(organization, {
    field: 'status',
    operator: 'in',
    value: ['PENDING_CONFIRMATION', 'TRANSACTIONAL'],
  })
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId: pending })
  await person(organization, 'asked')
  await person(organization, 'quiet', { triggerWorkflows: false })
  const sent = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: 'written@example.com', subject: 'Hello', content: 'Hello' },
  })
  t.is(sent.status, 200)
  t.is(await entered(organization, entering), 'asked written')
})

test('a repeated open, which is no event, is looked at too', async (t) => {
  const organization = await api.organization()
  const { id: organizationId, token } = organization
  const sent = await api.request('POST', '/api/v1/emails', {
    token,
    body: { to: 'ann@example.com', subject: 'Hello', content: 'Hello' },
  })
  const messageId = decodeId('eml', sent.body.id)
  const em = api.services.orm.em.fork()
  await execute(em, sql`update message set sent_at = now() - interval '1 hour' where id = ${messageId}`)
  const pixel = signToken(api.services.config.secret, { kind: 'open', organizationId, messageId })
  const open = () =>
    api.request('GET', `/o/${pixel}.gif`, { headers: { 'user-agent': 'Mozilla/5.0 Firefox/140.0' } })
  t.is((await open()).status, 200)
  await api.settleVisits()
  await execute(
    em,
    sql`update subscriber_stat set last_opened_at = '2020-01-01' where organization_id = ${organizationId}`,
  )
  const segmentId = await segment(organization, {
    field: 'lastOpenedAt',
    operator: 'after',
    value: '2021-01-01',
  })
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
  t.is(await entered(organization, entering), '')
  await open()
  await api.settleVisits()
  t.is(await entered(organization, entering), 'ann')
})

test('a run that queues, waited in vain or is retried is no event, and is looked at too', async (t) => {
  const organization = await api.organization()
  const em = api.services.orm.em.fork()
  const within = <Result>(work: (call: Call) => Promise<Result>) =>
    unitOfWork(api.services, { organizationId: organization.id, actor: ACTOR }, work)
  const { group } = await organization.data('create_workflow_group', {
    name: 'One',
    conflictStrategy: 'QUEUE',
  })
  const steps = [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    { id: 'wait', type: 'WAIT', config: { amount: 1, unit: 'DAYS' } },
  ]
  const workflows: string[] = []
  for (const name of ['holder', 'queue']) {
    const workflowId = await publishWorkflow(organization, steps, { name })
    await organization.data('set_workflow_group', { workflowId, groupId: group.id })
    workflows.push(workflowId)
  }
  const segmentId = await segment(organization, {
    field: 'workflow',
    operator: 'active_in',
    value: workflows[1],
  })
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
  const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId })
  const subscriberId = await person(organization, 'ann')
  const runs: string[] = []
  for (const workflowId of workflows) {
    t.is(await entered(organization, entering), '')
    const { run } = await organization.data('add_subscriber_to_workflow', { workflowId, subscriberId })
    runs.push(decodeId('run', run.id))
  }
  t.is(await entered(organization, entering), 'ann')

  const [holder, queued] = runs
  await execute(em, sql`update automation_run set queue_expires_at = now() where id = ${queued}`)
  const place = { groupId: decodeId('grp', group.id), subscriberId: decodeId('sub', subscriberId) }
  await within((call) => releasePlaces(call, [place]))
  t.is(await entered(organization, leaving), 'ann')

  await within((call) => cancelRuns(call, [holder ?? ''], 'MANUAL'))
  const last = await organization.data('add_subscriber_to_workflow', {
    workflowId: workflows[1],
    subscriberId,
  })
  t.is(await entered(organization, entering), 'ann ann')
  const failed = decodeId('run', last.run.id)
  await within((call) => cancelRuns(call, [failed], 'ERROR', { status: 'FAILED' }))
  await execute(
    em,
    sql`insert into run_step (organization_id, run_id, visit, step_id, type, outcome)
      select organization_id, id, visit, 'wait', 'WAIT', '{"result": "FAILED"}' from automation_run where id = ${failed}`,
  )
  t.is(await entered(organization, leaving), 'ann ann')
  await organization.data('retry_workflow_run', { runId: last.run.id })
  t.is(await entered(organization, entering), 'ann ann ann')
})

test('a segment inside a segment moves people of the outer one', async (t) => {
  const organization = await api.organization()
  const inner = await segment(organization, tagged('vip'))
  const outer = await segment(organization, {
    not: { field: 'segment', operator: 'has_any', value: [inner] },
  })
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId: outer })
  const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId: outer })
  const ann = await person(organization, 'ann', { tags: ['vip'] })
  t.is(await entered(organization, entering), '')
  await change(organization, ann, { tags: [], replaceTags: true })
  t.is(await entered(organization, entering), 'ann')
  await change(organization, ann, { tags: ['vip'] })
  t.is(await entered(organization, leaving), 'ann')
})

test('a change that starts no workflows moves people in silence', async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, tagged('vip'))
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
  const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId })
  const ann = await person(organization, 'ann', { tags: ['vip'], triggerWorkflows: false })
  t.is(await entered(organization, entering), '')
  t.deepEqual(await decisionsOf(api.services, decodeId('wf', entering)), ['ENTRY_REFUSED SILENT'])
  await change(organization, ann, { name: 'Ann' })
  t.is(await entered(organization, entering), '')
  await change(organization, ann, { tags: [], replaceTags: true })
  t.is(await entered(organization, leaving), 'ann')
})

test("the trigger's own filters still decide, and each move is an event of the person", async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, tagged('vip'))
  const config = { type: 'SEGMENT_ENTERED' as const, segmentId }
  const entering = await live(organization, {
    ...config,
    filters: [{ field: 'tags', operator: 'has_none', value: ['staff'] }],
  })
  await person(organization, 'staff', { tags: ['vip', 'staff'] })
  const ann = await person(organization, 'ann', { tags: ['vip'] })
  t.is(await entered(organization, entering), 'ann')
  const { events } = await organization.data('list_subscriber_events', { subscriberId: ann, limit: 100 })
  const moves = events.filter(({ type }: { type: string }) => type.startsWith('SEGMENT_'))
  t.deepEqual(
    moves.map(({ type, data }: { type: string; data: unknown }) => [type, data]),
    [['SEGMENT_ENTERED', { segmentId }]],
  )
})

test('whoever is in a segment when it begins to be watched, or when its filters change, does not enter', async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, tagged('vip'))
  const ann = await person(organization, 'ann', { tags: ['vip'] })
  const bob = await person(organization, 'bob', { tags: ['staff'] })
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
  const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId })
  await organization.data('update_segment', { segmentId, filters: [tagged('staff')] })
  t.is(await entered(organization, entering), '')
  t.is(await entered(organization, leaving), '')
  await change(organization, ann, { name: 'Ann' })
  await change(organization, bob, { tags: [], replaceTags: true })
  t.is(await entered(organization, entering), '')
  t.is(await entered(organization, leaving), 'bob')
  await change(organization, ann, { tags: ['staff'] })
  t.is(await entered(organization, entering), 'ann')
})

test('a change of the time zone moves people between days in silence', async (t) => {
  const organization = await api.organization()
  const ann = await person(organization, 'ann')
  await execute(
    api.services.orm.em.fork(),
    sql`update subscriber set created_at = '2025-03-01T22:30:00Z' where organization_id = ${organization.id}`,
  )
  const segmentId = await segment(organization, {
    field: 'createdAt',
    operator: 'before',
    value: '2025-03-02',
  })
  const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId })
  await settle(organization)
  await organization.data('update_organization_settings', { timezone: 'Pacific/Auckland' })
  await change(organization, ann, { name: 'Ann' })
  t.is(await entered(organization, leaving), '')
})

test('whoever is erased is in no segment any more, and does not leave one by it', async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, tagged('vip'))
  const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId })
  const ann = await person(organization, 'ann', { tags: ['vip'] })
  await person(organization, 'bob', { tags: ['vip'] })
  await settle(organization)
  const path = `/api/v2/subscribers/${ann}`
  t.is((await api.request('DELETE', path, { token: organization.token })).status, 200)
  t.is(await entered(organization, leaving), '')
  const members = await rows(
    api.services.orm.em.fork(),
    sql`select from segment_member where organization_id = ${organization.id}`,
  )
  t.is(members.length, 1)
})

test('only a workflow that is published and not archived keeps a segment watched', async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, tagged('vip'))
  const watched = async () => {
    const found = await rows(
      api.services.orm.em.fork(),
      sql`select from watched_segment where organization_id = ${organization.id}`,
    )
    return found.length
  }
  t.is(await watched(), 0)
  const workflowId = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
  t.is(await watched(), 1)
  const refused = await organization.call('delete_segment', { segmentId })
  t.deepEqual([refused.status, refused.body.details.usedBy[0].id], [409, workflowId])
  await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  await person(organization, 'paused', { tags: ['vip'] })
  await settle(organization)
  await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })
  t.is(await entered(organization, workflowId), '')
  await organization.confirmed('update_workflow_status', { workflowId, status: 'ARCHIVED' })
  t.is(await watched(), 0)
  await person(organization, 'archived', { tags: ['vip'] })
  const noted = await rows(
    api.services.orm.em.fork(),
    sql`select from segment_change where organization_id = ${organization.id}`,
  )
  t.is(noted.length, 0)
  await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })
  await person(organization, 'later', { tags: ['vip'] })
  t.is(await entered(organization, workflowId), 'later')
})

test('a trigger must name a segment of the organization, when it is saved', async (t) => {
  const [mine, theirs] = [await api.organization(), await api.organization()]
  const { workflow } = await mine.data('create_workflow', { name: 'Series' })
  const save = (segmentId: string) =>
    mine.call('configure_workflow_draft', {
      workflowId: workflow.id,
      expectedUpdatedAt: workflow.updatedAt,
      steps: [{ id: 'start', type: 'TRIGGER', config: { type: 'SEGMENT_EXITED', segmentId } }],
      edges: [],
    })
  const errors: string[] = []
  for (const id of [await segment(theirs), encodeId('seg', newId()), 'seg_nonsense']) {
    const answer = await save(id)
    t.deepEqual([answer.status, answer.body.code], [400, 'INVALID_INPUT'])
    t.like(answer.body.details, [{ stepId: 'start', path: 'steps[0].config.segmentId' }])
    errors.push(answer.body.error.replace(id, ''))
  }
  t.is(new Set(errors).size, 1)
})

test('two organizations do not see each other', async (t) => {
  const [mine, theirs] = [await api.organization(), await api.organization()]
  const [a, b] = [await segment(mine, tagged('vip')), await segment(theirs, tagged('vip'))]
  const [entering, others] = [
    await live(mine, { type: 'SEGMENT_ENTERED', segmentId: a }),
    await live(theirs, { type: 'SEGMENT_ENTERED', segmentId: b }),
  ]
  await person(mine, 'ann', { tags: ['vip'] })
  t.is(await entered(mine, entering), 'ann')
  t.is(await entered(theirs, others), '')
  await person(theirs, 'bob', { tags: ['vip'] })
  t.is(await entered(theirs, others), 'bob')
  t.is(await entered(mine, entering), 'ann')
})

test('a change that runs beside the publication is found when it has committed', async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, tagged('vip'))
  const ann = decodeId('sub', await person(organization, 'ann'))
  const published = Promise.withResolvers<string>()
  const begun = Promise.withResolvers<void>()
  const beside = unitOfWork(
    api.services,
    { organizationId: organization.id, actor: ACTOR },
    async ({ em }) => {
      await execute(
        em,
        sql`insert into subscriber_tag (organization_id, subscriber_id, tag_id)
        select organization_id, ${ann}, id from tag where organization_id = ${organization.id} and name = 'vip'`,
      )
      await execute(
        em,
        sql`insert into subscriber_event (id, organization_id, subscriber_id, type)
        values (${newId()}, ${organization.id}, ${ann}, 'TAG_ADDED')`,
      )
      begun.resolve()
      return await published.promise
    },
  )
  await begun.promise
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
  await watchSegments(api.services)
  published.resolve(entering)
  await beside
  t.is(await entered(organization, entering), 'ann')
})

test.serial(
  'a watch that dies before its commit, and watches that race, let everybody enter exactly once',
  async (t) => {
    const organization = await api.organization()
    const segmentId = await segment(organization, tagged('vip'))
    const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
    await settle(organization)
    const ids: string[] = []
    for (let number = 0; number < 20; number++) ids.push(await person(organization, `p${number}`))
    await organization.data('bulk_add_tags', { subscriberIds: ids, tagNames: ['vip'] })
    await t.throwsAsync(
      unitOfWork(api.services, { organizationId: organization.id, actor: ACTOR }, async (call) => {
        while ((await applySegmentChanges(call)) > 0);
        const made = await rows(
          call.em,
          sql`select from automation_run where organization_id = ${organization.id}`,
        )
        t.is(made.length, 20)
        throw new Error('killed')
      }),
      { message: 'killed' },
    )
    await Promise.all([1, 2, 3, 4].map(() => watchSegments(api.services)))
    const names = (await entered(organization, entering)).split(' ')
    t.is(names.length, 20)
    t.is(new Set(names).size, 20)
  },
)

test('a segment that names what is gone keeps its members until it is repaired', async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, tagged('vip'))
  const leaving = await live(organization, { type: 'SEGMENT_EXITED', segmentId })
  const entering = await live(organization, { type: 'SEGMENT_ENTERED', segmentId })
  const ann = await person(organization, 'ann', { tags: ['vip'] })
  t.is(await entered(organization, entering), 'ann')
  await organization.confirmed('delete_tag', { name: 'vip' })
  await change(organization, ann, { name: 'Ann' })
  t.is(await entered(organization, leaving, { isBroken: true }), '')
  await organization.data('update_segment', { segmentId, filters: [{ field: 'name', operator: 'is_set' }] })
  await change(organization, ann, { name: '' })
  t.is(await entered(organization, leaving), 'ann')
})

test.serial('whatever happens, the members are who matches, and each move fired once', async (t) => {
  const operations = fc.array(
    fc.tuple(
      fc.constantFrom('ann', 'bob'),
      fc.constantFrom('vip', 'staff', 'bare', 'named', 'unnamed', 'settle'),
    ),
    { minLength: 4, maxLength: 14 },
  )
  await fc.assert(
    fc.asyncProperty(operations, async (steps) => {
      const organization = await api.organization()
      const name = { field: 'name', operator: 'is_set' }
      const inner = await segment(organization, tagged('vip'))
      const segmentId = await segment(organization, {
        any: [{ all: [{ field: 'segment', operator: 'has_any', value: [inner] }, name] }, tagged('staff')],
      })
      const [entering, leaving] = [
        await live(organization, { type: 'SEGMENT_ENTERED', segmentId }),
        await live(organization, { type: 'SEGMENT_EXITED', segmentId }),
      ]
      const people: Record<string, { id: string; tag: string; name: string; isIn: boolean }> = {}
      for (const each of ['ann', 'bob']) {
        people[each] = { id: await person(organization, each), tag: 'bare', name: '', isIn: false }
      }
      await settle(organization)
      const expected: Record<string, string[]> = { [entering]: [], [leaving]: [] }
      for (const [who, what] of [...steps, ['ann', 'settle'] as const]) {
        const one = people[who]
        if (!one) throw new Error('unknown person')
        if (what === 'settle') {
          await settle(organization)
          for (const [each, state] of Object.entries(people)) {
            const isIn = state.tag === 'staff' || (state.tag === 'vip' && state.name !== '')
            if (isIn !== state.isIn) expected[isIn ? entering : leaving]?.push(each)
            state.isIn = isIn
          }
          continue
        }
        if (what === 'named' || what === 'unnamed') one.name = what === 'named' ? who : ''
        else one.tag = what
        await change(organization, one.id, {
          name: one.name,
          tags: one.tag === 'bare' ? [] : [one.tag],
          replaceTags: true,
        })
      }
      for (const [workflowId, names] of Object.entries(expected)) {
        const found = (await entered(organization, workflowId)).split(' ').filter(Boolean)
        t.deepEqual(found.toSorted(), names.toSorted())
      }
    }),
    { numRuns: 6 },
  )
})
