import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'

import test from 'ava'

import { ROUTES } from '../api/routes.ts'
import { type Answer, startApi, type TestApi } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

function exportOf(token: string | undefined, subscriber: string, query = ''): Promise<Answer> {
  return api.request('GET', `/api/v2/subscribers/${encodeURIComponent(subscriber)}/export${query}`, {
    ...(token !== undefined && { token }),
  })
}

test('a resource is answered bare, found by id or email, and counted in a window beside that of the tools', async (t) => {
  const organization = await api.organization({ plan: 'FREE', customLimits: {} })
  const { subscriber } = await organization.data('add_subscriber', { email: 'Ada+list@example.com' })
  for (const name of [subscriber.id, 'ada+LIST@example.com']) {
    const answer = await exportOf(organization.token, name)
    t.is(answer.status, 200, JSON.stringify(answer.body))
    t.is(answer.body.subscriber.id, subscriber.id)
    t.is(answer.headers.get('ratelimit-limit'), '100')
  }
  // More than two windows let pass, because one may end meanwhile.
  const tools = Array.from({ length: 201 }, () => organization.call('list_tags'))
  t.true((await Promise.all(tools)).some(({ status }) => status === 429))
  t.is((await exportOf(organization.token, subscriber.id)).status, 200)
})

test('every refusal has a name, a message and its status, and details where there are any', async (t) => {
  const organization = await api.organization()
  const other = await api.organization()
  const { subscriber } = await other.data('add_subscriber', { email: 'ada@example.com' })
  const cases: [Promise<Answer>, number, string][] = [
    [exportOf(undefined, 'ada@example.com'), 401, 'missing_api_key'],
    [exportOf('pl_nonsense', 'ada@example.com'), 401, 'invalid_api_key'],
    [exportOf(await organization.tokenWith(['emails']), 'ada@example.com'), 403, 'restricted_api_key'],
    [exportOf(organization.token, 'ada@example.com'), 404, 'not_found'],
    [exportOf(organization.token, subscriber.id), 404, 'not_found'],
    [exportOf(organization.token, 'sub_nonsense'), 404, 'not_found'],
    [exportOf(organization.token, 'ada@example.com', '?colour=red'), 422, 'invalid_parameter'],
    [api.request('GET', '/api/v2/nowhere', { token: organization.token }), 404, 'not_found'],
    [
      api.request('PUT', '/api/v2/subscribers/x/export', { token: organization.token }),
      405,
      'method_not_allowed',
    ],
  ]
  for (const [asked, status, name] of cases) {
    const { body, ...answer } = await asked
    t.is(answer.status, status, JSON.stringify(body))
    t.like(body, { name, statusCode: status })
    t.true(body.message.length > 10)
    t.deepEqual(
      Object.keys(body).filter((key) => key !== 'details'),
      ['name', 'message', 'statusCode'],
    )
  }
  const unknown = await exportOf(organization.token, 'ada@example.com', '?colour=red')
  t.is(unknown.body.details[0].path, 'colour')
})

test('a refusal names the part of the request, and only fields that this part may contain', async (t) => {
  const { token } = await api.organization()
  const ask = askerOf(token)
  const said = async (...asked: Parameters<Ask>) => (await ask(...asked)).body.message
  t.regex(await said('GET', '/tags?limit=many'), /^The query is not valid at limit: /)
  t.regex(
    await said('GET', '/subscribers/ada@example.com/events?colour=red'),
    /^The query is not valid at colour: the field "colour" is not known here; known are limit, after, before, eventType$/,
  )
  t.regex(await said('GET', '/tags/%01'), /^The path is not valid at tag: /)
  t.regex(await said('PATCH', '/tags/vip', { colour: 'red' }), /^The body .* known are name /)
  t.regex(
    await said('DELETE', '/subscribers/ada@example.com?colour=red'),
    /^The query is not valid at colour: /,
  )
})

test('the Tools API says INVALID_INPUT and UNAUTHENTICATED where REST has finer names', async (t) => {
  const organization = await api.organization()
  const missing = await organization.call('add_subscriber', {})
  t.like(missing.body, { success: false, code: 'INVALID_INPUT' })
  const nobody = await api.request('POST', '/api/v2/tools/add_subscriber', { body: {} })
  t.like(nobody.body, { success: false, code: 'UNAUTHENTICATED' })
})

type Ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>

/** Returns a function that calls REST v2 with a token. */
function askerOf(token: string): Ask {
  return (method, path, body, headers = {}) =>
    api.request(method, `/api/v2${path}`, { token, headers, ...(body !== undefined && { body }) })
}

test('subscribers are created, read, changed, tagged, unsubscribed and erased', async (t) => {
  const ask = askerOf((await api.organization()).token)
  const email = 'ada@reader.example'
  const made = await ask('POST', '/subscribers', {
    email,
    name: 'Ada',
    tags: ['founders'],
    fields: { plan: 'pro' },
  })
  t.like(made, {
    status: 201,
    body: { email, name: 'Ada', tags: ['founders'], customFields: { plan: 'pro' } },
  })
  const { id } = made.body
  t.like(await ask('POST', '/subscribers', { email, phone: '1' }), { status: 200, body: { id, phone: '1' } })
  t.deepEqual(
    (await ask('GET', `/subscribers/${id}`)).body,
    (await ask('GET', '/subscribers/ADA@reader.example')).body,
  )
  const patched = await ask('PATCH', `/subscribers/${email}`, { name: 'Countess', fields: { plan: null } })
  t.like(patched, { status: 200, body: { id, name: 'Countess', phone: '1', customFields: {} } })
  const tagged = await ask('POST', `/subscribers/${id}/tags`, { tags: ['VIP', 'vip', 'early'] })
  t.deepEqual(tagged.body.tags, ['early', 'founders', 'VIP'])
  t.deepEqual((await ask('DELETE', `/subscribers/${id}/tags`, { tags: ['vip'] })).body.tags, [
    'early',
    'founders',
  ])
  t.deepEqual((await ask('DELETE', `/subscribers/${id}/tags?tags=early,founders`)).body.tags, [])
  await ask('POST', `/subscribers/${id}/tags`, { tags: ['one, two'] })
  t.deepEqual((await ask('DELETE', `/subscribers/${id}/tags?tags=["one, two"]`)).body.tags, [])
  t.like(await ask('PATCH', `/subscribers/${id}?name=Grace`, { phone: '2' }), {
    status: 422,
    body: { name: 'invalid_parameter', details: [{ path: 'name' }] },
  })
  const left = await ask('POST', `/subscribers/${email}/unsubscribe`, { reason: 'enough' })
  t.like(left, { status: 200, body: { status: 'UNSUBSCRIBED' } })
  const events = await ask('GET', `/subscribers/${email}/events?eventType=UNSUBSCRIBED`)
  t.like(events.body, {
    object: 'list',
    has_more: false,
    data: [{ type: 'UNSUBSCRIBED', data: { reason: 'enough' } }],
  })
  t.deepEqual((await ask('DELETE', `/subscribers/${id}`)).body, { object: 'subscriber', id, deleted: true })
  for (const [method, path, body] of [
    ['GET', ''],
    ['PATCH', '', {}],
    ['POST', '/unsubscribe', {}],
    ['POST', '/tags', { tags: ['x'] }],
    ['GET', '/events'],
  ] as const) {
    t.is((await ask(method, `/subscribers/${email}${path}`, body)).status, 404, path)
  }
})

test('a query in another encoding than UTF-8 is refused: its letters would be others', async (t) => {
  const ask = askerOf((await api.organization()).token)
  t.like(await ask('GET', '/subscribers?tag=Caf%E9'), {
    status: 422,
    body: { name: 'invalid_parameter', details: [{ path: 'tag' }] },
  })
  for (const tag of ['Caf%C3%A9', '%EF%BF%BD', '100%']) {
    t.is((await ask('GET', `/subscribers?tag=${tag}`)).status, 200, tag)
  }
})

test('a fault in the address is told as one, however it is spelled and whatever the path stands for', async (t) => {
  const { token } = await api.organization()
  for (const [path, fault] of [
    ['/api/v2/subscribers/a%00b@example.com', 'email'],
    ['/api/v2/subscribers/sub_x%07/events', 'subscriberId'],
    ['/api/v2/subscribers/ada@example.com?subscriberId=sub_x', 'subscriberId'],
    ['/api/v2/subscribers?status[]=SUBSCRIBED', 'status[]'],
  ]) {
    const { status, body } = await api.request('GET', String(path), { token })
    t.is(status, 422, path)
    t.like(body, { name: 'invalid_parameter', details: [{ path: fault }] }, path)
  }
})

