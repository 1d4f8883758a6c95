import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

import test, { type ExecutionContext } from 'ava'

import { Postloom, type PostloomOptions, type Result } from '../sdk/src/index.ts'
import { listenOnLoopback } from './helpers/listen.ts'

const EMAIL = { from: 'a@shop.example', to: 'b@reader.example', subject: 'Hello', html: '<p>Hello</p>' }
const AT_ONCE = { 'retry-after': '0' }

type Turn = (response: ServerResponse) => void
type Asked = { line: string; headers: IncomingMessage['headers']; body: string }
type Service = { client: (options?: PostloomOptions) => Postloom; asked: Asked[]; heard: Promise<unknown> }

/** Starts a service that answers each request with the next turn, and then always with the last one. */
async function serving(t: ExecutionContext, ...turns: Turn[]): Promise<Service> {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const turn = turns[Math.min(asked.length, turns.length - 1)]
    const line = `${request.method} ${request.url}`
    asked.push({ line, headers: request.headers, body: Buffer.concat(chunks).toString() })
    turn?.(response)
  })
  const heard = once(server, 'request')
  const port = await listenOnLoopback(server)
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const baseUrl = `http://127.0.0.1:${port}`
  return { client: (options) => new Postloom('pl_key', { baseUrl, ...options }), asked, heard }
}

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Turn {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return (response) => response.writeHead(status, headers).end(text)
}

function refuse(status: number, name: string, headers = AT_ONCE): Turn {
  return answer(status, { name, message: 'No.', statusCode: status }, headers)
}

const cut: Turn = (response) => response.destroy()
const silence: Turn = () => undefined
const EMPTY = answer(200, { object: 'list', data: [], has_more: false }, { 'x-request-id': 'one' })
const SENT = answer(200, { id: 'eml_1' })

test('what cannot be asked, is not answered or cannot be read is an error with a name', async (t) => {
  const { client } = await serving(t, silence)
  const broken = await serving(t, answer(200, '{"object": '))
  const text = await serving(t, answer(200, '"text"'))
  const gateway = await serving(t, answer(502, '<h1>Bad gateway</h1>'))
  const elsewhere = await serving(t, answer(301, '', { location: 'http://127.0.0.1:1/' }))
  const lost = await serving(t, cut)
  const circle: { name?: unknown } = {}
  circle.name = circle
  // Callers in plain JavaScript can pass values of any type.
  const wrong = (value: unknown) => value as never
  const cases: [Promise<Result<unknown>>, string, number | null, RegExp][] = [
    [new Postloom(wrong(5)).tags.list(), 'invalid_api_key', null, /pl_/],
    [new Postloom('pl_a\nb').tags.list(), 'invalid_api_key', null, /^(?![^]*pl_a)/],
    [new Postloom('pl_key', wrong({ baseUrl: 7 })).tags.list(), 'invalid_request', null, /baseUrl/],
    [new Postloom('pl_key', { baseUrl: 'nowhere' }).tags.list(), 'network_error', null, /nowhere/],
    [client().tags.create(wrong(circle)), 'invalid_request', null, /circular/],
    [client().campaigns.get(''), 'invalid_request', null, /campaignId/],
    [client().webhooks.deliveries.get('whk_1', '..'), 'invalid_request', null, /deliveryId/],
    [client().campaigns.get(wrong(undefined)), 'invalid_request', null, /campaignId/],
    [client().tags.get('\ud800'), 'invalid_request', null, /URI/],
    [client().emails.send(EMAIL, { idempotencyKey: 'ключ' }), 'invalid_request', null, /./],
    [client().tags.list({}, wrong(null)), 'invalid_request', null, /null/],
    [client({ timeout: 1 }).tags.list(), 'timeout', null, /within 1 ms/],
    [client().tags.list({}, { timeout: 1 }), 'timeout', null, /within 1 ms/],
    [client().tags.list({}, { signal: AbortSignal.abort() }), 'aborted', null, /aborted/],
    [lost.client().tags.list(), 'network_error', null, /fetch failed: ./],
    [elsewhere.client().tags.list(), 'network_error', null, /redirect/],
    [broken.client().tags.list(), 'invalid_response', 200, /"object"/],
    [text.client().tags.list(), 'invalid_response', 200, /"text"/],
    [text.client().tools.list_tags(), 'invalid_response', 200, /"text"/],
    [gateway.client().tools.list_tags(), 'invalid_response', 502, /Bad gateway/],
  ]
  for (const [asked, name, statusCode, message] of cases) {
    const { data, error, headers } = await asked
    t.is(data, null)
    t.like(error, { name, statusCode }, String(error))
    t.regex(error?.message ?? '', message)
    t.regex(error?.message ?? '', /[.…]$/)
    t.is(typeof headers, 'object')
    t.like(JSON.parse(JSON.stringify(error)), { name, message: error?.message })
  }
})

test('a call that is under way ends with its signal, also while it waits to be repeated', async (t) => {
  const quiet = await serving(t, silence)
  const busy = await serving(t, refuse(503, 'service_unavailable', { 'retry-after': '60' }))
  for (const { client, heard } of [quiet, busy]) {
    const controller = new AbortController()
    const asked = client({ retries: 1, timeout: Infinity }).tags.list({}, { signal: controller.signal })
    await heard
    controller.abort(new Error('enough'))
    const { error } = await asked
    t.like(error, { name: 'aborted', cause: { message: 'enough' } })
  }
})

