import { createServer } from 'node:http'

import test from 'ava'
import { sql } from 'kysely'

import { createApp } from '../api/app.ts'
import type { Settings, Step } from '../schema/automation.ts'
import { Failure } from '../src/catalogue/failure.ts'
import type { Call } from '../src/catalogue/tool.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { execute, row, rows } from '../src/database.ts'
import { claimCampaignMails } from '../src/delivery/claims.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { assignGroup } from '../src/domain/automations/groups/group-assignment.ts'
import { createGroup } from '../src/domain/automations/groups/groups.ts'
import { advanceRun, StepRefused } from '../src/domain/automations/runs/advance.ts'
import { endConditionWaits } from '../src/domain/automations/runs/conditions.ts'
import { catchMissedEvents, findOverdueRuns, repairRun } from '../src/domain/automations/runs/overdue.ts'
import { retryRun } from '../src/domain/automations/runs/retry.ts'
import { deliver } from '../src/domain/campaigns/deliver.ts'
import { insertEvents } from '../src/domain/event-rows.ts'
import { recordEvents } from '../src/domain/events.ts'
import { createMember, listMembers, removeMember } from '../src/domain/organizations/members.ts'
import { lockSegments } from '../src/domain/segments/lock.ts'
import { eraseSubscriber } from '../src/domain/subscribers/erasure.ts'
import { unsubscribeSubscriber, updateSubscriber } from '../src/domain/subscribers/subscribers.ts'
import { deleteTag } from '../src/domain/subscribers/tag-records.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { grantAccess, signIn } from '../src/public/sign-in.ts'
import { createServices } from '../src/services.ts'
import { reconcile } from '../worker/reconciler.ts'
import { type Answer, startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { edges, makeTenant, publish, runsOf, step, type Tenant } from './helpers/automation.ts'
import { campaignUnderWay } from './helpers/campaign-under-way.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'
import { authorizeUrl, follow, makeMember, makePkce, registerClient, TestBrowser } from './helpers/oauth.ts'
import { publishWorkflow } from './helpers/workflow.ts'

/** Calls and background work that meet in the database. Serial tests, because each counts who waits for a lock. */
let api: TestApi
let tenant: Tenant

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `concurrency-${process.pid}`, LANE_RATE_TRANSACTIONAL: '40' })
  tenant = await makeTenant(api.services)
})
test.after.always(() => api?.close())

const em = () => api.services.orm.em.fork()

/** The scope of a transaction in this organization. */
function scopeOf({ id }: TestOrganization) {
  return { organizationId: id, actor: { kind: 'system', id: 'test', name: 'test' } } as const
}

/** Starts `ask`, and waits until it waits for a lock or is over. */
async function meet<Answer>(ask: () => Promise<Answer>): Promise<{ answer: Promise<Answer> }> {
  const before = await countWaiting()
  let isOver = false
  const answer = ask().finally(() => (isOver = true))
  await eventually('it to wait or to be over', async () => isOver || (await countWaiting()) > before)
  return { answer }
}

async function countWaiting(): Promise<number> {
  const waiting = await rows(
    em(),
    sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return waiting.length
}

const START = step('start', 'TRIGGER', { type: 'MANUAL' })
const LONG_WAIT = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })

/** Publishes these steps after START, and lets a subscriber in, whose run does nothing before `turn`. */
async function begun(
  steps: readonly Step[],
  settings: Partial<Settings> = {},
  fields: Record<string, unknown> = {},
) {
  const all = [START, ...steps]
  const graph = { steps: all, edges: edges(all.map(({ id }) => id)), settings }
  const automation = await publish(api.services, tenant, graph)
  const subscriberId = await tenant.subscribe(undefined, fields)
  const run = await enter(automation.id, subscriberId)
  return {
    automationId: automation.id,
    subscriberId,
    runId: decodeId('run', run.id),
    stands: async () => (await runsOf(api.services, tenant, automation.id))[0],
  }
}

async function enter(automationId: string, subscriberId: string) {
  const [workflowId, personId] = [encodeId('wf', automationId), encodeId('sub', subscriberId)]
  return await tenant.within((call) => enterByHand(call, { workflowId, subscriberId: personId }))
}

