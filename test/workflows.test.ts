import { readFileSync } from 'node:fs'

import anyTest, { type TestFn } from 'ava'
import { sql } from 'kysely'

import { execute, row, rows } from '../src/database.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { type Answer, startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

const test = anyTest as TestFn<{ api: TestApi; own: TestOrganization; other: TestOrganization }>

test.before(async (t) => {
  const api = await startApi()
  t.context = { api, own: await api.organization(), other: await api.organization() }
})
test.after.always(async (t) => {
  await t.context.api.close()
})

const WELCOME = {
  subject: 'Welcome {{name | "friend"}}',
  preview: 'Good to have you',
  content: 'Hello {{name}}\n\n[Stop]({{unsubscribeUrl}})',
}

function series(email: Record<string, unknown> = WELCOME) {
  return {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'TAG_ADDED', tagNames: ['Newsletter', 'VIP'] } },
      { id: 'paid', type: 'TRIGGER', config: { type: 'EVENT', eventType: 'SUBSCRIBER_PAYMENT' } },
      { id: 'welcome', type: 'EMAIL', name: 'Welcome', config: email },
      { id: 'pause', type: 'WAIT', config: { amount: 3, unit: 'DAYS' } },
      { id: 'tag', type: 'ADD_TAG', config: { tagNames: ['Welcomed'] } },
    ],
    edges: [
      { from: 'start', to: 'welcome' },
      { from: 'paid', to: 'welcome' },
      { from: 'welcome', to: 'pause' },
      { from: 'pause', to: 'tag' },
    ],
  }
}

async function draftOf(organization: TestOrganization, name = 'Series', graph: object = series()) {
  const { workflow } = await organization.data('create_workflow', { name })
  const configured = await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    ...graph,
  })
  return configured.workflow
}

async function publishedOf(organization: TestOrganization, name?: string) {
  const workflow = await draftOf(organization, name)
  const answer = await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return answer.body.data.workflow
}

function configure(
  organization: TestOrganization,
  workflow: { id: string; updatedAt: string },
  change: object,
) {
  return organization.call('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    ...change,
  })
}

type Steps = { id: string; config: { campaignId: string } }[]
function emailOf(workflow: { draft: { steps: Steps } }, stepId = 'welcome'): string {
  return workflow.draft.steps.find(({ id }) => id === stepId)?.config.campaignId ?? ''
}

function details(answer: Answer): { path: string; stepId?: string; message: string }[] {
  return answer.body.details
}

test('a new workflow is an empty draft that nobody has published', async (t) => {
  const { workflow } = await t.context.own.data('create_workflow', { name: '  Welcome series ' })
  t.like(workflow, {
    name: 'Welcome series',
    status: 'DRAFT',
    draft: { steps: [], edges: [] },
    settings: { exitOnUnsubscribe: true, priority: 50 },
    successGoals: [],
    publishedVersion: null,
    activeSubscribers: 0,
  })
  t.regex(workflow.id, /^wf_/)
  t.deepEqual((await t.context.own.data('get_workflow', { workflowId: workflow.id })).workflow, workflow)
  for (const name of ['', '  ', 'x'.repeat(201), 'two\nlines']) {
    t.is((await t.context.own.call('create_workflow', { name })).body.code, 'INVALID_INPUT')
  }
})

test('list_workflows finds names in any case, newest first, and takes % and _ as they are', async (t) => {
  const organization = await t.context.api.organization()
  for (const name of ['Alpha 100%', 'alphabet', 'Beta']) await organization.data('create_workflow', { name })
  const names = async (input: object) =>
    (await organization.data('list_workflows', input)).workflows.map(({ name }: { name: string }) => name)
  t.deepEqual(await names({}), ['Beta', 'alphabet', 'Alpha 100%'])
  t.deepEqual(await names({ query: 'ALPHA' }), ['alphabet', 'Alpha 100%'])
  t.deepEqual(await names({ query: '0%' }), ['Alpha 100%'])
  t.deepEqual(await names({ query: '_' }), [])
  t.is((await organization.data('list_workflows', { limit: 2 })).hasMore, true)
  t.is((await organization.data('list_workflows', { limit: 3 })).hasMore, false)
  t.is((await organization.call('list_workflows', { limit: 101 })).status, 400)
})

test('configuring stores the graph with its defaults and makes an internal email for each EMAIL step', async (t) => {
  const { own } = t.context
  const workflow = await draftOf(own)
  const welcome = workflow.draft.steps[2]
  t.deepEqual(Object.keys(welcome.config).toSorted(), ['campaignId', 'transactional'])
  t.is(welcome.onError, 'FAIL')
  t.is(workflow.draft.edges[0].port, 'next')
  const { campaign } = await own.data('get_campaign', { campaignId: emailOf(workflow) })
  t.like(campaign, {
    ...WELCOME,
    kind: 'WORKFLOW',
    name: 'Welcome',
    contentType: 'MARKDOWN',
    senderId: null,
    sender: null,
    status: 'DRAFT',
    workflowId: workflow.id,
    stepId: 'welcome',
  })
})