test('what is safe to repeat is repeated where that was asked for, and nothing else is', async (t) => {
  const cases: [string, (client: Postloom) => Promise<Result<unknown>>, Turn[], number, boolean][] = [
    ['nobody asked', (client) => client.tags.list({}, { retries: 0 }), [cut, EMPTY], 1, false],
    ['a read', (client) => client.tags.list(), [cut, refuse(429, 'rate_limit_exceeded'), EMPTY], 3, true],
    [
      'a reading tool',
      (client) => client.tools.list_tags(),
      [cut, answer(200, { success: true, data: {} })],
      2,
      true,
    ],
    ['a changing tool', (client) => client.tools.create_tag({ name: 'vip' }), [cut, SENT], 1, false],
    [
      'a write without a key',
      (client) => client.emails.send(EMAIL),
      [refuse(503, 'service_unavailable'), SENT],
      1,
      false,
    ],
    [
      'a write with a key',
      (client) => client.emails.send(EMAIL, { idempotencyKey: 'one' }),
      [cut, refuse(409, 'concurrent_idempotent_requests'), SENT],
      3,
      true,
    ],
    ['another refusal', (client) => client.tags.list(), [refuse(409, 'wrong_state'), EMPTY], 1, false],
    [
      'the end of the month',
      (client) => client.emails.send(EMAIL, { idempotencyKey: 'two' }),
      [refuse(429, 'monthly_quota_exceeded'), SENT],
      1,
      false,
    ],
    [
      'too long a wait',
      (client) => client.tags.list(),
      [refuse(503, 'service_unavailable', { 'retry-after': '3600' }), EMPTY],
      1,
      false,
    ],
    [
      'a date',
      (client) => client.tags.list(),
      [refuse(503, 'service_unavailable', { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }), EMPTY],
      2,
      true,
    ],
    [
      'a bound',
      (client) => client.tags.list({}, { retries: 2 }),
      [refuse(503, 'service_unavailable')],
      3,
      false,
    ],
    [
      'a stream',
      (client) => client.imports.create(new Blob(['email\n']).stream(), {}, { idempotencyKey: 'three' }),
      [refuse(503, 'service_unavailable'), SENT],
      1,
      false,
    ],
  ]
  for (const [title, ask, turns, times, succeeds] of cases) {
    const { client, asked } = await serving(t, ...turns)
    const { error } = await ask(client({ retries: 3 }))
    t.is(asked.length, times, title)
    t.is(error === null, succeeds, title)
    t.is(
      new Set(asked.map(({ line, headers, body }) => [line, headers['idempotency-key'], body].join())).size,
      1,
      title,
    )
  }
})

test('a request has the key, the headers of the client and what was asked, and the answer its headers', async (t) => {
  const { client, asked } = await serving(t, EMPTY)
  const { headers } = await client({ headers: { 'x-csrf': 'one' } }).subscribers.events.list(
    'a/b+c@x.example',
    {
      eventType: 'TAG_ADDED',
      limit: 3,
    },
  )
  t.is(headers['x-request-id'], 'one')
  t.is(asked[0]?.line, 'GET /api/v2/subscribers/a%2Fb%2Bc%40x.example/events?eventType=TAG_ADDED&limit=3')
  t.like(asked[0]?.headers, { authorization: 'Bearer pl_key', 'x-csrf': 'one', accept: 'application/json' })
  await client().imports.create('email\na@x.example\n', { tags: ['one', 'two'], mapping: { Mail: 'email' } })
  t.like(asked[1], { body: 'email\na@x.example\n', headers: { 'content-type': 'text/csv' } })
  t.is(decodeURIComponent(asked[1]?.line ?? ''), 'POST /api/v2/imports?tags=one,two&mapping={"Mail":"email"}')
  await client().imports.create('email\n', { tags: ['one, two'] })
  t.is(decodeURIComponent(asked[2]?.line ?? ''), 'POST /api/v2/imports?tags=["one, two"]')
  await client().imports.create('email\n', { tags: ['[one]'] })
  t.is(decodeURIComponent(asked[3]?.line ?? ''), 'POST /api/v2/imports?tags=["[one]"]')
  // No query of the catalogue has a list of objects yet.
  await client().tags.list({ order: [{ by: 'name' }] } as object)
  t.is(decodeURIComponent(asked[4]?.line ?? ''), 'GET /api/v2/tags?order=[{"by":"name"}]')
})

test.serial(
  'a client without arguments is told by the environment, and without a key sends none',
  async (t) => {
    const { client, asked } = await serving(t, EMPTY)
    await client().tags.list()
    const before = { ...process.env }
    t.teardown(() => Object.assign(process.env, before))
    process.env['POSTLOOM_BASE_URL'] = `http://${asked[0]?.headers.host}/`
    delete process.env['POSTLOOM_API_KEY']
    await new Postloom().tags.list()
    t.is(asked[1]?.headers.authorization, undefined)
    process.env['POSTLOOM_API_KEY'] = 'pl_environment'
    await new Postloom().tags.list()
    t.is(asked[2]?.headers.authorization, 'Bearer pl_environment')
    t.is(asked[2]?.line, 'GET /api/v2/tags')
  },
)
