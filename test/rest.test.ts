import test from 'ava'

import { type Answer, startApi, type TestApi } from './helpers/api.ts'

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
  const tools = Array.from({ length: 105 }, () => organization.call('list_tags'))
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

test('the Tools API says INVALID_INPUT and UNAUTHENTICATED where REST has finer names', async (t) => {
  const organization = await api.organization()
  const missing = await organization.call('add_subscriber', {})
  t.like(missing.body, { success: false, code: 'INVALID_INPUT' })
  const nobody = await api.request('POST', '/api/v2/tools/add_subscriber', { body: {} })
  t.like(nobody.body, { success: false, code: 'UNAUTHENTICATED' })
})