async function turn(runId: string): Promise<void> {
  await tenant.within((call) => advanceRun(call, runId, FIRST))
}

/** The Temporal workflow that asks for the turns. */
const FIRST = { execution: 'first', attempt: 'first' }

test.serial('a repair leaves a run alone that has come to another wait since it was found', async (t) => {
  const { runId, stands } = await begun([LONG_WAIT])
  const overdue = await eventually('the run to be overdue', async () =>
    (await findOverdueRuns(em(), 0, 100)).find(({ id }) => id === runId),
  )
  await turn(runId)
  await tenant.within((call) => repairRun(call, overdue, { state: 'MISSING', temporalRunId: null }))
  await turn(runId)
  t.like(await stands(), { status: 'WAITING', stepId: 'pause' })
})

test.serial(
  'a campaign that begins while a person is being erased neither reads their address nor waits for them',
  async (t) => {
    const organization = await api.organization()
    const from = `hello@${organization.domain}`
    const { subscriber } = await organization.data('add_subscriber', { email: 'ann@example.com' })
    const claim = async () => (await claimCampaignMails(em(), 10, 60_000)).map(({ recipient }) => recipient)
    const { campaignId } = await unitOfWork(api.services, scopeOf(organization), async (call) => {
      await eraseSubscriber(call, subscriber.id)
      const people = [decodeId('sub', subscriber.id)]
      const campaign = await campaignUnderWay(em(), organization.id, { from, people })
      t.deepEqual(await claim(), [])
      return campaign
    })
    t.deepEqual(await claim(), [])
    const recipients = await rows(
      em(),
      sql`select reason from campaign_recipient where organization_id = ${organization.id} and campaign_id = ${campaignId}`,
    )
    t.deepEqual(recipients, [{ reason: 'SUBSCRIBER_DELETED' }])
  },
)

test.serial('an event counts for a run that another call let in within the same millisecond', async (t) => {
  const { runId, subscriberId, stands } = await begun([LONG_WAIT], {
    exitRules: [{ id: 'bought', on: 'BOUGHT' }],
  })
  await tenant.within((call) => recordEvents(call, [{ subscriberId, type: 'BOUGHT' }]))
  await execute(
    em(),
    sql`update automation_run set entered_at = event.created_at from subscriber_event event
      where automation_run.id = ${runId} and event.subscriber_id = ${subscriberId} and event.type = 'BOUGHT'`,
  )
  await turn(runId)
  t.like(await stands(), { status: 'CANCELED', exitReason: 'EXIT_RULE' })
})

test.serial('the time of a trigger is in the zone of the organization, whichever calls meet', async (t) => {
  const organization = await api.organization()
  await organization.data('add_subscriber', { email: 'ann@example.com', fields: { birthday: '1990-01-01' } })
  const config = { type: 'DATE_FIELD', field: 'birthday', direction: 'AFTER', anniversary: true, at: '09:30' }
  const workflowId = await publishWorkflow(organization, [
    { id: 'start', type: 'TRIGGER', config },
    { id: 'seen', type: 'ADD_TAG', config: { tagNames: ['seen'] } },
  ])
  const move = (timezone: string) => organization.call('update_organization_settings', { timezone })
  const zone = async () => {
    const found = await row<{ zone: string }>(
      em(),
      sql`select timing ->> 'timezone' as zone from automation_schedule
        where automation_id = ${decodeId('wf', workflowId)}`,
    )
    return found?.zone
  }
  /** Makes one call after the other, both of which have read the organization before the first one changes it. */
  const together = async (first: () => Promise<Answer>, second: () => Promise<Answer>) => {
    const { answers } = await unitOfWork(api.services, scopeOf(organization), async (call) => {
      await lockSegments(call)
      const all: Promise<Answer>[] = []
      for (const ask of [first, second]) {
        all.push((await meet(ask)).answer)
      }
      return { answers: Promise.all(all) }
    })
    t.deepEqual(
      (await answers).map(({ status }) => status),
      [200, 200],
    )
  }
  t.is(await zone(), 'Europe/Paris')
  await together(
    () => move('Asia/Tokyo'),
    () => move('Europe/Paris'),
  )
  t.is(await zone(), 'Europe/Paris')
  const { confirmationCode } = (await organization.call('publish_workflow', { workflowId })).body
  await together(
    () => move('Asia/Tokyo'),
    () => organization.call('publish_workflow', { workflowId, confirmationCode }),
  )
  t.is(await zone(), 'Asia/Tokyo')
})