test('a body or a query that names another record than the path is refused, and changes neither', async (t) => {
  const organization = await api.organization()
  const { token } = organization
  const [{ tag: one }, { tag: other }] = [
    await organization.data('create_tag', { name: 'one' }),
    await organization.data('create_tag', { name: 'other' }),
  ]
  const rename = (body: object) => api.request('PATCH', `/api/v2/tags/${one.id}`, { token, body })
  const refused = await rename({ tag: other.id, name: 'new' })
  t.like(refused, { status: 422, body: { name: 'invalid_parameter', details: [{ path: 'tag' }] } })
  t.is((await api.request('GET', `/api/v2/tags/${one.id}?tag=${other.id}`, { token })).status, 422)
  const { tags } = await organization.data('list_tags')
  t.deepEqual(
    tags.map(({ name }: { name: string }) => name),
    ['one', 'other'],
  )
  t.is((await rename({ tag: one.id, name: 'new' })).body.name, 'new')
})

test('payments, refunds and events of your own are recorded; those of the service are not made up', async (t) => {
  const ask = askerOf((await api.organization()).token)
  const { id } = (await ask('POST', '/subscribers', { email: 'ada@reader.example' })).body
  const paid = await ask('POST', '/events', {
    subscriberId: id,
    eventType: 'SUBSCRIBER_PAYMENT',
    amount: 20,
    currency: 'EUR',
  })
  t.like(paid, { status: 201, body: { subscriberId: id, type: 'SUBSCRIBER_PAYMENT', data: { amount: 20 } } })
  const metadata = { order: { number: 7 } }
  const placed = await ask('POST', '/events', {
    subscriberId: id,
    eventType: 'ORDER_PLACED',
    amount: 9,
    metadata,
  })
  t.like(placed, {
    status: 201,
    body: { type: 'ORDER_PLACED', data: { amount: 9, currency: 'USD', metadata } },
  })
  t.is((await ask('GET', `/subscribers/${id}`)).body.revenue, 20)
  for (const [change, path] of [
    [{ eventType: 'EMAIL_OPENED' }, 'eventType'],
    [{ eventType: 'SEGMENT_ENTERED' }, 'eventType'],
    [{ eventType: 'order placed' }, 'eventType'],
    [{ currency: 'EURO' }, 'currency'],
    [{ amount: -1 }, 'amount'],
    [{ email: 'ada@reader.example' }, 'subscriberId'],
  ] as const) {
    const answer = await ask('POST', '/events', { subscriberId: id, eventType: 'ORDER_PLACED', ...change })
    t.like(answer, { status: 422, body: { name: 'validation_error' } })
    t.is(answer.body.details[0].path, path)
  }
})

test('tags are created, read by id or name, and renamed unless something names them', async (t) => {
  const organization = await api.organization()
  const ask = askerOf(organization.token)
  const { id } = (await ask('POST', '/tags', { name: 'Founders' })).body
  await ask('POST', '/subscribers', { email: 'ada@reader.example', tags: ['founders'] })
  t.like(await ask('GET', '/tags/founders'), {
    status: 200,
    body: { id, name: 'Founders', subscriberCount: 1 },
  })
  t.like(await ask('PATCH', `/tags/${id}`, { name: 'First' }), {
    body: { id, name: 'First', subscriberCount: 1 },
  })
  t.deepEqual((await ask('GET', '/subscribers/ada@reader.example')).body.tags, ['First'])
  t.is((await ask('GET', '/tags/founders')).status, 404)
  await ask('POST', '/tags', { name: 'taken' })
  t.like(await ask('PATCH', '/tags/first', { name: 'TAKEN' }), {
    status: 409,
    body: { name: 'already_exists' },
  })
  t.like(await ask('POST', '/tags', { name: 'Taken' }), { status: 409, body: { name: 'already_exists' } })
  t.like(await ask('PATCH', '/tags/first', {}), { status: 422, body: { name: 'missing_required_field' } })
  await organization.data('create_segment', {
    name: 'The first',
    filters: [{ field: 'tags', operator: 'has_any', value: ['first'] }],
  })
  const refused = await ask('PATCH', '/tags/first', { name: 'second' })
  t.like(refused, { status: 409, body: { name: 'wrong_state' } })
  t.regex(refused.body.message, /segment "The first"/)
  t.like(await ask('PATCH', '/tags/first', { name: 'FIRST' }), { status: 200, body: { name: 'FIRST' } })
})