test('the text of an email is Markdown, or a document in JSON', async (t) => {
  const { own } = t.context
  const document = { type: 'doc', content: [{ type: 'paragraph', content: [{ type: 'text', text: 'Hi' }] }] }
  const json = JSON.stringify(document, null, 2)
  const stored = async (config: object) => {
    const { draft } = await draftOf(own, 'Texts', series({ subject: 'Hi', ...config }))
    const { campaignId } = draft.steps[2].config
    const { campaign } = await own.data('get_campaign', { campaignId })
    return [campaign.contentType, campaign.content]
  }
  t.deepEqual(await stored({ content: json }), ['MAILY', document])
  t.deepEqual(await stored({ content: document }), ['MAILY', document])
  t.deepEqual(await stored({ content: json, contentType: 'MARKDOWN' }), ['MARKDOWN', json])
  for (const text of ['{"type": "doc"', '{"name": "Ada"}', '{{name}}', 'Hello']) {
    t.deepEqual(await stored({ content: text }), ['MARKDOWN', text])
  }
})

test('a draft is replaced as a whole, while a step keeps its email', async (t) => {
  const { own } = t.context
  const first = await draftOf(own)
  const inline = await configure(own, first, series({ subject: 'Second', content: 'New' }))
  t.is(inline.status, 200)
  const second = inline.body.data.workflow
  t.is(emailOf(second), emailOf(first))
  t.true(second.updatedAt > first.updatedAt)
  t.like((await own.data('get_campaign', { campaignId: emailOf(first) })).campaign, {
    subject: 'Second',
    content: 'New',
    preview: null,
  })

  const kept = await configure(own, second, second.draft)
  const third = kept.body.data.workflow
  t.deepEqual(third.draft, second.draft)
  const partly = await configure(
    own,
    third,
    series({ campaignId: emailOf(first), preview: 'Only this', senderId: own.senderId }),
  )
  t.is(partly.status, 200)
  t.like((await own.data('get_campaign', { campaignId: emailOf(first) })).campaign, {
    subject: 'Second',
    preview: 'Only this',
    content: 'New',
    senderId: own.senderId,
    sender: { name: 'Sender' },
  })

  const gone = { steps: [{ id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }], edges: [] }
  t.is((await configure(own, partly.body.data.workflow, gone)).status, 200)
  t.is((await own.call('get_campaign', { campaignId: emailOf(first) })).status, 404)
})

test('settings that are left out stay, and are replaced as a whole when given', async (t) => {
  const { own } = t.context
  const first = await draftOf(own)
  const settings = { timezone: 'Europe/Oslo', reEntry: { mode: 'EVERY_TIME' }, priority: 7 }
  const second = (await configure(own, first, { ...series(), settings, successGoals: [] })).body.data.workflow
  t.deepEqual(second.settings, { ...settings, exitOnUnsubscribe: true })
  const third = (await configure(own, second, series())).body.data.workflow
  t.deepEqual(third.settings, second.settings)
  const fourth = (await configure(own, third, { ...series(), settings: { priority: 8 } })).body.data.workflow
  t.deepEqual(fourth.settings, { priority: 8, exitOnUnsubscribe: true })
})

test('update_workflow_draft takes a whole definition and names faults inside it', async (t) => {
  const { own } = t.context
  const first = await draftOf(own)
  const write = (definition: unknown) =>
    own.call('update_workflow_draft', {
      workflowId: first.id,
      expectedUpdatedAt: first.updatedAt,
      definition,
    })
  const wrong = await write({ steps: [{ id: 'a', type: 'TELEPORT', config: {} }], edges: [], notes: '' })
  t.is(wrong.body.code, 'INVALID_INPUT')
  t.true(details(wrong).every(({ path }) => path.startsWith('definition.')))
  t.true(details(wrong).some(({ path }) => path === 'definition.steps[0].type'))
  const right = await write(first.draft)
  t.is(right.status, 200, JSON.stringify(right.body))
  t.deepEqual(right.body.data.workflow.draft, first.draft)
})

test('update_workflow_draft takes documents as deep as configure_workflow_draft does', async (t) => {
  const { own } = t.context
  const { id: workflowId } = await draftOf(own)
  const list = (levels: number): object =>
    levels === 0
      ? { type: 'paragraph', content: [{ type: 'text', text: 'Deep' }] }
      : { type: 'bulletList', content: [{ type: 'listItem', content: [list(levels - 1)] }] }
  const content = { type: 'doc', content: [list(8)] }
  const email = { id: 'hello', type: 'EMAIL', config: { subject: 'Hi', content, contentType: 'MAILY' } }
  const graph = {
    steps: [{ id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }, email],
    edges: [{ from: 'start', to: 'hello' }],
  }
  for (const [tool, definition] of [
    ['configure_workflow_draft', graph],
    ['update_workflow_draft', { definition: graph }],
  ] as const) {
    const { workflow } = await own.data('get_workflow', { workflowId })
    const answer = await own.call(tool, { workflowId, expectedUpdatedAt: workflow.updatedAt, ...definition })
    t.is(answer.status, 200, `${tool}: ${JSON.stringify(answer.body)}`)
  }
})