const READY = [{ field: 'name', operator: 'equals' as const, value: 'Ready' }]
const UNTIL_READY = step('until', 'WAIT_UNTIL', { mode: 'CONDITION', filters: READY, onTimeout: 'CONTINUE' })

test.serial('a run that leaves its wait for filters by itself is not woken from the next one', async (t) => {
  const { runId, subscriberId, stands } = await begun([UNTIL_READY, LONG_WAIT])
  await turn(runId)
  t.like(await stands(), { status: 'WAITING', stepId: 'until' })
  await tenant.within((call) => updateSubscriber(call, encodeId('sub', subscriberId), { name: 'Ready' }))
  const { answer } = await tenant.within(async (call) => {
    await advanceRun(call, runId, FIRST)
    return await meet(() => tenant.within((other) => endConditionWaits(other, [subscriberId])))
  })
  await answer
  await turn(runId)
  t.like(await stands(), { status: 'WAITING', stepId: 'pause' })
})

test.serial(
  'a run that is found to have missed an event is not woken from a later wait for such an event',
  async (t) => {
    const bought = (id: string) =>
      step(id, 'WAIT_UNTIL', { mode: 'EVENT', eventType: 'BOUGHT', scope: 'STEP', onTimeout: 'CONTINUE' })
    const { runId, subscriberId, stands } = await begun([bought('one'), bought('two')])
    await turn(runId)
    // As delivery writes its events: without the lock of the subscriber, and without a look at the waits.
    await tenant.within((call) => insertEvents(call, [{ subscriberId, type: 'BOUGHT' }]))
    const { answer } = await tenant.within(async (call) => {
      await catchMissedEvents(call, 60)
      await advanceRun(call, runId, FIRST)
      return await meet(() => tenant.within((other) => catchMissedEvents(other, 60)))
    })
    await answer
    await turn(runId)
    t.like(await stands(), { status: 'WAITING', stepId: 'two' })
  },
)

