import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'

import anyTest, { type TestFn } from 'ava'
import Koa from 'koa'
import { sql } from 'kysely'
import { pino } from 'pino'

import { readText } from '../api/body.ts'
import { answerFailures } from '../api/errors.ts'
import { findAnswer, storeAnswer, storeRefusal, takeKey } from '../src/catalogue/idempotency.ts'
import { hashToken } from '../src/catalogue/tokens.ts'
import { execute, row } from '../src/database.ts'
import { startApi, type TestApi } from './helpers/api.ts'
import { listenOnLoopback } from './helpers/listen.ts'

const test = anyTest as TestFn<{ api: TestApi }>

test.before(async (t) => {
  t.context.api = await startApi()
})
test.after.always(async (t) => {
  await t.context.api.close()
})

test('every answer says who may call and how to repair a missing, malformed or unknown token', async (t) => {
  const { api } = t.context
  const { token } = await api.organization()
  for (const authorization of [
    undefined,
    '',
    'Bearer',
    'Basic abc',
    `Bearer ${token}x`,
    `Bearer pl_${'a'.repeat(40)}`,
  ]) {
    const answer = await api.request('POST', '/api/v2/tools/list_tags', {
      body: {},
      ...(authorization !== undefined && { headers: { authorization } }),
    })
    t.is(answer.status, 401)
    t.like(answer.body, { success: false, code: 'UNAUTHENTICATED' })
    t.regex(answer.body.error, /Authorization: Bearer/)
    t.is(answer.headers.get('www-authenticate'), 'Bearer')
  }
  for (const path of ['/api/v2/tags', '/api/v1/tags', '/api/v1/admin/tools', '/api/mcp/sse']) {
    t.is((await api.request('GET', path)).headers.get('www-authenticate'), 'Bearer', path)
  }
})