test("another workflow's email is copied, also a broadcast, and the original stays as it is", async (t) => {
  const { own, api } = t.context
  const donor = await draftOf(own)
  const broadcastId = newId()
  await execute(
    api.services.orm.em.fork(),
    sql`insert into campaign (id, organization_id, kind, name, subject, content, content_type)
      values (${broadcastId}, ${own.id}, 'BROADCAST', 'News', 'Broadcast', '"Text"', 'MARKDOWN')`,
  )
  for (const campaignId of [emailOf(donor), encodeId('cmp', broadcastId)]) {
    const taker = await draftOf(own, 'Taker', series({ campaignId, preview: 'Mine' }))
    t.not(emailOf(taker), campaignId)
    const source = (await own.data('get_campaign', { campaignId })).campaign
    const { campaign } = await own.data('get_campaign', { campaignId: emailOf(taker) })
    t.like(campaign, {
      subject: source.subject,
      content: source.content,
      preview: 'Mine',
      kind: 'WORKFLOW',
      workflowId: taker.id,
    })
    t.not(source.preview, 'Mine')
  }
  const { campaign } = await own.data('get_campaign', { campaignId: encodeId('cmp', broadcastId) })
  t.like(campaign, { kind: 'BROADCAST', workflowId: null, stepId: null })
})

test('two steps that name one email get an email each, and a renamed step takes its email along', async (t) => {
  const { own } = t.context
  const first = await draftOf(own)
  const campaignId = emailOf(first)
  const graph = {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      { id: 'copy', type: 'EMAIL', config: { campaignId } },
      { id: 'welcome', type: 'EMAIL', config: { campaignId } },
    ],
    edges: [
      { from: 'start', to: 'copy' },
      { from: 'copy', to: 'welcome' },
    ],
  }
  const second = (await configure(own, first, graph)).body.data.workflow
  t.is(emailOf(second, 'welcome'), campaignId)
  t.not(emailOf(second, 'copy'), campaignId)
  t.is(
    (await own.data('get_campaign', { campaignId: emailOf(second, 'copy') })).campaign.subject,
    WELCOME.subject,
  )
  const renamed = {
    steps: [graph.steps[0], { id: 'hello', type: 'EMAIL', config: { campaignId } }],
    edges: [{ from: 'start', to: 'hello' }],
  }
  const third = (await configure(own, second, renamed)).body.data.workflow
  t.is(emailOf(third, 'hello'), campaignId)
  t.is((await own.data('get_campaign', { campaignId })).campaign.stepId, 'hello')
})

test('every fault is listed at once: schema, graph, filters, references, ids, settings, goals', async (t) => {
  const { own } = t.context
  const first = await draftOf(own)
  const answer = await configure(own, first, {
    steps: [
      {
        id: 'start',
        type: 'TRIGGER',
        config: { type: 'SUBSCRIBED', filters: [{ field: 'nmae', operator: 'equals', value: 'x' }] },
      },
      { id: 'unknown', type: 'TELEPORT', config: {} },
      { id: 'mail', type: 'EMAIL', config: { subject: 'a\nb', colour: 'red', replyTo: 'nobody' } },
      {
        id: 'mail2',
        type: 'EMAIL',
        config: { subject: 'a\nb', senderId: encodeId('snd', newId()), replyTo: 'x@y..example' },
      },
      {
        id: 'fork',
        type: 'BRANCH',
        config: { paths: [{ id: 'p', filters: [{ field: 'name', operator: 'louder', value: 1 }] }] },
      },
      {
        id: 'gone',
        type: 'BRANCH',
        config: {
          paths: [
            {
              id: 'p',
              filters: [{ field: 'segment', operator: 'has_any', value: [encodeId('seg', newId())] }],
            },
          ],
        },
      },
      { id: 'tag', type: 'ADD_TAG', config: { tagNames: [' blank '] } },
      { id: 'tag', type: 'EXIT' },
    ],
    edges: [
      { from: 'start', to: 'nowhere' },
      { from: 'tag', to: 'tag', port: 'sideways' },
    ],
    settings: { priority: 101, lateSend: {} },
    successGoals: [{ id: 'goal' }],
  })
  t.is(answer.status, 400)
  t.is(answer.body.code, 'INVALID_INPUT')
  const found = details(answer).map(({ path, stepId }) => `${stepId ?? '-'} ${path}`)
  for (const expected of [
    'start steps[0].config.filters[0].field',
    'unknown steps[1].type',
    'mail steps[2].config.colour',
    'mail2 steps[3].config.subject',
    'mail2 steps[3].config.replyTo',
    'mail2 steps[3].config.senderId',
    'fork steps[4].config.paths[0].filters[0].operator',
    'gone steps[5].config.paths[0].filters[0].value',
    'tag steps[6].config.tagNames[0]',
    'tag steps[7].id',
    'start edges[0].to',
    '- settings.priority',
    '- settings.lateSend.maxLateness',
    '- successGoals[0]',
    '- successGoals[0].name',
  ]) {
    t.true(found.includes(expected), `${expected} is missing in\n${found.join('\n')}`)
  }
  t.is((await own.data('get_workflow', { workflowId: first.id })).workflow.updatedAt, first.updatedAt)
})