test('campaigns are created, merged, scheduled without a challenge, and deleted as drafts or archived', async (t) => {
  const organization = await api.organization()
  const ask = askerOf(organization.token)
  const made = await ask('POST', '/campaigns', { subject: 'News' })
  t.like(made, { status: 201, body: { subject: 'News', name: 'Untitled', status: 'DRAFT' } })
  const { id } = made.body
  const filters = [{ field: 'tags', operator: 'has_any', value: ['vip'] }]
  await ask('POST', '/tags', { name: 'vip' })
  const merged = await ask('PATCH', `/campaigns/${id}`, { name: 'May', recipientFilters: filters })
  t.like(merged, { status: 200, body: { name: 'May', subject: 'News', recipientFilters: filters } })
  const before = (await ask('GET', `/campaigns/${id}`)).body
  const refused = await ask('PATCH', `/campaigns/${id}`, {
    name: 'June',
    recipientFilters: [{ field: 'nothing' }],
  })
  t.like(refused, { status: 422, body: { name: 'validation_error' } })
  t.deepEqual((await ask('PATCH', `/campaigns/${id}`, {})).body, before)
  t.is((await ask('PATCH', `/campaigns/${id}`, { operations: [] })).status, 422)

  const date = '2035-01-31T09:00:00Z'
  const sent = await ask('POST', `/campaigns/${id}/send`, { date })
  t.like(sent, { status: 200, body: { id, status: 'SCHEDULED', scheduledAt: '2035-01-31T09:00:00.000Z' } })
  t.like(await ask('DELETE', `/campaigns/${id}`), { status: 409, body: { name: 'wrong_state' } })
  await organization.data('cancel_campaign_schedule', { campaignId: id })
  await organization.confirmed('archive_campaign', { campaignId: id })
  t.is((await ask('GET', '/campaigns')).body.data.length, 0)
  t.is((await ask('GET', '/campaigns?status=ARCHIVED&query=may')).body.data.length, 1)
  t.deepEqual((await ask('DELETE', `/campaigns/${id}`)).body, { object: 'campaign', id, deleted: true })
  t.is((await ask('DELETE', `/campaigns/${id}`)).status, 404)
})