test('a body that does not arrive whole, or in time, is refused, and is not logged as a fault of ours', async (t) => {
  const logged: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => logged.push(line) })
  const app = new Koa()
  app.use((_ctx, next) => next().finally(() => ended.resolve()))
  app.use(answerFailures(log))
  app.use(async (ctx) => {
    if (ctx.path === '/later') await once(ctx.res, 'close')
    ctx.body = await readText(ctx, 1_000, 100)
  })
  let ended = Promise.withResolvers<void>()
  const server = createServer(app.callback())
  t.teardown(() => server.close())
  const port = await listenOnLoopback(server)
  const begin = (path = '/'): Socket => {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8')
    // The server closes the connection with a part of the body unread, which may reset it.
    socket.on('error', () => undefined)
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc`)
    return socket
  }
  const [answer] = await once(begin(), 'data')
  t.regex(answer, /^HTTP\/1\.1 400 /)
  t.regex(answer, /^Connection: close\r$/m)
  t.regex(answer, /did not arrive within 0\.1 s; send it again/)

  for (const path of ['/', '/later']) {
    ended = Promise.withResolvers()
    const leaving = begin(path)
    await once(leaving, 'connect')
    leaving.end()
    await ended.promise
  }
  t.deepEqual(logged, [])
})

test('a token without the permission of a tool is refused and told which one', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const token = await organization.tokenWith(['campaigns'])
  const answer = await api.request('POST', '/api/v2/tools/list_tags', { token, body: {} })
  t.is(answer.status, 403)
  t.like(answer.body, { code: 'FORBIDDEN', details: { permission: 'subscribers' } })
})

test('discovery lists every tool with its schemas, hints and gate, and one by name', async (t) => {
  const { api } = t.context
  const { token } = await api.organization()
  const { status, body } = await api.request('GET', '/api/v2/tools', { token })
  t.is(status, 200)
  t.is(body.data.total, body.data.tools.length)
  const deleteTag = body.data.tools.find((tool: { name: string }) => tool.name === 'delete_tag')
  t.like(deleteTag, {
    group: 'tags',
    requiresConfirmation: true,
    annotations: { readOnlyHint: false, destructiveHint: true },
  })
  t.true('confirmationCode' in deleteTag.inputSchema.properties)
  const one = await api.request('GET', '/api/v2/tools/delete_tag', { token })
  t.deepEqual(one.body.data, deleteTag)
})

test('an unknown tool names those that are near', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const answer = await organization.call('list_tag')
  t.is(answer.status, 404)
  t.is(answer.body.code, 'TOOL_NOT_FOUND')
  t.regex(answer.body.error, /list_tags/)
  const mistyped = await organization.call('quary_subscribers')
  t.is(mistyped.body.details.nearNames[0], 'query_subscribers')
  t.is(mistyped.body.details.nearNames.length, 5)
})

test('an operation that no tool list shows cannot be run as a tool', async (t) => {
  const organization = await t.context.api.organization()
  const answer = await organization.call('send_transactional_email', {
    to: 'a@example.com',
    subject: 'x',
    content: 'y',
  })
  t.is(answer.status, 404)
})

test('unknown fields, wrong types and missing fields are refused together, each at its path', async (t) => {
  const organization = await t.context.api.organization()
  const answer = await organization.call('bulk_add_tags', { subscriberIds: 'x', tagName: ['a'] })
  t.is(answer.status, 400)
  t.is(answer.body.code, 'INVALID_INPUT')
  const faults: { path: string; message: string }[] = answer.body.details
  t.deepEqual(faults.map(({ path }) => path).sort(), ['subscriberIds', 'tagName', 'tagNames'])
  t.regex(faults.find(({ path }) => path === 'tagName')?.message ?? '', /did you mean "tagNames"/)
})

test('a body that is not JSON, not an object, too deep, hostile or too large is refused by name', async (t) => {
  const { api } = t.context
  const { token } = await api.organization()
  const post = (raw: string, headers?: Record<string, string>) =>
    api.request('POST', '/api/v2/tools/create_tag', { token, raw, ...(headers && { headers }) })

  t.is((await post('{"name":')).body.code, 'INVALID_INPUT')
  t.is((await post('[]')).body.code, 'INVALID_INPUT')
  t.is((await post('"x"')).body.code, 'INVALID_INPUT')
  t.is((await post('{"name":"x"}', { 'content-type': 'text/plain' })).status, 415)
  const deep = await post(`${'{"a":'.repeat(40)}1${'}'.repeat(40)}`)
  t.regex(deep.body.error, /deeper than 32/)
  const hostile = await post('{"__proto__": {"name": "x"}, "name": "y"}')
  t.regex(hostile.body.error, /__proto__/)
  t.regex((await post('{"name":"a\\u0000b"}')).body.error, /control character/)
  t.regex((await post('{"name":"\\ud800"}')).body.error, /surrogate/)
  const infinite = await api.request('POST', '/api/v2/tools/create_segment', {
    token,
    raw: '{"name": "Rich", "filters": [{"field": "revenue", "operator": "lt", "value": 1e400}]}',
  })
  t.deepEqual([infinite.status, infinite.body.details[0].path], [400, 'filters[0].value'])
  t.is((await post(JSON.stringify({ name: 'x'.repeat(1_100_000) }))).status, 413)
})

test('who sends the whole of a body that is refused gets the answer, and the connection goes on', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const { token } = organization
  const weak = await organization.tokenWith(['campaigns'])
  const length = 20_000_000
  const rows = 'someone@example.com,Somebody\n'.repeat(length / 29)
  const json = 'x'.repeat(length)
  for (const [address, type, by, body, status] of [
    ['tools/create_tag', 'application/json', token, json, 413],
    ['imports', 'text/csv', weak, rows, 403],
    ['imports', 'text/csv', token, rows, 422],
    ['imports', 'application/json', token, json, 415],
  ] as const) {
    for (const isChunked of [false, true]) {
      const framed = isChunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1').setEncoding('utf8')
      // A lost connection shows in the answers.
      socket.on('error', () => undefined)
      const head = `Host: 127.0.0.1\r\nAuthorization: Bearer ${by}\r\n`
      const frame = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`
      socket.write(`POST /api/v2/${address} HTTP/1.1\r\n${head}Content-Type: ${type}\r\n${frame}\r\n\r\n`)
      await new Promise((resolve) => socket.write(framed, resolve))
      socket.write(`GET /api/v2/tokens/current HTTP/1.1\r\n${head}Connection: close\r\n\r\n`)
      const answers = await socket.toArray().then(
        (pieces) => pieces.join(''),
        (error: unknown) => String(error),
      )
      t.deepEqual(
        Array.from(answers.matchAll(/HTTP\/1\.1 (\d+)/g), ([, found]) => Number(found)),
        [status, 200],
        `${address}, chunked: ${isChunked}`,
      )
    }
  }
})