test('a dangling edge and a cycle without a wait are refused, and a refused draft writes nothing', async (t) => {
  const { own } = t.context
  const first = await draftOf(own)
  const steps = [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    { id: 'a', type: 'EMAIL', config: { subject: 'Changed', content: 'x' } },
    { id: 'b', type: 'ADD_TAG', config: { tagNames: ['x'] } },
  ]
  const edges = [
    { from: 'start', to: 'a' },
    { from: 'a', to: 'b' },
  ]
  const cycle = await configure(own, first, { steps, edges: [...edges, { from: 'b', to: 'a' }] })
  t.true(details(cycle).some(({ message, stepId }) => message.includes('cycle') && stepId !== undefined))
  const dangling = await configure(own, first, { steps, edges: [...edges, { from: 'b', to: 'c' }] })
  t.deepEqual(
    details(dangling).map(({ path, stepId }) => [path, stepId]),
    [['edges[2].to', 'b']],
  )
  t.is((await own.data('get_campaign', { campaignId: emailOf(first) })).campaign.subject, WELCOME.subject)
})

test("another organization's ids answer as ids that do not exist", async (t) => {
  const { own, other, api } = t.context
  const theirs = await draftOf(other)
  const mine = await draftOf(own)
  for (const [tool, input] of [
    ['get_workflow', {}],
    ['configure_workflow_draft', { expectedUpdatedAt: theirs.updatedAt, ...series() }],
    ['update_workflow_draft', { expectedUpdatedAt: theirs.updatedAt, definition: series() }],
    ['publish_workflow', {}],
    ['update_workflow_status', { status: 'PAUSED' }],
    ['update_workflow_status', { status: 'ARCHIVED' }],
    ['delete_workflow', {}],
  ] as const) {
    const foreign = await own.call(tool, { workflowId: theirs.id, ...input })
    const unknown = await own.call(tool, { workflowId: encodeId('wf', newId()), ...input })
    t.is(foreign.status, 404, tool)
    t.is(foreign.body.error.replace(theirs.id, ''), unknown.body.error.replace(/wf_\w{26}/, ''))
  }
  const foreignEmail = emailOf(theirs)
  t.is((await own.call('get_campaign', { campaignId: foreignEmail })).status, 404)
  t.is((await own.call('render_campaign', { campaignId: foreignEmail })).status, 404)
  const subscriber = (await other.data('add_subscriber', { email: 'a@example.com' })).subscriber
  const foreignPerson = { campaignId: emailOf(mine), subscriberId: subscriber.id }
  t.is((await own.call('render_campaign', foreignPerson)).status, 404)
  for (const config of [
    { campaignId: foreignEmail },
    { campaignId: 'cmp_nonsense' },
    { ...WELCOME, senderId: other.senderId },
  ]) {
    const answer = await configure(own, mine, series(config))
    t.is(answer.status, 404, JSON.stringify(answer.body))
    t.is(details(answer)[0]?.stepId, 'welcome')
  }
  const count = await rows(
    api.services.orm.em.fork(),
    sql`select id from campaign where organization_id = ${own.id} and subject = 'Stolen'`,
  )
  t.is(count.length, 0)
})

test('a stale expectedUpdatedAt is refused with the current one and who changed it', async (t) => {
  const { own } = t.context
  const first = await draftOf(own)
  const second = (await configure(own, first, series())).body.data.workflow
  for (const expectedUpdatedAt of [first.updatedAt, 'yesterday', second.updatedAt.replace('Z', '+00:00')]) {
    const answer = await configure(own, { ...first, updatedAt: expectedUpdatedAt }, series())
    t.is(answer.status, 409)
    t.is(answer.body.code, 'STALE_VERSION')
    t.deepEqual(answer.body.details, { updatedAt: second.updatedAt, updatedBy: 'test' })
  }
})

test('of concurrent writes to one draft exactly one wins', async (t) => {
  const { own } = t.context
  const first = await draftOf(own)
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      configure(own, first, series({ subject: `Number ${index}`, content: 'x' })),
    ),
  )
  t.deepEqual(
    answers.map(({ status }) => status).toSorted((one, other) => one - other),
    [200, 409, 409, 409, 409, 409, 409, 409],
  )
  const winner = answers.findIndex(({ status }) => status === 200)
  t.is((await own.data('get_campaign', { campaignId: emailOf(first) })).campaign.subject, `Number ${winner}`)
})

