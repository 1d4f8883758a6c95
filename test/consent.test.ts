import test from 'ava'

import { SUBSCRIBER_STATUSES, type SubscriberStatus } from '../schema/values.ts'
import { sql } from 'kysely'
import { execute } from '../src/database.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

type Request = { doubleOptIn: boolean; resubscribe?: boolean; skipDoubleOptIn?: boolean }
const FLAGS = [undefined, false, true]
const COMBINATIONS: Request[] = [false, true].flatMap((doubleOptIn) =>
  FLAGS.flatMap((resubscribe) =>
    FLAGS.map((skipDoubleOptIn) => ({
      doubleOptIn,
      ...(resubscribe !== undefined && { resubscribe }),
      ...(skipDoubleOptIn !== undefined && { skipDoubleOptIn }),
    })),
  ),
)

/** The contract's table, written a second time and in another way than the code has it. */
function expectedAfterAdd(before: SubscriberStatus | null, request: Request): SubscriberStatus {
  const { doubleOptIn, resubscribe = true, skipDoubleOptIn = false } = request
  if (before === null || before === 'TRANSACTIONAL') {
    return doubleOptIn && !skipDoubleOptIn ? 'PENDING_CONFIRMATION' : 'SUBSCRIBED'
  }
  if (before === 'PENDING_CONFIRMATION') return skipDoubleOptIn ? 'SUBSCRIBED' : before
  if (before === 'UNSUBSCRIBED') return resubscribe ? 'SUBSCRIBED' : before
  return before
}

function expectedAfterUpdate(before: SubscriberStatus, request: Request): SubscriberStatus {
  if (before === 'PENDING_CONFIRMATION') return request.skipDoubleOptIn ? 'SUBSCRIBED' : before
  if (before === 'UNSUBSCRIBED') return request.resubscribe ? 'SUBSCRIBED' : before
  return before
}

async function put(organization: TestOrganization, status: SubscriberStatus): Promise<string> {
  const email = `${status.toLowerCase()}-${Math.random().toString(36).slice(2)}@example.com`
  await organization.data('add_subscriber', { email, skipDoubleOptIn: true })
  await execute(
    api.services.orm.em.fork(),
    sql`update subscriber set status = ${status} where organization_id = ${organization.id} and email = ${email}`,
  )
  return email
}

async function subscriptions(organization: TestOrganization, email: string): Promise<number> {
  const { events } = await organization.data('list_subscriber_events', { email, eventType: 'SUBSCRIBED' })
  return events.length
}

test('add_subscriber moves every status as the table says, whatever the flags', async (t) => {
  const organizations = [await api.organization(), await api.organization({ doubleOptIn: true })]
  for (const { doubleOptIn, ...flags } of COMBINATIONS) {
    const organization = organizations[Number(doubleOptIn)]
    if (!organization) throw new Error('no organization')
    for (const before of [null, ...SUBSCRIBER_STATUSES]) {
      const email = before === null ? `new-${Math.random()}@example.com` : await put(organization, before)
      const subscribedBefore = before === null ? 0 : 1
      const { subscriber } = await organization.data('add_subscriber', { email, ...flags })
      const expected = expectedAfterAdd(before, { doubleOptIn, ...flags })
      const message = JSON.stringify({ before, doubleOptIn, ...flags })
      t.is(subscriber.status, expected, message)
      const isNews = expected === 'SUBSCRIBED' && before !== 'SUBSCRIBED'
      t.is(await subscriptions(organization, email), subscribedBefore + Number(isNews), message)
    }
  }
})

test('update_subscriber moves every status as the table says, whatever the flags', async (t) => {
  const organizations = [await api.organization(), await api.organization({ doubleOptIn: true })]
  for (const { doubleOptIn, ...flags } of COMBINATIONS) {
    const organization = organizations[Number(doubleOptIn)]
    if (!organization) throw new Error('no organization')
    for (const before of SUBSCRIBER_STATUSES) {
      const email = await put(organization, before)
      const { subscriber } = await organization.data('update_subscriber', {
        subscriber: email,
        name: 'Ada',
        ...flags,
      })
      const message = JSON.stringify({ before, doubleOptIn, ...flags })
      t.is(subscriber.status, expectedAfterUpdate(before, { doubleOptIn, ...flags }), message)
    }
  }
})

test('a patch of the name does not subscribe anybody again', async (t) => {
  const organization = await api.organization()
  const email = await put(organization, 'UNSUBSCRIBED')
  const { subscriber } = await organization.data('update_subscriber', { subscriber: email, name: 'Ada' })
  t.is(subscriber.status, 'UNSUBSCRIBED')
})

test('unsubscribe moves every status, asks first, and records it once', async (t) => {
  const organization = await api.organization()
  for (const before of SUBSCRIBER_STATUSES) {
    const email = await put(organization, before)
    const asked = await organization.call('unsubscribe', { email, reason: 'too many' })
    t.is(asked.status, 428)
    t.is(asked.body.code, 'CONFIRMATION_REQUIRED')
    t.is(asked.body.summary.target, email)
    t.true(asked.body.summary.effects.length > 0)
    const unchanged = await organization.data('get_subscriber', { email })
    t.is(unchanged.subscriber.status, before)
    const { confirmationCode } = asked.body
    const done = await organization.call('unsubscribe', { email, reason: 'too many', confirmationCode })
    t.is(done.status, 200, JSON.stringify(done.body))
    t.is(done.body.data.subscriber.status, 'UNSUBSCRIBED')
    const again = await organization.confirmed('unsubscribe', { email })
    t.is(again.status, 200)
    const { events } = await organization.data('list_subscriber_events', { email, eventType: 'UNSUBSCRIBED' })
    t.is(events.length, before === 'UNSUBSCRIBED' ? 0 : 1)
    if (events[0]) t.like(events[0].data, { reason: 'too many', from: before, source: 'api' })
  }
})

test('a confirmation code of unsubscribe is bound to its input and works once', async (t) => {
  const organization = await api.organization()
  const [one, other] = [await put(organization, 'SUBSCRIBED'), await put(organization, 'SUBSCRIBED')]
  const { confirmationCode } = (await organization.call('unsubscribe', { email: one })).body
  t.is((await organization.call('unsubscribe', { email: other, confirmationCode })).status, 428)
  t.is((await organization.data('get_subscriber', { email: other })).subscriber.status, 'SUBSCRIBED')
  t.is((await organization.call('unsubscribe', { email: one, confirmationCode })).status, 200)
  t.is((await organization.call('unsubscribe', { email: one, confirmationCode })).status, 428)
})

test('unsubscribe refuses somebody unknown before it asks for a code', async (t) => {
  const organization = await api.organization()
  const answer = await organization.call('unsubscribe', { email: 'nobody@example.com' })
  t.is(answer.status, 404)
  t.is(answer.body.code, 'NOT_FOUND')
})
