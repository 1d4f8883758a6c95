import anyTest, { type TestFn } from 'ava'
import { sql } from 'kysely'

import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { execute, row } from '../src/database.ts'
import { keepHouse } from '../src/domain/housekeeping.ts'
import { closePending, replayPage } from '../src/domain/webhooks/pages.ts'
import { reportResults } from '../src/domain/webhooks/results.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { startWebhookTurns } from '../worker/webhook-turns.ts'
import { startApi, type TestApi } from './helpers/api.ts'
import { countRight, type Endpoints, startEndpoints, status } from './helpers/endpoint.ts'
import { eventually } from './helpers/eventually.ts'

type Hook = { id: string; secret: string }

const test = anyTest as TestFn<{
  api: TestApi
  endpoints: Endpoints
  worker: { stop(): Promise<void> }
}>

test.before(async (t) => {
  t.context.endpoints = await startEndpoints()
  t.context.api = await startApi({ ...t.context.endpoints.allow, LOG_LEVEL: 'fatal' })
  t.context.worker = startWebhookTurns(t.context.api.services, { requestMs: 4_000 })
})
test.after.always(async (t) => {
  await t.context.worker?.stop()
  await t.context.api?.close()
  t.context.endpoints?.close()
})

/** Creates an organization and returns functions for testing its webhooks. */
async function tenantOf({ api, endpoints }: { api: TestApi; endpoints: Endpoints }) {
  const organization = await api.organization()
  const em = () => crossOrganization(api.services)
  const rest = (method: string, path: string, body?: unknown, token = organization.token) =>
    api.request(method, `/api/v2/webhooks${path}`, { token, ...(body !== undefined && { body }) })
  return {
    ...organization,
    rest,
    em,
    async hook(path: string, eventTypes: string[] | null = ['SUBSCRIBED']): Promise<Hook> {
      const answer = await rest('POST', '', { url: endpoints.url + path, eventTypes })
      if (answer.status !== 201) throw new Error(`a webhook was refused: ${JSON.stringify(answer.body)}`)
      return answer.body
    },
    /** Adds a subscriber, which causes one SUBSCRIBED event. */
    async person(): Promise<{ email: string; id: string }> {
      const email = `${newId()}@reader.example`
      const { subscriber } = await organization.data('add_subscriber', { email })
      return { email, id: subscriber.id }
    },
    /** Inserts `count` events directly, as delivery does. */
    async events(count: number, { type = 'SUBSCRIBED', of = '' } = {}) {
      const id = of === '' ? (await this.person()).id : of
      await execute(
        em(),
        sql`insert into subscriber_event (id, organization_id, subscriber_id, type)
          select new_id(), ${organization.id}, ${decodeId('sub', id)}, ${type}
          from generate_series(1, ${count})`,
      )
    },
    async deliveries(hook: Hook, query = '') {
      const { body } = await rest('GET', `/${hook.id}/deliveries?limit=100${query}`)
      return body.data
    },
    /** Waits until the only delivery matches `isMeant` and returns it. */
    async delivery(hook: Hook, isMeant: (delivery: Record<string, unknown>) => boolean) {
      return await eventually('the delivery', async () => {
        const [only] = await this.deliveries(hook)
        return only !== undefined && isMeant(only) && only
      })
    },
    /** Makes pending deliveries due now. */
    async hurry(hook: Hook) {
      const id = decodeId('whk', hook.id)
      await execute(
        em(),
        sql`update webhook_delivery set next_attempt_at = now() where webhook_id = ${id} and status = 'PENDING'`,
      )
      await execute(em(), sql`update webhook set next_turn_at = now(), due_at = now() where id = ${id}`)
    },
    async change(hook: Hook, assignments: ReturnType<typeof sql>) {
      await execute(em(), sql`update webhook set ${assignments} where id = ${decodeId('whk', hook.id)}`)
    },
  }
}