test('publishing asks for a confirmation that says what will happen', async (t) => {
  const { own } = t.context
  const workflow = await draftOf(own)
  const asked = await own.call('publish_workflow', { workflowId: workflow.id })
  t.is(asked.status, 428)
  const { summary, confirmationCode } = asked.body
  const said = summary.effects.join('\n')
  for (const word of [
    'Version 1',
    'live',
    'no active runs',
    'TAG_ADDED “Newsletter”, “VIP”',
    'SUBSCRIBER_PAYMENT',
    'Email welcome',
    `hello@${own.domain}`,
  ]) {
    t.true(said.includes(word), `${word} is missing in\n${said}`)
  }
  t.deepEqual(summary.warnings, [])
  const other = await own.call('publish_workflow', {
    workflowId: workflow.id,
    activate: false,
    confirmationCode,
  })
  t.is(other.status, 428)
  const done = await own.call('publish_workflow', { workflowId: workflow.id, confirmationCode })
  t.is(done.status, 200)
  t.is(done.body.data.version.number, 1)
  t.is(done.body.data.workflow.status, 'ACTIVE')
  t.is(done.body.data.workflow.publishedVersion.publishedBy, 'test')
  t.is((await own.call('publish_workflow', { workflowId: workflow.id, confirmationCode })).status, 428)
})

test('settings that became invalid are shown as they are, and neither published nor simulated', async (t) => {
  const { own, api } = t.context
  const { id: workflowId } = await draftOf(own)
  const stored = { timezone: 'Europe/Atlantis', priority: 7, exitOnUnsubscribe: false }
  await execute(
    api.services.orm.em.fork(),
    sql`update automation set settings = ${JSON.stringify(stored)}::jsonb where id = ${decodeId('wf', workflowId)}`,
  )
  const { workflow } = await own.data('get_workflow', { workflowId })
  t.deepEqual(workflow.settings, stored)
  const simulation = { workflowId, sample: { email: 'ann@reader.example' } }
  for (const [tool, input] of [
    ['publish_workflow', { workflowId }],
    ['simulate_workflow', simulation],
  ] as const) {
    const answer = await own.call(tool, input)
    t.is(answer.body.code, 'INVALID_INPUT', tool)
    t.deepEqual(
      details(answer).map(({ path }) => path),
      ['settings.timezone'],
    )
  }
})

test('a WEBHOOK step whose requests would all be refused is refused itself, with what is allowed', async (t) => {
  const { own } = t.context
  const { workflow } = await own.data('create_workflow', { name: 'Hook' })
  const judge = async (url: string) => {
    const steps = [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      { id: 'hook', type: 'WEBHOOK', config: { url, method: 'POST' } },
    ]
    const graph = { steps, edges: [{ from: 'start', to: 'hook' }] }
    const simulation = { definition: graph, sample: { email: 'ann@reader.example' } }
    return [await configure(own, workflow, graph), await own.call('simulate_workflow', simulation)]
  }
  for (const url of [
    'https://shop.example:8443/hook/{{email}}',
    'http://shop.example:8080/hook',
    'http://127.0.0.1/hook',
    'http://[::1]/hook',
  ]) {
    for (const answer of await judge(url)) {
      t.is(answer.status, 400, url)
      const [fault] = details(answer)
      t.is(fault?.stepId, 'hook')
      t.regex(fault?.path ?? '', /steps\[1\]\.config\.url$/)
    }
  }
  const [, answer] = await judge('https://shop.example:8443/hook')
  t.regex(answer?.body.error, /does not lead to a public address on port 80 or 443$/)
  for (const url of ['http://shop.example:443/hook', 'https://shop.example/{{email}}', 'https://1.1.1.1/']) {
    t.is((await judge(url))[1]?.status, 200, url)
  }
})

