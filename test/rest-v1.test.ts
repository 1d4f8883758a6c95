import { readFileSync } from 'node:fs'

import test from 'ava'

import { ROUTES } from '../api/routes.ts'
import { type Answer, startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi
let organization: TestOrganization

test.before(async () => {
  api = await startApi()
  organization = await api.organization()
})
test.after.always(() => api?.close())

async function ask(method: string, path: string, body?: unknown): Promise<Answer> {
  return await api.request(method, path, {
    token: organization.token,
    ...(body !== undefined && { body }),
  })
}

test('v1 answers in its envelope what v2 answers bare, at the same addresses', async (t) => {
  const email = 'ada@reader.example'
  const made = await ask('POST', '/api/v1/subscribers', { email, name: 'Ada', tags: ['founders'] })
  t.like(made, { status: 201, body: { success: true, data: { email, name: 'Ada' } } })
  const { id } = made.body.data
  t.like(await ask('POST', '/api/v1/subscribers', { email }), { status: 200, body: { data: { id } } })
  await ask('POST', '/api/v1/events', { email, eventType: 'SUBSCRIBER_PAYMENT', amount: 5 })
  const campaign = (await ask('POST', '/api/v1/campaigns', { subject: 'News' })).body.data.id
  for (const path of [
    `/subscribers/${id}`,
    `/subscribers/${email}`,
    '/tags/founders',
    `/campaigns/${campaign}`,
  ]) {
    const [old, next] = [await ask('GET', `/api/v1${path}`), await ask('GET', `/api/v2${path}`)]
    t.deepEqual([old.status, next.status], [200, 200], path)
    t.deepEqual(old.body, { success: true, data: next.body })
  }
  const changes: [string, string, unknown, object][] = [
    ['PATCH', `/subscribers/${id}`, { name: 'Countess' }, { name: 'Countess' }],
    ['POST', `/subscribers/${id}/tags`, { tags: ['vip'] }, { tags: ['founders', 'vip'] }],
    ['DELETE', `/subscribers/${id}/tags`, { tags: ['founders'] }, { tags: ['vip'] }],
    ['POST', `/subscribers/${email}/unsubscribe`, { reason: 'enough' }, { status: 'UNSUBSCRIBED' }],
    ['PATCH', '/tags/vip', { name: 'regulars' }, { name: 'regulars', subscriberCount: 1 }],
    ['PATCH', `/campaigns/${campaign}`, { subject: 'Old news' }, { subject: 'Old news' }],
    ['DELETE', `/campaigns/${campaign}`, undefined, { object: 'campaign', id: campaign, deleted: true }],
  ]
  for (const [method, path, body, data] of changes) {
    t.like(await ask(method, `/api/v1${path}`, body), { status: 200, body: { success: true, data } }, path)
  }
})

test('v1 pages by cursor and by page, as it always has', async (t) => {
  const own = await api.organization()
  const get = async (path: string): Promise<Answer['body']> =>
    (await api.request('GET', `/api/v1${path}`, { token: own.token })).body
  for (let number = 0; number < 3; number++) {
    await own.data('add_subscriber', { email: `r${number}@reader.example` })
    await own.data('create_campaign', { subject: `${number}` })
  }
  const first = await get('/subscribers?limit=2')
  t.true(first.success)
  t.like(first.data, { hasMore: true })
  const second = await get(`/subscribers?limit=2&cursor=${first.data.nextCursor}`)
  t.deepEqual(
    [...first.data.subscribers, ...second.data.subscribers].map(({ email }: { email: string }) => email),
    ['r2@reader.example', 'r1@reader.example', 'r0@reader.example'],
  )
  const campaigns = await get('/campaigns?limit=2&page=2')
  t.like(campaigns.data, { page: 2, pageSize: 2, total: 3, hasMore: false })
  t.is(campaigns.data.campaigns[0].subject, '0')
  t.deepEqual((await get('/tags')).data, { tags: [] })
  const events = await get('/subscribers/r0@reader.example/events?eventType=SUBSCRIBED')
  t.is(events.data.events.length, 1)
  const refused = await api.request('GET', '/api/v1/subscribers?after=x', { token: own.token })
  t.is(refused.status, 422)
})

test('v1 refuses with a message alone, in the statuses of v2', async (t) => {
  const cases: [Promise<Answer>, number, RegExp][] = [
    [ask('GET', '/api/v1/subscribers/nobody@reader.example'), 404, /nobody@reader\.example/],
    [ask('POST', '/api/v1/subscribers', {}), 422, /email/],
    [ask('POST', '/api/v1/subscribers', { email: 'x', colour: 'red', name: 3 }), 422, /colour.*name/],
    [ask('PUT', '/api/v1/tags'), 405, /PUT/],
    [ask('GET', '/api/v1/nowhere'), 404, /GET/],
    [api.request('GET', '/api/v1/tags'), 401, /Authorization/],
    [
      api.request('GET', '/api/v1/tags', { token: await organization.tokenWith(['emails']) }),
      403,
      /subscribers/,
    ],
    // These exist only in v2.
    [ask('GET', '/api/v1/emails/eml_x'), 404, /GET/],
    [ask('POST', '/api/v1/emails/batch', []), 404, /POST/],
    [ask('GET', '/api/v1/domains'), 404, /GET/],
    [ask('GET', '/api/v1/tokens'), 404, /GET/],
  ]
  for (const [asked, status, message] of cases) {
    const answer = await asked
    t.is(answer.status, status, JSON.stringify(answer.body))
    t.deepEqual(Object.keys(answer.body), ['success', 'message'])
    t.is(answer.body.success, false)
    t.regex(answer.body.message, message)
  }
})

test('an email of v1 sent as the page on moving to v2 says is the same email', async (t) => {
  const send = async (path: string, body: object) => {
    const { status, body: sent } = await ask('POST', path, body)
    t.is(status, 200, JSON.stringify(sent))
    return (await ask('GET', `/api/v2/emails/${sent.id}`)).body
  }
  const from = `hello@${organization.domain}`
  const common = { from, to: 'moved@reader.example', subject: 'Hi {{name}}', preview: 'Look' }
  const document = JSON.stringify({ type: 'doc', content: [] })
  for (const [old, next] of [
    [{ content: '**Hi**' }, { markdown: '**Hi**' }],
    [{ content: '**Hi**', contentType: 'MARKDOWN' }, { markdown: '**Hi**' }],
    [{ content: '<b>Hi</b>', contentType: 'HTML', tracking: true }, { html: '<b>Hi</b>' }],
    [{ content: document, contentType: 'TIPTAP' }, { tiptap: document }],
  ] as const) {
    const before = await send('/api/v1/emails', { ...common, ...old, replyTo: 'help@shop.example' })
    const after = await send('/api/v2/emails', { ...common, ...next, reply_to: 'help@shop.example' })
    const { id: _one, created_at: _then, events: _these, ...said } = before
    t.like(after, said)
  }
})

test('the page on moving to v2 has every address that v1 has, and what changes there', (t) => {
  const page = readFileSync(new URL('../docs/migrate-v1.md', import.meta.url), 'utf8')
  const found = [
    ...page.matchAll(/^\| `([A-Z]+) (\/api\/v1\S*)` +\| `[A-Z]+ (\/api\/v2\S*)` +\| (.*?) *\|$/gm),
  ]
  const expected = ROUTES.filter(({ v1 }) => v1).map(({ method, path, v1 }) => {
    const address = path.replaceAll(/:(\w+)/g, '{$1}')
    return [method.toUpperCase(), `/api/v1${address}`, `/api/v2${address}`, v1?.operation !== undefined]
  })
  t.deepEqual(
    found.map(([, method, from, to, change = '']) => [method, from, to, change.includes('list')]),
    [['POST', '/api/v1/emails', '/api/v2/emails', false], ...expected],
  )
})