const isDelivered = ({ status }: Record<string, unknown>) => status === 'DELIVERED'
const hasTried = (times: number) => (delivery: Record<string, unknown>) => delivery['attempts'] === times

test('a webhook is told the events of its types from now on, signed as Standard Webhooks says', async (t) => {
  const { endpoints } = t.context
  const [tenant, other] = [await tenantOf(t.context), await tenantOf(t.context)]
  await tenant.person()
  const hook = await tenant.hook('/first')
  const all = await tenant.hook('/all', null)
  await other.hook('/other')
  endpoints.answer('/first', status(201, 'thank you'))
  const { email, id } = await tenant.person()
  await tenant.data('update_subscriber', { subscriber: id, tags: ['vip'] })
  const delivery = await tenant.delivery(hook, isDelivered)
  t.like(delivery, {
    eventType: 'SUBSCRIBED',
    attempts: 1,
    responseStatus: 201,
    responseBody: 'thank you',
    error: null,
    nextAttemptAt: null,
  })
  const [told, ...more] = endpoints.told('/first')
  t.deepEqual(more, [])
  if (!told) return t.fail()
  t.is(countRight(hook.secret, told), 1)
  t.is(countRight(all.secret, told), 0, 'another secret')
  t.is(countRight(hook.secret, { ...told, body: `${told.body} ` }), 0, 'another body')
  t.like(told.headers, { 'content-type': 'application/json', 'webhook-id': delivery.id })
  const body = JSON.parse(told.body)
  t.like(body, {
    type: 'SUBSCRIBED',
    data: {
      id: delivery.id,
      subscriberId: id,
      email,
      type: 'SUBSCRIBED',
      webhookId: hook.id,
      organizationId: encodeId('org', tenant.id),
      cause: { kind: 'token' },
    },
  })
  t.is(body.timestamp, body.data.createdAt)
  await eventually('what all are told', () => endpoints.ids('/all').includes(delivery.id))
  t.deepEqual(endpoints.told('/other'), [])
})