test('publishing freezes the emails, replaces the triggers and makes the tags', async (t) => {
  const { own, api } = t.context
  const workflow = await publishedOf(own)
  const em = api.services.orm.em.fork()
  const id = decodeId('wf', workflow.id)
  const triggers = await rows(
    em,
    sql`select step_id as "stepId", type, match_key as key from automation_trigger where automation_id = ${id} order by 1, 3`,
  )
  t.deepEqual(triggers, [
    { stepId: 'paid', type: 'EVENT', key: 'SUBSCRIBER_PAYMENT' },
    { stepId: 'start', type: 'TAG_ADDED', key: 'newsletter' },
    { stepId: 'start', type: 'TAG_ADDED', key: 'vip' },
  ])
  const tags = (await own.data('list_tags')).tags.map(({ name }: { name: string }) => name)
  for (const name of ['Newsletter', 'VIP', 'Welcomed']) t.true(tags.includes(name))
  const frozen = async () =>
    await row<{ definition: { emails: Record<string, object>; settings: object } }>(
      em,
      sql`select definition from automation_version where automation_id = ${id} and number = 1`,
    )
  const before = await frozen()
  t.deepEqual(before?.definition.emails['welcome'], {
    campaignId: decodeId('cmp', emailOf(workflow)),
    ...WELCOME,
    contentType: 'MARKDOWN',
    sender: { id: decodeId('snd', own.senderId), name: 'Sender', email: `hello@${own.domain}` },
    replyTo: null,
    transactional: false,
  })
  const changed = {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      { id: 'other', type: 'EMAIL', config: WELCOME },
    ],
    edges: [{ from: 'start', to: 'other' }],
  }
  t.is((await configure(own, workflow, changed)).status, 200)
  t.deepEqual(await frozen(), before)
  t.is(
    (await own.call('get_campaign', { campaignId: emailOf(workflow) })).status,
    200,
    'an email that was published stays',
  )
  const second = await own.confirmed('publish_workflow', { workflowId: workflow.id })
  t.is(second.body.data.version.number, 2)
  t.is((await rows(em, sql`select from automation_trigger where automation_id = ${id}`)).length, 0)
})

test('an email without subject, content or a sender on a verified domain is refused when publishing, not when saving', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const em = api.services.orm.em.fork()
  await execute(em, sql`update domain set status = 'PENDING' where organization_id = ${organization.id}`)
  const graph = {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      { id: 'empty', type: 'EMAIL', config: {} },
      { id: 'fork', type: 'BRANCH', config: { paths: [{ id: 'all', filters: [] }] } },
    ],
    edges: [
      { from: 'start', to: 'empty' },
      { from: 'empty', to: 'fork' },
    ],
  }
  const workflow = await draftOf(organization, 'Incomplete', graph)
  const answer = await organization.call('publish_workflow', { workflowId: workflow.id })
  t.is(answer.body.code, 'INVALID_INPUT')
  t.deepEqual(
    details(answer)
      .map(({ path }) => path)
      .toSorted(),
    [
      'steps[1].config.content',
      'steps[1].config.senderId',
      'steps[1].config.subject',
      'steps[2].config.paths[0].filters',
    ],
  )
  await execute(em, sql`delete from sender where organization_id = ${organization.id}`)
  const without = await organization.call('publish_workflow', { workflowId: workflow.id })
  t.true(details(without).some(({ message }) => message.includes('create_email_sender')))
  const empty = (await organization.data('create_workflow', { name: 'Empty' })).workflow
  t.is((await organization.call('publish_workflow', { workflowId: empty.id })).body.code, 'INVALID_INPUT')
})

test('a NOTIFY step is refused when publishing while no default sender may send', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const em = api.services.orm.em.fork()
  const notice = { to: 'team@office.example', subject: 'New', markdown: 'Hello' }
  const workflow = await draftOf(organization, 'Notices', {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      { id: 'tell', type: 'NOTIFY', config: notice },
    ],
    edges: [{ from: 'start', to: 'tell' }],
  })
  const published = () => organization.call('publish_workflow', { workflowId: workflow.id })
  t.is((await published()).body.code, 'CONFIRMATION_REQUIRED')
  await execute(em, sql`update domain set status = 'PENDING' where organization_id = ${organization.id}`)
  const unverified = await published()
  t.is(unverified.body.code, 'INVALID_INPUT')
  t.like(details(unverified), [{ stepId: 'tell', path: 'steps[1]' }])
  t.regex(details(unverified)[0]?.message ?? '', /default sender hello@.*, which is PENDING; verify/)
  await execute(em, sql`delete from sender where organization_id = ${organization.id}`)
  t.regex(details(await published())[0]?.message ?? '', /create_email_sender/)
})

test('the statistics list emails in the order of the steps', async (t) => {
  const { own } = t.context
  const ids = ['welcome', 'second', 'b', 'a']
  const { id: workflowId } = await draftOf(own, 'Ordered', {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      ...ids.map((id) => ({ id, type: 'EMAIL', config: WELCOME })),
    ],
    edges: ids.map((to, index) => ({ from: ids[index - 1] ?? 'start', to })),
  })
  t.is((await own.confirmed('publish_workflow', { workflowId })).status, 200)
  const { statistics } = await own.data('get_workflow', { workflowId })
  t.deepEqual(
    statistics.emails.map(({ stepId }: { stepId: string }) => stepId),
    ids,
  )
})

test('the summary warns of unknown variables and of a missing unsubscribe link', async (t) => {
  const { own } = t.context
  const workflow = await draftOf(own, 'Warned', series({ subject: 'Hi', content: 'Your {{favourite}}' }))
  const asked = await own.call('publish_workflow', { workflowId: workflow.id })
  const warnings = asked.body.summary.warnings.join('\n')
  t.regex(warnings, /Email welcome: \{\{favourite\}\}/)
  t.regex(warnings, /Email welcome: .*unsubscribe link/)
})