test('a token is shown once, does what it may until it ends or is deleted, and gives no more than it has', async (t) => {
  const organization = await api.organization()
  const ask = askerOf(organization.token)
  const made = await ask('POST', '/tokens', { name: 'Shop', permissions: ['emails', 'tokens'] })
  t.is(made.status, 201)
  const { token, ...record } = made.body
  t.regex(token, /^pl_[0-9A-Za-z]{40}$/)
  t.is(record.lastFour, token.slice(-4))
  const listed = await ask('GET', '/tokens')
  t.deepEqual(listed.body.data[0], record)
  t.false(JSON.stringify(listed.body).includes(token))

  const shop = askerOf(token)
  t.like(await shop('GET', '/tokens/current'), { status: 200, body: { id: record.id, name: 'Shop' } })
  t.like(await shop('GET', '/tags'), { status: 403, body: { name: 'restricted_api_key' } })
  const more = await shop('POST', '/tokens', { name: 'More', permissions: ['emails', 'domains', 'tokens'] })
  t.like(more, { status: 403, body: { name: 'restricted_api_key', details: { permissions: ['domains'] } } })
  t.is((await shop('POST', '/tokens', { name: 'By default' })).status, 403)
  t.is((await shop('POST', '/tokens', { name: 'Less', permissions: [] })).status, 201)
  const preset = await ask('POST', '/tokens', { name: 'By default' })
  t.deepEqual(preset.body.permissions, [
    'emails',
    'subscribers',
    'campaigns',
    'workflows',
    'content',
    'organization',
  ])

  t.deepEqual((await shop('DELETE', `/tokens/${record.id}`)).body, {
    object: 'token',
    id: record.id,
    deleted: true,
  })
  t.like(await shop('GET', '/tokens'), { status: 401, body: { name: 'invalid_api_key' } })
  t.is((await ask('DELETE', `/tokens/${record.id}`)).status, 404)
  t.is((await askerOf(await organization.tokenWith(['emails']))('GET', '/tokens')).status, 403)

  const [day, week] = [1, 7].map((days) => new Date(Date.now() + days * 86_400_000).toISOString())
  const passing = await ask('POST', '/tokens', { name: 'Passing', permissions: ['tokens'], expiresAt: day })
  const passer = askerOf(passing.body.token)
  for (const expiresAt of [undefined, week]) {
    const refused = await passer('POST', '/tokens', { name: 'Longer', permissions: ['tokens'], expiresAt })
    t.like(refused, { status: 403, body: { name: 'restricted_api_key', details: { expiresAt: day } } })
  }
  t.is((await passer('POST', '/tokens', { name: 'As long', permissions: [], expiresAt: day })).status, 201)

  const soon = new Date(Date.now() + 1_500).toISOString()
  const brief = await ask('POST', '/tokens', { name: 'Brief', permissions: [], expiresAt: soon })
  t.like(brief, { status: 201, body: { expiresAt: soon } })
  await eventually('the token to end', async () => {
    return (await askerOf(brief.body.token)('GET', '/tokens/current')).status === 401
  })
  for (const [change, path] of [
    [{ expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'],
    [{ expiresAt: 'tomorrow' }, 'expiresAt'],
    [{ expiresAt: '2999-02-30T09:00:00Z' }, 'expiresAt'],
    [{ permissions: ['everything'] }, 'permissions[0]'],
    [{ permissions: ['emails', 'emails'] }, 'permissions'],
    [{ name: '' }, 'name'],
    [{ name: '  ' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
  ] as const) {
    const refused = await ask('POST', '/tokens', { name: 'x', ...change })
    t.like(refused, { status: 422, body: { name: 'validation_error' } })
    t.is(refused.body.details[0].path, path)
  }
})

test('a repeated Idempotency-Key gets its first answer again, but never the text of a token', async (t) => {
  const ask = askerOf((await api.organization()).token)
  const headers = { 'idempotency-key': 'once' }
  const first = await ask('POST', '/tags', { name: 'once' }, headers)
  const again = await ask('POST', '/tags', { name: 'once' }, headers)
  t.deepEqual([again.status, again.body], [first.status, first.body])
  const other = await ask('POST', '/tags', { name: 'twice' }, headers)
  t.like(other, { status: 409, body: { name: 'invalid_idempotent_request' } })
  const long = await ask('POST', '/tags', { name: 'x' }, { 'idempotency-key': 'x'.repeat(257) })
  t.like(long, { status: 400, body: { name: 'invalid_idempotency_key' } })
  const made = await ask('POST', '/tokens', { name: 'once' }, { 'idempotency-key': 'token' })
  const repeated = await ask('POST', '/tokens', { name: 'once' }, { 'idempotency-key': 'token' })
  t.deepEqual(repeated.body, { ...made.body, token: null })
})

test('HEAD, OPTIONS and 405 say what an address can do, and no other origin is let in', async (t) => {
  const organization = await api.organization()
  const ask = askerOf(organization.token)
  await ask('POST', '/tags', { name: 'one' })
  const [get, head] = [await ask('GET', '/tags/one'), await ask('HEAD', '/tags/one')]
  t.is(head.status, 200)
  t.is(head.body, '')
  t.is(head.headers.get('content-length'), get.headers.get('content-length'))
  t.is((await ask('HEAD', '/tags/two')).status, 404)
  for (const [method, path, allowed] of [
    ['DELETE', '/tags/one', ['GET', 'HEAD', 'PATCH']],
    ['PUT', '/campaigns/x', ['DELETE', 'GET', 'HEAD', 'PATCH']],
    ['DELETE', '/events', ['GET', 'HEAD', 'POST']],
    ['POST', '/tokens/current', ['DELETE', 'GET', 'HEAD']],
    ['PATCH', '/emails', ['GET', 'HEAD', 'POST']],
  ] as const) {
    const refused = await ask(method, path)
    t.like(refused, { status: 405, body: { name: 'method_not_allowed', statusCode: 405 } })
    t.deepEqual(refused.headers.get('allow')?.split(', ').sort(), [...allowed])
    const options = await ask('OPTIONS', path)
    t.is(options.status, 200)
    t.deepEqual(options.headers.get('allow')?.split(', ').sort(), [...allowed])
  }
  const origin = { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST' }
  for (const answer of [
    await ask('OPTIONS', '/tags', undefined, origin),
    await ask('GET', '/tags', undefined, origin),
  ]) {
    t.deepEqual(
      [...answer.headers.keys()].filter((name) => name.startsWith('access-control')),
      [],
    )
  }
})

test('every answer to a token tells its window, and the one too many when it ends', async (t) => {
  const organization = await api.organization({ customLimits: { requestsPerMinute: 2 } })
  const ask = askerOf(organization.token)
  const email = { from: 'x@nowhere.example', to: 'a@reader.example', subject: 'Hi', html: 'Hi' }
  t.is((await ask('POST', '/emails', email)).headers.get('ratelimit-remaining'), '2')
  const first = await ask('GET', '/tags/nothing')
  t.is(first.status, 404)
  t.deepEqual([first.headers.get('ratelimit-limit'), first.headers.get('ratelimit-remaining')], ['2', '1'])
  let last = first
  // The rate limit window may have ended in the meantime.
  for (let count = 0; count < 6 && last.status !== 429; count++) last = await ask('GET', '/tags')
  t.like(last, { status: 429, body: { name: 'rate_limit_exceeded', statusCode: 429 } })
  t.true(Number(last.headers.get('retry-after')) >= 1)
  t.is(last.headers.get('ratelimit-remaining'), '0')
  t.is((await ask('POST', '/emails', email)).status, 403)
})

test('the page of examples runs as it is written', async (t) => {
  const organization = await api.organization()
  const page = readFileSync(new URL('../docs/rest.md', import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/^```sh\n([^]+?)\n```$/gm)].map(([, commands = '']) => commands)
  const script = `set -euo pipefail\n${blocks.join('\n').replaceAll(/^export .*$/gm, '')}`
  const environment = { BASE: api.url, TOKEN: organization.token, FROM: `hello@${organization.domain}` }
  const { stdout } = await promisify(execFile)('bash', ['-c', script], {
    env: { ...process.env, ...environment },
  })
  const answers = stdout.trim().split('\n')
  const refused = answers.filter((answer) => answer.includes('"statusCode"'))
  t.deepEqual(refused, answers.slice(-1))
  const shown = /```json\n([^]+?)\n```/.exec(page)?.[1] ?? ''
  const withoutGaps = (answer: string) => {
    // Both are refusals of REST: that of the page, where `…` stands for a part, and that of the service.
    const { message, ...rest } = JSON.parse(answer) as { message: string; details: { message: string }[] }
    return [message, ...rest.details.map((detail) => detail.message)].map((text) => text.split('; ', 1))
  }
  t.deepEqual(withoutGaps(shown), withoutGaps(answers.at(-1) ?? ''))
  t.regex(answers[0] ?? '', /^\{"id":"eml_[0-9a-z]{26}"\}$/)
  t.regex(stdout, /"status":"SCHEDULED"/)
  t.regex(stdout, /"tags":\["vip"\],"customFields":\{"plan":"team"\}/)
})

test('the pages on the HTTP API and on webhooks name every address of REST', (t) => {
  const pages = ['http-api', 'webhooks'].map((page) =>
    readFileSync(new URL(`../docs/${page}.md`, import.meta.url), 'utf8'),
  )
  const named = new Set<string>()
  for (const [, cell = ''] of pages.join('\n').matchAll(/^\| (`[^|]*)\|/gm)) {
    // "`GET`, `POST /tags`": methods without a path belong to the next path.
    let methods: string[] = []
    for (const [, code = ''] of cell.matchAll(/`([^`]+)`/g)) {
      const [method = '', path] = code.split(' ')
      methods.push(method)
      if (path === undefined) continue
      for (const each of methods) named.add(`${each} ${path.replaceAll(/\{\w+\}/g, '{}')}`)
      methods = []
    }
  }
  const served = ROUTES.map(
    ({ method, path }) => `${method.toUpperCase()} /api/v2${path.replaceAll(/:\w+/g, '{}')}`,
  )
  t.deepEqual(
    served.filter((address) => !named.has(address)),
    [],
  )
})