test.serial(
  'an email is accepted over one connection to the database, so calls that hold one wait for no other',
  async (t) => {
    const organization = await api.organization()
    const small = await createServices(api.services.config, 'test', {
      poolSize: 1,
      connectionTimeoutMs: 1_000,
    })
    const server = createServer(createApp(small).callback())
    const port = await listenOnLoopback(server)
    const email = { from: `hello@${organization.domain}`, to: 'ann@example.com', subject: 'Hi' }
    const document = { type: 'doc', content: [] }
    for (const [path, body] of [
      ['/emails/batch', [{ ...email, markdown: 'Hello' }]],
      ['/emails', { ...email, tiptap: document }],
    ] as const) {
      const answer = await fetch(`http://127.0.0.1:${port}/api/v2${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${organization.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      t.is(answer.status, 200, `${path} ${await answer.text()}`)
    }
    server.closeAllConnections()
    server.close()
    await small.close()
  },
)

test.serial('whoever begins to queue for a workflow while it is archived is let go', async (t) => {
  const organization = await api.organization()
  const pause = { id: 'pause', type: 'WAIT', config: { amount: 3, unit: 'DAYS' } }
  const entry = (config: object) => ({ id: 'start', type: 'TRIGGER', config })
  const first = await publishWorkflow(organization, [entry({ type: 'MANUAL' }), pause])
  const second = await publishWorkflow(organization, [entry({ type: 'EVENT', eventType: 'BOUGHT' }), pause])
  const { group } = await organization.data('create_workflow_group', {
    name: 'One at a time',
    conflictStrategy: 'QUEUE',
  })
  for (const workflowId of [first, second]) {
    await organization.data('set_workflow_group', { workflowId, groupId: group.id })
  }
  const { subscriber } = await organization.data('add_subscriber', { email: 'ann@example.com' })
  await organization.data('add_subscriber_to_workflow', { workflowId: first, subscriberId: subscriber.id })
  await unitOfWork(api.services, scopeOf(organization), async (call) => {
    await recordEvents(call, [{ subscriberId: decodeId('sub', subscriber.id), type: 'BOUGHT' }])
    const archived = { workflowId: second, status: 'ARCHIVED' }
    t.is((await organization.confirmed('update_workflow_status', archived)).status, 200)
  })
  const runs = async (workflowId: string) =>
    (await organization.data('get_subscriber_workflow_runs', { email: 'ann@example.com', workflowId })).runs
  t.like(await runs(second), [{ status: 'QUEUED' }])
  await reconcile(api.services)
  t.like(await runs(second), [{ status: 'CANCELED', exitReason: 'ARCHIVED' }])
  t.like(await runs(first), [{ status: 'QUEUED', exitReason: null }])
})

test.serial(
  'a campaign that is paused when its last email has its outcome is SENT once it goes on',
  async (t) => {
    const organization = await api.organization()
    const from = `hello@${organization.domain}`
    const { campaignId } = await campaignUnderWay(em(), organization.id, { from, people: [] })
    const key = { organizationId: organization.id, campaignId, number: 1 }
    const finish = () => deliver(api.services, key, { report: () => undefined, isStopping: () => false })
    const id = encodeId('cmp', campaignId)
    const state = async () => (await organization.data('get_campaign', { campaignId: id })).campaign
    const { answer } = await em().transactional(async (pausing) => {
      await execute(pausing, sql`update campaign set paused = true where id = ${campaignId}`)
      return await meet(finish)
    })
    t.like(await answer, { stage: 'DELIVERING', label: 'paused until resume_campaign' })
    t.like(await state(), { status: 'SENDING', paused: true })
    t.is((await organization.confirmed('resume_campaign', { campaignId: id })).status, 200)
    t.like(await finish(), { stage: 'SENT' })
    t.like(await state(), { status: 'SENT', paused: false })
  },
)

test.serial('a segment that a draft is just being given is in use', async (t) => {
  const organization = await api.organization()
  const { segment } = await organization.data('create_segment', { name: 'Readers', filters: [] })
  const { workflow } = await organization.data('create_workflow', { name: 'Welcome' })
  const save = (expectedUpdatedAt: string, subject: string, filters: readonly object[]) =>
    organization.call('configure_workflow_draft', {
      workflowId: workflow.id,
      expectedUpdatedAt,
      steps: [
        { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL', filters } },
        { id: 'hello', type: 'EMAIL', config: { subject, content: 'Hi', contentType: 'MARKDOWN' } },
      ],
      edges: [{ from: 'start', to: 'hello' }],
    })
  const saved = await save(workflow.updatedAt, 'Hello', [])
  const { confirmationCode } = (await organization.call('delete_segment', { segmentId: segment.id })).body
  const { saving, deleting } = await em().transactional(async (holder) => {
    // The draft waits here: it has been checked and is not stored yet.
    await execute(holder, sql`select from campaign where organization_id = ${organization.id} for update`)
    const named = [{ field: 'segment', operator: 'has_any', value: [segment.id] }]
    const { answer } = await meet(() => save(saved.body.data.workflow.updatedAt, 'Hello again', named))
    const { answer: other } = await meet(() =>
      organization.call('delete_segment', { segmentId: segment.id, confirmationCode }),
    )
    return { saving: answer, deleting: other }
  })
  t.is((await saving).status, 200)
  t.is((await deleting).body.code, 'WRONG_STATE')
})

test.serial('a call that is the victim of a deadlock again and again may be repeated', async (t) => {
  const organization = await api.organization()
  await execute(
    em(),
    sql`create function be_a_victim() returns trigger language plpgsql as $fn$
      begin raise exception 'as a deadlock would' using errcode = 'deadlock_detected'; end $fn$`,
  )
  await execute(
    em(),
    sql`create trigger be_a_victim before insert on tag for each row
      when (new.organization_id = ${sql.lit(organization.id)}::uuid) execute function be_a_victim()`,
  )
  const answer = await organization.call('create_tag', { name: 'vip' })
  await execute(em(), sql`drop function be_a_victim cascade`)
  t.is(answer.status, 503)
  t.is(answer.headers.get('retry-after'), '1')
  t.like(answer.body, { success: false, code: 'UNAVAILABLE' })
  t.is((await organization.call('create_tag', { name: 'vip' })).status, 200)
})

/** Lets somebody into a workflow whose first step is refused, because it counts in a field of text. */
async function failing() {
  await execute(
    em(),
    sql`insert into custom_field (id, organization_id, name, type)
      values (${newId()}, ${tenant.id}, 'word', 'string') on conflict do nothing`,
  )
  const count = step('count', 'UPDATE_FIELD', { increment: { word: 1 } })
  const one = await begun([count], {}, { word: 'none' })
  const fail = async () => {
    // The turn is repeated with the refusal of its step.
    const refused = await turn(one.runId).catch((error: unknown) => error)
    if (!(refused instanceof StepRefused)) throw refused
    const refusals = new Map([[refused.place, refused.failure]])
    await tenant.within((call) => advanceRun(call, one.runId, FIRST, refusals))
  }
  return { ...one, fail }
}

test.serial(
  'an unsubscribe that began before a run failed, and ended after it, keeps it from being retried',
  async (t) => {
    const { runId, subscriberId, fail } = await failing()
    await tenant.within(async (call) => {
      await fail()
      await unsubscribeSubscriber(call, subscriberId, { source: 'test' })
    })
    const retry = tenant.within((call) => retryRun(call, encodeId('run', runId)))
    await t.throwsAsync(retry, { message: /has unsubscribed since/ })
  },
)

test.serial('nothing is kept of a person who is erased while one of their tags is deleted', async (t) => {
  const organization = await api.organization()
  const { subscriber } = await organization.data('add_subscriber', {
    email: 'ann@example.com',
    tags: ['old'],
  })
  const { token } = organization
  const { answer } = await unitOfWork(api.services, scopeOf(organization), async (call) => {
    await deleteTag(call, { name: 'old' })
    return await meet(() => api.request('DELETE', `/api/v2/subscribers/${subscriber.id}`, { token }))
  })
  t.is((await answer).status, 200)
  const kept = await rows(
    em(),
    sql`select type, data from subscriber_event where subscriber_id = ${decodeId('sub', subscriber.id)}`,
  )
  t.deepEqual(kept, [])
})

test.serial('of two calls that delete a tag at once, one finds none any more', async (t) => {
  const organization = await api.organization()
  await organization.data('create_tag', { name: 'old' })
  const asked = [
    await organization.call('delete_tag', { name: 'old' }),
    await organization.call('delete_tag', { name: 'old' }),
  ]
  const { answers } = await em().transactional(async (holder) => {
    await execute(holder, sql`select from tag where organization_id = ${organization.id} for update`)
    const all = []
    for (const { body } of asked) {
      const input = { name: 'old', confirmationCode: body.confirmationCode }
      all.push((await meet(() => organization.call('delete_tag', input))).answer)
    }
    return { answers: Promise.all(all) }
  })
  t.deepEqual(
    (await answers).map(({ status }) => status).toSorted((one, other) => one - other),
    [200, 404],
  )
})

test.serial(
  'an import locks people in the order in which other calls do, so that they never wait for each other',
  async (t) => {
    const organization = await api.organization()
    const add = async (email: string): Promise<string> =>
      decodeId('sub', (await organization.data('add_subscriber', { email })).subscriber.id)
    const [first, second] = [await add('z@example.com'), await add('a@example.com')]
    const subscribers = ['a', 'z'].map((name) => ({ email: `${name}@example.com`, name }))
    const { answer } = await em().transactional(async (holder) => {
      await execute(holder, sql`select from subscriber where id = ${first} for update`)
      const importing = await meet(() => organization.call('import_subscribers', { subscribers }))
      const isFree = execute(em(), sql`select from subscriber where id = ${second} for update nowait`)
      await t.notThrowsAsync(isFree)
      return importing
    })
    t.is((await answer).status, 200)
  },
)

test.serial('who leaves an organization while they let a client in is told so', async (t) => {
  const [left, other] = [await api.organization(), await api.organization()]
  const { id, email, password } = await makeMember(api, 'ada@team.example', left, other)
  const browser = new TestBrowser(api.url)
  const client = await registerClient(api, 'http://127.0.0.1:7777/callback')
  const login = await follow(browser, await browser.open(authorizeUrl(api, client, makePkce().challenge)))
  const consent = await follow(browser, await browser.submit(login.url, { email, password }))
  const letIn = ({ id: organizationId }: TestOrganization) =>
    browser.submit(consent.url, { organization: encodeId('org', organizationId), decision: 'allow' })
  const leave = async (organization: TestOrganization) =>
    await unitOfWork(api.services, scopeOf(organization), async (call) => {
      await removeMember(call, id)
      return await meet(() => letIn(organization))
    })
  const { answer } = await leave(left)
  const again = await answer
  t.is(again.status, 200)
  t.notRegex(await again.text(), new RegExp(encodeId('org', left.id)))
  const { answer: last } = await leave(other)
  t.is((await last).status, 403)
  t.regex(await (await last).text(), /You belong to no organization here any more/)
})

test.serial('who is added to an organization while they are removed from it is a member of it', async (t) => {
  const organization = await api.organization()
  const { id, email, password } = await makeMember(api, 'bea@team.example', organization)
  const within = <Result>(work: (call: Call) => Promise<Result>) =>
    unitOfWork(api.services, scopeOf(organization), work)
  const login = await signIn(api.services, { email, password })
  await grantAccess(api.services, {
    grantId: 'bea',
    client: { id: 'notebook', name: 'Notebook' },
    member: { id, email, passwordMark: login?.passwordMark ?? '' },
    organizationId: encodeId('org', organization.id),
    seconds: 60,
  })
  const { removing, adding } = await em().transactional(async (holder) => {
    // The removal waits here: the membership is gone already, the person is not yet.
    await execute(holder, sql`select from oauth_grant where organization_id = ${organization.id} for update`)
    const { answer } = await meet(() => within((call) => removeMember(call, email)))
    const { answer: other } = await meet(() => within((call) => createMember(call, { email, password })))
    return { removing: answer, adding: other }
  })
  t.is((await removing).id, id)
  const added = await adding
  t.not(added.id, id)
  t.deepEqual(await within(listMembers), [added])
})

test.serial(
  'a failed run is retried, or the workflow of another run joins its group, but not both',
  async (t) => {
    const scene = async (name: string) => {
      const failed = await failing()
      const retry = (call: Call) => retryRun(call, encodeId('run', failed.runId))
      const group = await tenant.within((call) => createGroup(call, { name, conflictStrategy: 'FIRST_WINS' }))
      const join = (call: Call, id: string) => assignGroup(call, encodeId('wf', id), group.id)
      await failed.fail()
      await tenant.within((call) => join(call, failed.automationId))
      // The first retry makes the row of the place, which locks the group as well.
      await tenant.within(retry)
      await failed.fail()
      const other = await begun([LONG_WAIT])
      await enter(other.automationId, failed.subscriberId)
      return { joinOther: (call: Call) => join(call, other.automationId), retry }
    }
    const first = await scene('retried first')
    const { answer: joining } = await tenant.within(async (call) => {
      await first.retry(call)
      return await meet(() => tenant.within(first.joinOther))
    })
    await t.throwsAsync(joining, { instanceOf: Failure, message: /more than one active run/ })
    const second = await scene('joined first')
    const { answer: retrying } = await tenant.within(async (call) => {
      await second.joinOther(call)
      return await meet(() => tenant.within(second.retry))
    })
    await t.throwsAsync(retrying, { instanceOf: Failure, message: /another workflow of the same group/ })
  },
)

test.serial('a call that never gets hold of the person whom it changes says when to repeat it', async (t) => {
  const organization = await api.organization()
  // As for a call that finds nobody, and whose insert then meets somebody who is gone again when it looks.
  await execute(
    em(),
    sql`create function elude() returns trigger language plpgsql as $fn$ begin return null; end $fn$`,
  )
  await execute(
    em(),
    sql`create trigger elude before insert on subscriber for each row
      when (new.organization_id = ${sql.lit(organization.id)}::uuid) execute function elude()`,
  )
  const email = 'ann@example.com'
  const answers = [
    await organization.call('add_subscriber', { email }),
    await organization.call('import_subscribers', { subscribers: [{ email }] }),
  ]
  await execute(em(), sql`drop function elude cascade`)
  for (const { status, headers, body } of answers) {
    t.is(status, 503)
    t.is(headers.get('retry-after'), '1')
    t.like(body, { success: false, code: 'UNAVAILABLE' })
  }
})