const PUBLISHED = ['DRAFT', 'ACTIVE', 'PAUSED', 'ARCHIVED'] as const
const AFTER = {
  DRAFT: { omitted: 'ACTIVE', true: 'ACTIVE', false: 'PAUSED' },
  ACTIVE: { omitted: 'ACTIVE', true: 'ACTIVE', false: 'PAUSED' },
  PAUSED: { omitted: 'PAUSED', true: 'ACTIVE', false: 'PAUSED' },
  ARCHIVED: { omitted: 'ARCHIVED', true: 'ACTIVE', false: 'PAUSED' },
} as const

for (const from of PUBLISHED) {
  for (const activate of [undefined, true, false]) {
    const word = activate === undefined ? 'omitted' : activate ? 'true' : 'false'
    test(`publishing from ${from} with activate ${word} leads to ${AFTER[from][word]}`, async (t) => {
      const { own } = t.context
      const workflow = from === 'DRAFT' ? await draftOf(own) : await publishedOf(own)
      if (from === 'PAUSED' || from === 'ARCHIVED') {
        await own.confirmed('update_workflow_status', { workflowId: workflow.id, status: from })
      }
      const answer = await own.confirmed('publish_workflow', {
        workflowId: workflow.id,
        ...(activate !== undefined && { activate }),
      })
      t.is(answer.status, 200, JSON.stringify(answer.body))
      t.is(answer.body.data.workflow.status, AFTER[from][word])
      t.is(answer.body.data.version.number, from === 'DRAFT' ? 1 : 2)
    })
  }
}

const WISHES = ['ACTIVE', 'PAUSED', 'ARCHIVED'] as const
const ALLOWED: Record<string, readonly string[]> = {
  DRAFT: [],
  ACTIVE: WISHES,
  PAUSED: WISHES,
  ARCHIVED: ['PAUSED', 'ARCHIVED'],
}

for (const from of PUBLISHED) {
  for (const wish of WISHES) {
    const isAllowed = ALLOWED[from]?.includes(wish)
    test(`a workflow that is ${from} ${isAllowed ? 'can' : 'cannot'} be set to ${wish}`, async (t) => {
      const { own } = t.context
      const workflow = from === 'DRAFT' ? await draftOf(own) : await publishedOf(own)
      if (from === 'PAUSED' || from === 'ARCHIVED') {
        await own.confirmed('update_workflow_status', { workflowId: workflow.id, status: from })
      }
      const before = (await own.data('get_workflow', { workflowId: workflow.id })).workflow
      const first = await own.call('update_workflow_status', { workflowId: workflow.id, status: wish })
      if (!isAllowed) {
        t.is(first.status, 409)
        t.is(first.body.code, 'WRONG_STATE')
        return
      }
      t.is(first.status, wish === 'PAUSED' ? 200 : 428)
      const done = await own.confirmed('update_workflow_status', { workflowId: workflow.id, status: wish })
      t.is(done.body.data.workflow.status, wish)
      if (wish === from) t.deepEqual(done.body.data.workflow, before, 'the status it has is no change')
    })
  }
}

test('archiving cancels the runs, says so before, and pausing does not', async (t) => {
  const own = await t.context.api.organization()
  const workflow = await publishedOf(own, 'With runs')
  await own.data('add_subscriber', { email: 'first@example.com', tags: ['vip'] })
  await own.data('add_subscriber', { email: 'second@example.com', tags: ['NEWSLETTER'] })
  const active = async () =>
    (await own.data('get_workflow', { workflowId: workflow.id })).workflow.activeSubscribers
  t.is(await active(), 2)
  const listed = (await own.data('list_workflows', { query: 'With runs' })).workflows
  t.is(listed[0].activeSubscribers, 2)
  const paused = await own.data('update_workflow_status', { workflowId: workflow.id, status: 'PAUSED' })
  t.is(paused.canceledRuns, 0)
  t.is(await active(), 2)
  const asked = await own.call('delete_workflow', { workflowId: workflow.id })
  t.true(asked.body.summary.effects.some((line: string) => line.includes('2 active runs')))
  const archived = await own.confirmed('update_workflow_status', {
    workflowId: workflow.id,
    status: 'ARCHIVED',
  })
  t.is(archived.body.data.canceledRuns, 2)
  t.is(await active(), 0)
})

test('delete_workflow deletes an unused draft with its emails and archives what was published', async (t) => {
  const { own } = t.context
  const draft = await draftOf(own)
  const asked = await own.call('delete_workflow', { workflowId: draft.id })
  t.is(asked.status, 428)
  t.regex(asked.body.summary.effects[0], /1 email/)
  const gone = await own.confirmed('delete_workflow', { workflowId: draft.id })
  t.like(gone.body.data, { workflowId: draft.id, deleted: true, archived: false })
  t.is((await own.call('get_workflow', { workflowId: draft.id })).status, 404)
  t.is((await own.call('get_campaign', { campaignId: emailOf(draft) })).status, 404)
  const workflow = await publishedOf(own)
  const kept = await own.confirmed('delete_workflow', { workflowId: workflow.id })
  t.like(kept.body.data, { deleted: false, archived: true })
  t.is((await own.data('get_workflow', { workflowId: workflow.id })).workflow.status, 'ARCHIVED')
  t.is((await own.confirmed('delete_workflow', { workflowId: workflow.id })).status, 200)
})