test('a body in another encoding is refused and not stored with other letters; a byte order mark is no letter', async (t) => {
  const { api } = t.context
  const { token } = await api.organization()
  const post = async (body: Buffer, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${api.url}/api/v2/tools/create_tag`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body: new Uint8Array(body),
    })
    // oxlint-disable-next-line typescript/no-explicit-any -- assertions reach into answers of every shape
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as any }
  }
  const text = '{"name": "Café"}'
  for (const encoding of ['latin1', 'utf16le'] as const) {
    const refused = await post(Buffer.from(text, encoding), {
      'content-type': `application/json; charset=${encoding}`,
    })
    t.like(refused, { status: 400, body: { code: 'INVALID_INPUT' } })
    t.regex(refused.body.error, /UTF-8/)
  }
  const packed = await post(gzipSync(text), { 'content-encoding': 'gzip' })
  t.like(packed, { status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' } })
  t.is(packed.headers.get('accept-encoding'), 'identity')
  t.regex(packed.body.error, /"gzip".*without Content-Encoding/)
  t.is((await post(Buffer.from(`\ufeff${text}`))).body.data.tag.name, 'Café')
})

test('an unknown address and an impossible method answer in the same shape', async (t) => {
  const { api } = t.context
  const lost = await api.request('GET', '/api/v2/tools/list_tags/nowhere')
  t.is(lost.status, 404)
  t.like(lost.body, { success: false, code: 'NOT_FOUND' })
  const method = await api.request('DELETE', '/api/v2/tools')
  t.is(method.status, 405)
  t.regex(method.headers.get('allow') ?? '', /GET/)
  t.like(await api.request('PROPFIND', '/api/v2/nowhere'), { status: 404, body: { name: 'not_found' } })
  t.like(await api.request('PROPFIND', '/api/v2/tags'), { status: 405, body: { name: 'method_not_allowed' } })
})

test('a refusal has the shape of its address, also in capitals or with a slash at its end', async (t) => {
  const { api } = t.context
  for (const [path, body] of [
    ['/API/V2/Tags/', { name: 'missing_api_key' }],
    ['/API/v2/TOOLS', { code: 'UNAUTHENTICATED' }],
    ['/mcp/', { jsonrpc: '2.0' }],
    ['/API/MCP/SSE', { jsonrpc: '2.0' }],
  ] as const) {
    t.like(await api.request('GET', path), { status: 401, body }, path)
  }
  for (const [path, body] of [
    ['/api/v2', { name: 'not_found', statusCode: 404 }],
    ['/api/v1', { success: false, code: undefined }],
    ['/api/v1/admin', { success: undefined }],
    ['/api/mcp', { jsonrpc: '2.0' }],
    ['/api/v2tags', { success: false, code: 'NOT_FOUND' }],
  ] as const) {
    t.like(await api.request('GET', path), { status: 404, body }, path)
  }
})

test('the hundred-and-first request of a minute on Free is refused with Retry-After', async (t) => {
  const { api } = t.context
  const organization = await api.organization({ plan: 'FREE', customLimits: {} })
  const before = await api.request('GET', '/api/v2/tools/list_tags', { token: organization.token })
  const limit = Number(before.headers.get('ratelimit-limit'))
  t.is(limit, 100)
  t.is(Number(before.headers.get('ratelimit-remaining')), 99)
  const answers = await Promise.all(Array.from({ length: 110 }, () => organization.call('list_tags')))
  const refused = answers.filter(({ status }) => status === 429)
  // The window may end during the test. Then nothing is refused.
  const isSameWindow = answers.every(
    ({ headers }) => Number(headers.get('ratelimit-reset')) <= Number(before.headers.get('ratelimit-reset')),
  )
  if (isSameWindow) t.is(answers.length - refused.length, 99)
  for (const { body, headers } of refused) {
    t.is(body.code, 'RATE_LIMITED')
    t.true(Number(headers.get('retry-after')) >= 1)
    t.is(headers.get('ratelimit-remaining'), '0')
  }
})

test('customLimits override the plan, and 0 lifts the limit', async (t) => {
  const { api } = t.context
  const few = await api.organization({ plan: 'FREE', customLimits: { requestsPerMinute: 2 } })
  t.is((await few.call('list_tags')).headers.get('ratelimit-limit'), '2')
  const none = await api.organization({ customLimits: { requestsPerMinute: 0 } })
  t.is((await none.call('list_tags')).headers.get('ratelimit-limit'), null)
})

test('the same Idempotency-Key and body replay the first answer', async (t) => {
  const organization = await t.context.api.organization()
  const key = { 'idempotency-key': 'order-1' }
  const first = await organization.call('create_tag', { name: 'vip' }, key)
  const again = await organization.call('create_tag', { name: 'vip' }, key)
  t.is(first.status, 200)
  t.deepEqual(again.body, first.body)
  const other = await organization.call('create_tag', { name: 'gold' }, key)
  t.is(other.status, 409)
  t.is(other.body.code, 'IDEMPOTENCY_MISMATCH')
})

test('a refusal is replayed under its key as well, until the key ends', async (t) => {
  const organization = await t.context.api.organization()
  await organization.call('create_tag', { name: 'taken' })
  const key = { 'idempotency-key': 'order-2' }
  const first = await organization.call('create_tag', { name: 'taken' }, key)
  t.is(first.body.code, 'ALREADY_EXISTS')
  await organization.confirmed('delete_tag', { name: 'taken' })
  const again = await organization.call('create_tag', { name: 'taken' }, key)
  t.deepEqual(again.body, first.body)
})

test('a refusal under a key does not replace the answer of a call that began after it and is still running', async (t) => {
  const { api } = t.context
  const { id: organizationId } = await api.organization()
  const call = { organizationId, key: 'both', operation: 'create_tag', bodyHash: Buffer.from('body') }
  const em = api.services.orm.em.fork()
  const refusal = { failure: { code: 'NOT_FOUND', message: 'There is none yet.' } } as const
  await em.transactional(async (running) => {
    t.is(await takeKey(running, call), null)
    await storeRefusal(api.services.orm.em.fork(), call, refusal)
    await storeAnswer(running, call, { data: { done: true } })
  })
  await storeRefusal(em, call, refusal)
  t.deepEqual(await findAnswer(em, call), { data: { done: true } })
})

test('twenty parallel calls under one key have one effect', async (t) => {
  const organization = await t.context.api.organization()
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      organization.call('create_tag', { name: 'once' }, { 'idempotency-key': 'k' }),
    ),
  )
  for (const { status, body } of answers) {
    t.true(status === 200 || body.code === 'IDEMPOTENCY_IN_PROGRESS', JSON.stringify(body))
  }
  const made = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body.data.tag.id))
  t.is(made.size, 1)
})

test('a key belongs to one organization', async (t) => {
  const { api } = t.context
  const [one, other] = [await api.organization(), await api.organization()]
  const key = { 'idempotency-key': 'shared' }
  const first = await one.call('create_tag', { name: 'a' }, key)
  const second = await other.call('create_tag', { name: 'b' }, key)
  t.is(first.status, 200)
  t.is(second.status, 200)
})

test('a malformed Idempotency-Key is refused', async (t) => {
  const organization = await t.context.api.organization()
  for (const key of ['k'.repeat(257), '']) {
    const answer = await organization.call('create_tag', { name: 'x' }, { 'idempotency-key': key })
    t.is(answer.status, 400)
    t.is(answer.body.code, 'INVALID_IDEMPOTENCY_KEY')
  }
})

test('an impact tool asks first, says what it will do, and its code works once', async (t) => {
  const organization = await t.context.api.organization()
  await organization.call('create_tag', { name: 'old' })
  const asked = await organization.call('delete_tag', { name: 'old' })
  t.is(asked.status, 428)
  t.is(asked.body.code, 'CONFIRMATION_REQUIRED')
  t.regex(asked.body.confirmationCode, /^\d{5}$/)
  t.true(Date.parse(asked.body.expiresAt) > Date.now() + 4 * 60_000)
  t.is(asked.body.summary.action, 'delete_tag')
  const { confirmationCode } = asked.body
  const done = await organization.call('delete_tag', { name: 'old', confirmationCode })
  t.is(done.status, 200)
  await organization.call('create_tag', { name: 'old' })
  const spent = await organization.call('delete_tag', { name: 'old', confirmationCode })
  t.is(spent.status, 428)
  t.regex(spent.body.error, /already used/)
})

test('a code is bound to the exact input and the organization', async (t) => {
  const { api } = t.context
  const [one, other] = [await api.organization(), await api.organization()]
  for (const organization of [one, other]) {
    await organization.call('create_tag', { name: 'a' })
    await organization.call('create_tag', { name: 'b' })
  }
  const { confirmationCode } = (await one.call('delete_tag', { name: 'a' })).body
  t.is((await one.call('delete_tag', { name: 'b', confirmationCode })).status, 428)
  t.is((await other.call('delete_tag', { name: 'a', confirmationCode })).status, 428)
  t.is((await one.call('delete_tag', { name: 'a', confirmationCode })).status, 200)
})

test('a tool that asks for no confirmation does not know the field of its code', async (t) => {
  const organization = await t.context.api.organization()
  const answer = await organization.call('create_tag', { name: 'x', confirmationCode: '12345' })
  t.like(answer, { status: 400, body: { code: 'INVALID_INPUT', details: [{ path: 'confirmationCode' }] } })
})

test('five wrong codes close a challenge', async (t) => {
  const organization = await t.context.api.organization()
  await organization.call('create_tag', { name: 'guarded' })
  const { confirmationCode } = (await organization.call('delete_tag', { name: 'guarded' })).body
  const wrong = confirmationCode === '11111' ? '22222' : '11111'
  for (let guess = 0; guess < 5; guess++) {
    t.is((await organization.call('delete_tag', { name: 'guarded', confirmationCode: wrong })).status, 428)
  }
  const closed = await organization.call('delete_tag', { name: 'guarded', confirmationCode })
  t.is(closed.status, 428)
  t.regex(closed.body.error, /wrong attempts/)
})

test('what cannot be done is refused before a challenge is made', async (t) => {
  const organization = await t.context.api.organization()
  const answer = await organization.call('delete_tag', { name: 'never made' })
  t.is(answer.status, 404)
})

test('a mistyped name of a field is answered with the nearest name that there is', async (t) => {
  const organization = await t.context.api.organization()
  const answer = await organization.call('add_subscriber', { emial: 'ada@example.com' })
  t.regex(answer.body.error, /"emial" is not known here; did you mean "email"/)
})

test('a call that takes nothing needs no body', async (t) => {
  const { api } = t.context
  const { token } = await api.organization()
  const answer = await api.request('POST', '/api/v2/tools/list_tags', {
    token,
    headers: { 'content-type': 'application/json' },
  })
  t.is(answer.status, 200)
})

test('refused requests and sends tell the window too', async (t) => {
  const { api } = t.context
  const { token, domain } = await api.organization({ plan: 'PREMIUM', customLimits: {} })
  const asks = [
    api.request('POST', '/api/v2/tools/list_tags', { token, raw: '{' }),
    api.request('POST', '/api/v2/tools/no_such_tool', { token, raw: '{}' }),
    api.request('POST', '/api/v1/emails', { token, raw: '{' }),
    api.request('POST', '/api/v1/emails', {
      token,
      body: { to: `reader@${domain}`, subject: 'Hello', content: 'Hello' },
    }),
  ]
  const answers = await Promise.all(asks)
  t.deepEqual(
    answers.map(({ status }) => status),
    [400, 404, 400, 200],
  )
  for (const { headers } of answers) t.is(headers.get('ratelimit-limit'), '700')
})

test('v1 answers in its frozen shape, and its message lists every fault', async (t) => {
  const { api } = t.context
  const { token } = await api.organization()
  const answer = await api.request('POST', '/api/v1/emails', { token, body: { subject: 1, colour: 'red' } })
  t.is(answer.status, 422)
  t.deepEqual(Object.keys(answer.body), ['success', 'message'])
  for (const name of ['subject', 'colour', 'to'])
    t.true(answer.body.message.includes(name), answer.body.message)
  for (const [method, path, status] of [
    ['GET', '/api/v1/nowhere', 404],
    ['GET', '/api/v1/emails', 405],
  ] as const) {
    const lost = await api.request(method, path)
    t.is(lost.status, status)
    t.deepEqual(Object.keys(lost.body), ['success', 'message'])
  }
})

test('a token that was just used sends nothing more once it is revoked, expired or narrowed', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const email = { to: 'reader@example.com', subject: 'Hello', content: 'Hello' }
  for (const [change, status] of [
    ['revoked_at = now()', 401],
    ['expires_at = now()', 401],
    [`permissions = '{campaigns}'`, 403],
  ] as const) {
    const token = await organization.tokenWith(['emails'])
    const send = (body: object, headers = {}) =>
      api.request('POST', '/api/v1/emails', { token, body, headers })
    for (let round = 0; round < 2; round++) t.is((await send(email)).status, 200)
    t.is((await send(email, { 'idempotency-key': `before ${change}` })).status, 200)
    t.is((await send({})).status, 422)
    const em = api.services.orm.em.fork()
    await execute(
      em,
      sql`update api_token set ${sql.raw(change)} where organization_id = ${organization.id} and token_hash = ${hashToken(token)}`,
    )
    t.is((await send(email)).status, status, change)
    t.is((await send({})).status, status, change)
    t.is((await send(email, { 'idempotency-key': `before ${change}` })).status, status, change)
    const stored = await row(
      em,
      sql`select count(*)::int as messages from message where organization_id = ${organization.id}`,
    )
    t.deepEqual(stored, { messages: 3 })
    await execute(em, sql`delete from message where organization_id = ${organization.id}`)
  }
})

test('the key of an email: one email however often, also at once; refusals are kept, but not those of the token', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const document = JSON.stringify({ type: 'doc', content: [] })
  const send = async (body: object, key: string, token = organization.token) => {
    const headers = { 'idempotency-key': key }
    const email = { to: 'reader@example.com', subject: 'Hello', ...body }
    return await api.request('POST', '/api/v1/emails', { token, body: email, headers })
  }
  for (const content of [{ content: 'Hello' }, { content: document, contentType: 'TIPTAP' }]) {
    const key = Object.keys(content).join()
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(content, key)))
    const first = answers.find(({ status }) => status === 200)
    for (const { status, body } of answers) {
      if (status === 200) t.is(body.id, first?.body.id)
      else t.is(status, 409, JSON.stringify(body))
    }
    t.deepEqual((await send(content, key)).body, first?.body)
    t.is((await send({ content: 'Other' }, key)).status, 409)
  }
  const em = api.services.orm.em.fork()
  const sent = await row(
    em,
    sql`select count(*)::int as messages from message where organization_id = ${organization.id}`,
  )
  t.deepEqual(sent, { messages: 2 })

  const foreign = { content: 'x', from: 'a@nowhere.example' }
  const refused = await send(foreign, 'refused')
  t.is(refused.status, 403)
  t.deepEqual((await send(foreign, 'refused')).body, refused.body)

  const gone = await organization.tokenWith(['emails'])
  t.is((await send({ content: 'Warm' }, 'warm', gone)).status, 200)
  await execute(em, sql`update api_token set revoked_at = now() where token_hash = ${hashToken(gone)}`)
  t.is((await send({ content: 'Late' }, 'late', gone)).status, 401)
  t.is((await send({ content: 'Late' }, 'late')).status, 200)
})

test.serial('nothing is served under a host name that is not ours, however ours is written', async (t) => {
  const { url, services } = t.context.api
  const { baseUrl } = services.config
  t.teardown(() => (services.config.baseUrl = baseUrl))
  services.config.baseUrl = 'https://mail.example.org'
  const statusAt = async (host: string) =>
    await new Promise((resolve, reject) => {
      request(`${url}/openapi.json`, { headers: { host } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
        .once('error', reject)
        .end()
    })
  for (const host of [
    'mail.example.org',
    'Mail.Example.ORG',
    'mail.example.org:443',
    '127.0.0.1:7',
    '[::1]',
  ]) {
    t.is(await statusAt(host), 200, host)
  }
  for (const host of ['evil.example', 'mail.example.org:80', 'mail.example.org.evil.example', 'a b', ':']) {
    t.is(await statusAt(host), 404, host)
  }
})

test('health, readiness and metrics answer without a token', async (t) => {
  const { api } = t.context
  t.is((await api.request('GET', '/healthz')).status, 200)
  const ready = await api.request('GET', '/readyz')
  t.is(ready.status, 200)
  t.deepEqual(ready.body.dependencies, { database: 'ok', temporal: 'ok' })
  const metrics = await api.request('GET', '/metrics')
  t.regex(metrics.body, /postloom_http_request_seconds_bucket/)
})

test('every answer carries a request id', async (t) => {
  const answer = await t.context.api.request('GET', '/healthz')
  t.regex(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
})