test('a secret is shown once, kept sealed, and after a rotation both sign for a day', async (t) => {
  const { endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/rotated')
  t.regex(hook.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.false('secret' in (await tenant.rest('GET', `/${hook.id}`)).body)
  const kept = await row<{ secret: Buffer }>(
    tenant.em(),
    sql`select secret from webhook where id = ${decodeId('whk', hook.id)}`,
  )
  const key = Buffer.from(hook.secret.slice(6), 'base64')
  t.false(kept?.secret.includes(key) ?? true)
  t.false(kept?.secret.includes(hook.secret) ?? true)

  const ask = {
    token: tenant.token,
    body: { url: 'https://shop.example' },
    headers: { 'idempotency-key': 'once' },
  }
  const [made, again] = [
    await t.context.api.request('POST', '/api/v2/webhooks', ask),
    await t.context.api.request('POST', '/api/v2/webhooks', ask),
  ]
  t.truthy(made.body.secret)
  t.deepEqual(again.body, { ...made.body, secret: null })

  const { body: next, status: code } = await tenant.rest('POST', `/${hook.id}/rotate-secret`, {})
  t.is(code, 200)
  t.not(next.secret, hook.secret)
  t.truthy(next.previousSecretUntil)
  await tenant.person()
  const both = await eventually('the first', () => endpoints.told('/rotated')[0])
  t.deepEqual([countRight(next.secret, both), countRight(hook.secret, both)], [1, 1])

  await tenant.change(hook, sql`previous_until = now()`)
  await tenant.person()
  const one = await eventually('the second', () => endpoints.told('/rotated')[1])
  t.deepEqual([countRight(next.secret, one), countRight(hook.secret, one)], [1, 0])
  t.is((await tenant.rest('GET', `/${hook.id}`)).body.previousSecretUntil, null)
})

test('an endpoint that fails is asked again, later each time, under the same id, until it answers well', async (t) => {
  const { endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/flaky')
  endpoints.answer('/flaky', (response, number) => {
    if (number === 1) response.writeHead(500).end('no')
    // The second request is never answered.
    else if (number === 3) response.writeHead(302, { location: `${endpoints.url}/elsewhere` }).end()
    else if (number === 4) response.writeHead(429, { 'retry-after': '7200' }).end()
    else if (number > 4) response.end('x'.repeat(5_000))
  })
  await tenant.person()
  const seen = []
  for (let attempts = 1; attempts <= 4; attempts += 1) {
    seen.push(await tenant.delivery(hook, hasTried(attempts)))
    await tenant.hurry(hook)
  }
  t.deepEqual(
    seen.map((delivery) => [delivery.status, delivery.responseStatus, delivery.error]),
    [
      ['PENDING', 500, 'The endpoint answered 500.'],
      ['PENDING', null, 'The endpoint did not answer within 4 seconds.'],
      ['PENDING', 302, 'The endpoint answered 302.'],
      ['PENDING', 429, 'The endpoint answered 429.'],
    ],
  )
  const waits = seen.map(
    ({ lastAttemptAt, nextAttemptAt }) => (Date.parse(nextAttemptAt) - Date.parse(lastAttemptAt)) / 1_000,
  )
  for (const [index, least] of [4, 12, 36, 7_200].entries()) {
    t.true((waits[index] ?? 0) >= least, `${waits[index]} s after attempt ${index + 1}`)
    t.true(
      (waits[index] ?? 0) <= Math.max(least * 1.51, 7_200),
      `${waits[index]} s after attempt ${index + 1}`,
    )
  }
  const done = await tenant.delivery(hook, isDelivered)
  t.like(done, { attempts: 5, responseStatus: 200, responseBody: 'x'.repeat(1_024), error: null })
  t.is(new Set(endpoints.ids('/flaky')).size, 1)
  t.deepEqual(endpoints.told('/elsewhere'), [])
  t.is((await tenant.rest('GET', `/${hook.id}`)).body.failingSince, null)
})

test('a delivery is given up a day after its first attempt, and one event is sent again by hand', async (t) => {
  const { endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/down')
  endpoints.answer('/down', status(503))
  await tenant.person()
  const { id } = await tenant.delivery(hook, hasTried(1))
  await execute(
    tenant.em(),
    sql`update webhook_delivery set first_attempt_at = now() - interval '24 hours' where event_id = ${decodeId('evt', id)}`,
  )
  await tenant.hurry(hook)
  const failed = await tenant.delivery(hook, ({ status }) => status === 'FAILED')
  t.like(failed, { attempts: 2, nextAttemptAt: null })
  t.deepEqual((await tenant.deliveries(hook, '&status=FAILED')).length, 1)
  t.deepEqual((await tenant.deliveries(hook, '&status=PENDING')).length, 0)

  endpoints.answer('/down', status(200))
  const again = await tenant.rest('POST', `/${hook.id}/deliveries/${id}/replay`, {})
  t.is(again.status, 202)
  t.like(again.body, { id, status: 'PENDING', attempts: 0 })
  await tenant.hurry(hook)
  t.like(await tenant.delivery(hook, isDelivered), { attempts: 1, responseStatus: 200 })
  const twice = await tenant.rest('POST', `/${hook.id}/deliveries/${id}/replay`, {})
  t.is(twice.status, 202)
  await eventually('the delivered one once more', () => endpoints.ids('/down').length === 4)
  t.is(new Set(endpoints.ids('/down')).size, 1)
  t.is((await tenant.rest('GET', `/${hook.id}/deliveries/${id}`)).body.id, id)
})

test('what waited for a day is given up where the endpoint failed all day, and not where we were away', async (t) => {
  const { endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/unsteady')
  endpoints.answer('/unsteady', status(503))
  await tenant.change(hook, sql`next_turn_at = 'infinity'`)
  // More deliveries than are attempted during this test, at three per turn.
  await tenant.events(300)
  const wait = async () => {
    await execute(
      tenant.em(),
      sql`update webhook_delivery set queued_at = now() - interval '30 hours',
          next_attempt_at = now() - interval '25 hours'
        where webhook_id = ${decodeId('whk', hook.id)} and attempts = 0`,
    )
    await tenant.change(hook, sql`next_turn_at = now()`)
  }
  const count = async () =>
    await row<{ tried: number; failed: number; lost: number }>(
      tenant.em(),
      sql`select count(*) filter (where attempts > 0)::int as tried,
          count(*) filter (where status = 'FAILED')::int as failed,
          count(*) filter (where status = 'FAILED' and attempts > 0)::int as lost
        from webhook_delivery where webhook_id = ${decodeId('whk', hook.id)}`,
    )
  await wait()
  const later = await eventually('a second turn', async () => {
    const now = await count()
    return (now?.tried ?? 0) > 3 && now
  })
  t.is(later.failed, 0)

  await tenant.change(hook, sql`failing_since = now() - interval '24 hours', next_turn_at = now()`)
  const over = await eventually('those that were never tried', async () => {
    const now = await count()
    return (now?.failed ?? 0) > 0 && now
  })
  t.is(over.failed, 301 - over.tried)
  t.is(over.lost, 0, 'what was tried has its day')
  const [last] = await tenant.deliveries(hook, '&status=FAILED')
  t.is(last.error, 'The endpoint accepted nothing for 24 hours.')
})

test('what a worker notes after its turn is tried again, whatever turns there were meanwhile', async (t) => {
  const { api, endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/late')
  await tenant.change(hook, sql`next_turn_at = 'infinity'`)
  await tenant.person()
  const [{ id }] = await tenant.deliveries(hook)
  const scope = { organizationId: tenant.id, actor: { kind: 'system' as const, id: 'test', name: 'test' } }
  const failed = { attempt: 1, wasAsked: true, status: 503, body: '', error: 'It answered 503.' }
  await unitOfWork(api.services, scope, (call) =>
    reportResults(call, decodeId('whk', hook.id), [
      { ...failed, eventId: decodeId('evt', id), waitSeconds: 0, isOver: false },
    ]),
  )
  await tenant.change(hook, sql`next_turn_at = now()`)
  t.is((await tenant.delivery(hook, isDelivered)).attempts, 2)
  t.deepEqual(endpoints.ids('/late'), [id])
})

test('a slow endpoint holds up no other, and is asked no more than eight things at once', async (t) => {
  const { endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const waiting: (() => void)[] = []
  endpoints.answer('/slow', (response) => waiting.push(() => response.end()))
  // The subscriber exists before the webhooks, so that the first turn finds all events.
  const { id: of } = await tenant.person()
  const slow = await tenant.hook('/slow')
  const quick = await tenant.hook('/quick')
  await tenant.events(40, { of })
  await eventually('all that may be open', () => waiting.length >= 8)
  await eventually('the quick one', () => new Set(endpoints.ids('/quick')).size === 40)
  t.is(endpoints.mostOpen('/slow'), 8)
  await eventually('it to be noted', async () => {
    return (await tenant.deliveries(quick, '&status=DELIVERED')).length === 40
  })
  await eventually('the slow one', async () => {
    for (const answer of waiting.splice(0)) answer()
    await tenant.hurry(slow)
    return (await tenant.deliveries(slow, '&status=DELIVERED')).length === 40
  })
  t.is(endpoints.mostOpen('/slow'), 8)
  t.is(new Set(endpoints.ids('/slow')).size, 40)
})

test('nothing but failures for five days disables a webhook; what was pending fails, and so it says', async (t) => {
  const { endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/dead')
  endpoints.answer('/dead', status(500))
  const { id: of } = await tenant.person()
  await tenant.delivery(hook, hasTried(1))
  t.like((await tenant.rest('GET', `/${hook.id}`)).body, { enabled: true, disabledReason: null })
  await tenant.change(hook, sql`failing_since = now() - interval '5 days'`)
  await tenant.hurry(hook)
  await tenant.delivery(hook, hasTried(2))
  t.true((await tenant.rest('GET', `/${hook.id}`)).body.enabled, 'few failures are no reason')
  await tenant.change(hook, sql`failures = 19`)
  await tenant.events(4, { of })
  await tenant.hurry(hook)
  const disabled = await eventually('disabled', async () => {
    const { body } = await tenant.rest('GET', `/${hook.id}`)
    return !body.enabled && body
  })
  t.like(disabled, { disabledReason: 'FAILING' })
  t.truthy(disabled.disabledAt)
  await eventually(
    'what was pending',
    async () => (await tenant.deliveries(hook, '&status=FAILED')).length === 5,
  )
  const errors = (await tenant.deliveries(hook)).map(({ error }: { error: string }) => error)
  t.true(errors.includes('The webhook was disabled before this could be delivered.'))
  const noted = await row<{ actor: string }>(
    tenant.em(),
    sql`select actor from audit_entry where action = 'webhook.disabled' and target = ${hook.id}`,
  )
  t.is(noted?.actor, 'webhooks')

  await tenant.person()
  t.is((await tenant.deliveries(hook)).length, 5, 'a disabled one is told nothing')
  for (const path of ['ping', 'replay', `deliveries/${(await tenant.deliveries(hook))[0].id}/replay`]) {
    const answer = await tenant.rest('POST', `/${hook.id}/${path}`, {
      ...(path === 'replay' && { since: new Date().toISOString() }),
    })
    t.like(answer, { status: 409, body: { name: 'wrong_state' } }, path)
  }
  endpoints.answer('/dead', status(200))
  const { body } = await tenant.rest('PATCH', `/${hook.id}`, { enabled: true })
  t.like(body, { enabled: true, disabledAt: null, disabledReason: null, failingSince: null })
  await tenant.person()
  await eventually('alive', async () => (await tenant.deliveries(hook, '&status=DELIVERED')).length === 1)
})

test('a webhook that is enabled again at once is told what happens from then on, and nothing before', async (t) => {
  const { endpoints, api } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/again')
  await tenant.change(hook, sql`next_turn_at = now() + interval '1 hour'`)
  await tenant.events(3)
  await tenant.rest('PATCH', `/${hook.id}`, { enabled: false })
  t.is((await tenant.rest('PATCH', `/${hook.id}`, { enabled: true })).status, 200)
  await tenant.person()
  await eventually('the new event', async () => endpoints.ids('/again').length === 1)
  const failed = await tenant.deliveries(hook, '&status=FAILED')
  t.deepEqual(
    failed.map(({ error }: { error: string }) => error),
    Array.from({ length: 4 }, () => 'The webhook was disabled before this could be delivered.'),
  )

  await tenant.change(hook, sql`next_turn_at = now() + interval '1 hour'`)
  await tenant.person()
  const turn = { organizationId: tenant.id, webhookId: decodeId('whk', hook.id), turn: 1, failures: 0 }
  await closePending(
    crossOrganization(api.services),
    { ...turn, enabled: false, isDeleted: false, isReplaying: false },
    { isLate: false },
  )
  t.is((await tenant.deliveries(hook, '&status=FAILED')).length, 4, 'a worker that comes late closes nothing')
})

test('an endpoint that answers 410 is gone at once; disabling by hand says so', async (t) => {
  const tenant = await tenantOf(t.context)
  t.context.endpoints.answer('/gone', status(410))
  const hook = await tenant.hook('/gone')
  await tenant.person()
  await eventually('gone', async () => {
    const { body } = await tenant.rest('GET', `/${hook.id}`)
    return body.disabledReason === 'GONE' && !body.enabled
  })
  const own = await tenant.hook('/own')
  const { body } = await tenant.rest('PATCH', `/${own.id}`, { enabled: false, description: 'the shop' })
  t.like(body, { enabled: false, disabledReason: 'REQUESTED', description: 'the shop' })
  t.is((await tenant.rest('PATCH', `/${own.id}`, { enabled: false })).body.disabledAt, body.disabledAt)
})

test('a ping is sent once, whatever the types, and tells what was answered', async (t) => {
  const { endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/ping', ['EMAIL_BOUNCED'])
  endpoints.answer('/ping', status(404, 'no such page'))
  const { body, status: code } = await tenant.rest('POST', `/${hook.id}/ping`, {})
  t.is(code, 202)
  t.like(body, { eventType: 'WEBHOOK_PING', status: 'PENDING' })
  const failed = await tenant.delivery(hook, ({ status }) => status === 'FAILED')
  t.like(failed, { id: body.id, attempts: 1, responseStatus: 404, responseBody: 'no such page' })
  const [told] = endpoints.told('/ping')
  if (!told) return t.fail()
  t.is(countRight(hook.secret, told), 1)
  t.like(JSON.parse(told.body), { type: 'WEBHOOK_PING', data: { id: body.id, webhookId: hook.id } })
})

test('an address inside is not reached, and why is told', async (t) => {
  const tenant = await tenantOf(t.context)
  const { body: hook } = await tenant.rest('POST', '', { url: 'http://127.0.0.1:1/metadata' })
  await tenant.rest('POST', `/${hook.id}/ping`, {})
  const failed = await tenant.delivery(hook, ({ status }) => status === 'FAILED')
  t.like(failed, {
    responseStatus: null,
    error: 'The endpoint does not lead to a public address on port 80 or 443.',
  })
})

test('everything since a time is sent again, also what happened before there was a webhook, page by page', async (t) => {
  const { api, endpoints } = t.context
  const tenant = await tenantOf(t.context)
  await tenant.person()
  await tenant.data('add_subscriber', { email: `${newId()}@reader.example`, tags: ['vip'] })
  const hook = await tenant.hook('/replay', ['SUBSCRIBED', 'EMAIL_SENT'])
  await tenant.person()
  await tenant.delivery(hook, isDelivered)
  const since = new Date(Date.now() - 3_600_000).toISOString()
  const answer = await tenant.rest('POST', `/${hook.id}/replay`, { since })
  t.is(answer.status, 202)
  await eventually('all three', async () => (await tenant.deliveries(hook, '&status=DELIVERED')).length === 3)
  await eventually('four times', () => endpoints.ids('/replay').length >= 4)
  t.is(new Set(endpoints.ids('/replay')).size, 3)
  await eventually('the end', async () => !(await tenant.rest('GET', `/${hook.id}`)).body.replaying)

  // More than one page; only this test queues it, because no worker can take the lease.
  const big = await tenant.hook('/big', ['EMAIL_CLICKED'])
  await tenant.events(6_000, { type: 'EMAIL_OPENED' })
  await tenant.rest('PATCH', `/${big.id}`, { eventTypes: ['EMAIL_OPENED'] })
  await tenant.change(big, sql`lease_until = 'infinity'`)
  t.true((await tenant.rest('POST', `/${big.id}/replay`, { since })).body.replaying)
  const id = decodeId('whk', big.id)
  const scope = { organizationId: tenant.id, actor: { kind: 'system' as const, id: 'test', name: 'test' } }
  const queued = async () => {
    await unitOfWork(api.services, scope, (call) => replayPage(call, id))
    const found = await row<{ queued: number; isOver: boolean }>(
      tenant.em(),
      sql`select (select count(*)::int from webhook_delivery where webhook_id = ${id}) as queued,
        replay_after is null as "isOver" from webhook where id = ${id}`,
    )
    return [found?.queued, found?.isOver]
  }
  const [first, isOver] = await queued()
  t.true(Number(first) > 4_900 && Number(first) <= 5_000)
  t.false(isOver)
  t.deepEqual(await queued(), [6_000, true])
  t.deepEqual(await queued(), [6_000, true])
})

test('what cannot be is refused, with where and why', async (t) => {
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/refusals')
  const url = 'https://shop.example/hooks'
  const refused: [string, string, unknown, object][] = [
    ['POST', '', {}, { name: 'missing_required_field', statusCode: 422 }],
    ['POST', '', { url: 'ftp://shop.example' }, { name: 'validation_error', statusCode: 422 }],
    ['POST', '', { url: 'shop.example' }, { name: 'validation_error' }],
    ['POST', '', { url: 'https://me:pass@shop.example' }, { name: 'validation_error' }],
    ['POST', '', { url: `https://shop.example/${'x'.repeat(2_048)}` }, { name: 'validation_error' }],
    ['POST', '', { url, eventTypes: [] }, { name: 'validation_error' }],
    ['POST', '', { url, eventTypes: ['email.bounced'] }, { name: 'validation_error' }],
    ['POST', '', { url, description: 'x'.repeat(201) }, { name: 'validation_error' }],
    ['POST', '', { url, secret: 'whsec_mine' }, { name: 'validation_error' }],
    ['PATCH', `/${hook.id}`, { url: 'javascript:alert(1)' }, { name: 'validation_error' }],
    ['POST', `/${hook.id}/replay`, { since: 'yesterday' }, { name: 'validation_error' }],
    ['POST', `/${hook.id}/replay`, { since: '2999-01-01' }, { name: 'validation_error' }],
    ['POST', `/${hook.id}/replay`, { since: '2020-01-01' }, { name: 'validation_error' }],
    ['GET', `/${hook.id}/deliveries?after=evt_x`, undefined, { name: 'invalid_parameter' }],
    ['GET', `/${hook.id}/deliveries/${encodeId('evt', newId())}`, undefined, { name: 'not_found' }],
    ['POST', `/${hook.id}/deliveries/${encodeId('evt', newId())}/replay`, {}, { name: 'not_found' }],
  ]
  for (const [method, path, body, expected] of refused) {
    const answer = await tenant.rest(method, path, body)
    t.like(answer.body, expected, `${method} ${path} ${JSON.stringify(body)?.slice(0, 100)}`)
  }
  t.is((await tenant.call('list_webhooks')).body.code, 'TOOL_NOT_FOUND', 'REST alone has these')
  const token = await tenant.tokenWith(['organization', 'emails', 'campaigns', 'tokens'])
  t.like(await tenant.rest('GET', '', undefined, token), {
    status: 403,
    body: { name: 'restricted_api_key' },
  })
  for (let number = 2; number <= 20; number += 1) await tenant.hook(`/many/${number}`)
  t.like(await tenant.rest('POST', '', { url }), { status: 409, body: { name: 'wrong_state' } })
  const { body } = await tenant.rest('GET', '?limit=2')
  t.deepEqual([body.data.length, body.has_more], [2, true])
  t.is((await tenant.rest('GET', `?limit=100&before=${hook.id}`)).body.data.length, 19)
})

test("another organization's webhook is as if there were none, at every address", async (t) => {
  const [tenant, other] = [await tenantOf(t.context), await tenantOf(t.context)]
  const hook = await other.hook('/foreign')
  await other.person()
  const { id } = await other.delivery(hook, isDelivered)
  const since = new Date().toISOString()
  const paths: [string, string, unknown][] = [
    ['GET', '', undefined],
    ['PATCH', '', { enabled: false }],
    ['DELETE', '', undefined],
    ['POST', '/rotate-secret', {}],
    ['POST', '/ping', {}],
    ['POST', '/replay', { since }],
    ['GET', '/deliveries', undefined],
    ['GET', `/deliveries/${id}`, undefined],
    ['POST', `/deliveries/${id}/replay`, {}],
  ]
  const missing = encodeId('whk', newId())
  for (const [method, path, body] of paths) {
    const foreign = await tenant.rest(method, `/${hook.id}${path}`, body)
    const none = await tenant.rest(method, `/${missing}${path}`, body)
    t.is(foreign.status, 404, `${method} ${path}`)
    t.deepEqual(JSON.stringify(foreign.body).replaceAll(hook.id, missing), JSON.stringify(none.body))
  }
  const own = await tenant.hook('/mine')
  t.is((await tenant.rest('GET', `/${own.id}/deliveries/${id}`)).status, 404)
  t.true((await other.rest('GET', `/${hook.id}`)).body.enabled)
})

test('deliveries are read page by page, newest first; old ones go', async (t) => {
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/pages')
  for (let number = 0; number < 5; number += 1) await tenant.person()
  const ids: string[] = (await tenant.deliveries(hook)).map(({ id }: { id: string }) => id)
  t.deepEqual(ids, ids.toSorted().toReversed())
  const page = await tenant.rest('GET', `/${hook.id}/deliveries?limit=2&after=${ids[1]}`)
  t.like(page.body, { object: 'list', has_more: true })
  t.deepEqual(
    page.body.data.map(({ id }: { id: string }) => id),
    ids.slice(2, 4),
  )
  await eventually('all', async () => (await tenant.deliveries(hook, '&status=DELIVERED')).length === 5)
  const [event] = ids
  await execute(
    tenant.em(),
    sql`update webhook_delivery set event_id = id_floor(now() - interval '31 days')
      where event_id = ${decodeId('evt', event ?? '')}`,
  )
  await keepHouse(tenant.em())
  t.deepEqual(
    (await tenant.deliveries(hook)).map(({ id }: { id: string }) => id),
    ids.slice(1),
  )
})

test('whoever is erased is told of by nobody: not by what waits, nor by what was answered', async (t) => {
  const { api, endpoints } = t.context
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/erased')
  const { email, id } = await tenant.person()
  endpoints.answer('/erased', status(500, `no room for ${email}`))
  const before = await tenant.delivery(hook, hasTried(1))
  t.is(before.responseBody, `no room for ${email}`)
  const erased = await api.request('DELETE', `/api/v2/subscribers/${id}`, { token: tenant.token })
  t.is(erased.status, 200)
  t.is((await tenant.deliveries(hook))[0].responseBody, null)
  endpoints.answer('/erased', status(200))
  await tenant.hurry(hook)
  await tenant.delivery(hook, isDelivered)
  const body = JSON.parse(endpoints.told('/erased').at(-1)?.body ?? '')
  t.is(body.data.email, null)
  t.not(body.data.subscriberId, id)
})

test('a webhook that is deleted is gone with its deliveries', async (t) => {
  const tenant = await tenantOf(t.context)
  const hook = await tenant.hook('/deleted')
  await tenant.person()
  await tenant.delivery(hook, isDelivered)
  t.deepEqual((await tenant.rest('DELETE', `/${hook.id}`)).body, {
    object: 'webhook',
    id: hook.id,
    deleted: true,
  })
  t.is((await tenant.rest('GET', `/${hook.id}`)).status, 404)
  t.deepEqual((await tenant.rest('GET', '')).body.data, [])
  const left = async () =>
    await row<{ deliveries: number; webhooks: number }>(
      tenant.em(),
      sql`select (select count(*)::int from webhook_delivery where organization_id = ${tenant.id}) as deliveries,
        (select count(*)::int from webhook where organization_id = ${tenant.id}) as webhooks`,
    )
  await eventually('no deliveries', async () => (await left())?.deliveries === 0)
  await tenant.change(hook, sql`deleted_at = now() - interval '2 hours', next_turn_at = now()`)
  await eventually('no webhook', async () => (await left())?.webhooks === 0)
})