test('render_campaign shows what arrives, filled for one person, escaped, without counting', async (t) => {
  const { own } = t.context
  await own.data('add_subscriber', {
    email: 'mallory@example.com',
    name: '<script>alert("x")</script> {{email}}',
    fields: { plan: 'pro & more' },
  })
  const { subscriber } = await own.data('get_subscriber', { email: 'mallory@example.com' })
  const workflow = await draftOf(
    own,
    'Rendered',
    series({
      subject: 'Hello {{name}}',
      preview: 'For {{plan}}',
      content:
        'Hi {{name | "you"}}, plan {{plan}} at {{org-name}}.\n\n[Read](https://example.com/?a=1&b={{email}})\n\n<b>raw</b> [bad](javascript:alert(1))',
    }),
  )
  const campaignId = emailOf(workflow)
  const full = await own.data('render_campaign', { campaignId, subscriberId: subscriber.id })
  t.false(full.html.includes('<script>'))
  t.false(full.html.includes('<b>raw'))
  t.false(full.html.toLowerCase().includes('href="javascript'))
  t.true(full.html.includes('&lt;script&gt;'))
  t.true(full.html.includes('{{email}}'), 'what stands in a value is not expanded')
  t.true(full.html.includes('pro &amp; more'))
  t.true(full.text.includes('pro & more'))
  t.true(full.html.includes('https://example.com/?a=1&amp;b=mallory%40example.com'))
  t.is(full.subject, 'Hello <script>alert("x")</script> {{email}}')
  t.is(full.preview, 'For pro & more')
  t.true(full.html.includes('/u/'))
  t.deepEqual(full.warnings.map(({ code }: { code: string }) => code).toSorted(), [
    'UNSAFE_URL',
    'UNSUBSCRIBE_LINK_ADDED',
  ])
  const html = await own.data('render_campaign', { campaignId, format: 'html' })
  t.deepEqual(Object.keys(html).toSorted(), ['html', 'preview', 'subject', 'warnings'])
  t.true(html.html.includes('Hi you'), 'without a subscriber the fallbacks show')
  const text = await own.data('render_campaign', { campaignId, format: 'text' })
  t.false('html' in text)
  t.is((await own.call('render_campaign', { campaignId, format: 'pdf' })).status, 400)
})

test('a transactional email gets no footer of marketing, and unknown variables are named', async (t) => {
  const { own } = t.context
  const config = { subject: 'Receipt', content: 'For {{amuont}} {{pone}}', transactional: true }
  const workflow = await draftOf(own, 'Receipt', series(config))
  const rendered = await own.data('render_campaign', { campaignId: emailOf(workflow) })
  const unknown = rendered.warnings.filter(({ code }: { code: string }) => code === 'UNKNOWN_VARIABLE')
  t.is(unknown.length, 2)
})

test('the example workflow of the project can be configured and published as it stands', async (t) => {
  const { own } = t.context
  const file = new URL('../examples/welcome-series.json', import.meta.url)
  const { name, ...graph } = JSON.parse(readFileSync(file, 'utf8'))
  const workflow = await draftOf(own, name, graph)
  const asked = await own.call('publish_workflow', { workflowId: workflow.id, activate: false })
  t.is(asked.status, 428)
  t.is((await own.confirmed('publish_workflow', { workflowId: workflow.id, activate: false })).status, 200)
})

test('inputs of the wrong type and unknown fields are refused by name', async (t) => {
  const { own } = t.context
  const workflow = await draftOf(own)
  const base = { workflowId: workflow.id, expectedUpdatedAt: workflow.updatedAt, ...series() }
  for (const [change, path] of [
    [{ steps: {} }, 'steps'],
    [{ edges: 'x' }, 'edges'],
    [{ settings: [] }, 'settings'],
    [{ successGoals: {} }, 'successGoals'],
    [{ expectedUpdatedAt: 5 }, 'expectedUpdatedAt'],
    [{ stepz: [] }, 'stepz'],
  ] as const) {
    const answer = await own.call('configure_workflow_draft', { ...base, ...change })
    t.is(answer.body.code, 'INVALID_INPUT')
    t.true(
      details(answer).some((fault) => fault.path === path),
      JSON.stringify(details(answer)),
    )
  }
  const status = await own.call('update_workflow_status', { workflowId: workflow.id, status: 'DRAFT' })
  t.is(status.status, 400)
  const activate = await own.call('publish_workflow', { workflowId: workflow.id, activate: 'yes' })
  t.is(activate.status, 400)
})
