import test from 'ava'
import { sql } from 'kysely'

import { execute, row, rows } from '../src/database.ts'
import { signToken } from '../src/delivery/tracking-token.ts'
import { encodeId, newId, readId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi
let organization: TestOrganization

test.before(async () => {
  api = await startApi()
  organization = await api.organization()
})
test.after.always(async () => {
  await api?.close()
})

type Person = { id: string; email: string }

/** Creates a person with this status and these suppressions of their address. */
async function person(
  status: string,
  { bounceCategory, suppressions = [] }: { bounceCategory?: string; suppressions?: string[] } = {},
): Promise<Person> {
  const email = `person-${newId()}@example.com`
  const { subscriber } = await organization.data('add_subscriber', { email, triggerWorkflows: false })
  const em = api.services.orm.em.fork()
  await execute(
    em,
    sql`update subscriber set status = ${status}, bounce_category = ${bounceCategory ?? null}
      where organization_id = ${organization.id} and email = ${email}`,
  )
  for (const reason of suppressions) await suppress(email, reason)
  return { id: subscriber.id, email }
}

async function suppress(email: string, reason: string): Promise<void> {
  await execute(
    api.services.orm.em.fork(),
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (${newId()}, ${organization.id}, lower(${email}), ${reason}, 'test')`,
  )
}

async function reasonsOf(email: string): Promise<string[]> {
  const found = await rows<{ reason: string }>(
    api.services.orm.em.fork(),
    sql`select reason from suppression where organization_id = ${organization.id} and email_key = lower(${email})`,
  )
  return found.map(({ reason }) => reason)
}

test('reactivate_subscriber subscribes BOUNCED, COMPLAINED and UNSUBSCRIBED again and lifts what blocks them', async (t) => {
  const cases = [
    await person('UNSUBSCRIBED'),
    await person('COMPLAINED', { suppressions: ['COMPLAINT'] }),
    await person('BOUNCED', { bounceCategory: 'MAILBOX_FULL', suppressions: ['SOFT_BOUNCE'] }),
    await person('UNSUBSCRIBED', { suppressions: ['COMPLAINT'] }),
  ]
  for (const { id, email } of cases) {
    const { subscriber: before } = await organization.data('get_subscriber', { email })
    const suppressions = await reasonsOf(email)
    const { subscriber } = await organization.data('reactivate_subscriber', { subscriberId: id })
    t.is(subscriber.status, 'SUBSCRIBED')
    t.deepEqual(await reasonsOf(email), [])
    const { events } = await organization.data('list_subscriber_events', { email, eventType: 'SUBSCRIBED' })
    t.like(events[0].data, { from: before.status, reactivated: true, lifted: suppressions })
    t.like(events[0].cause, { kind: 'token', name: 'test' })
    const sent = await api.request('POST', '/api/v1/emails', {
      token: organization.token,
      body: { to: email, subject: 'Receipt', content: 'Thank you.' },
    })
    t.is(sent.status, 200, JSON.stringify(sent.body))
    await organization.data('reactivate_subscriber', { subscriberId: id })
    const again = await organization.data('list_subscriber_events', { email, eventType: 'SUBSCRIBED' })
    t.is(again.events.length, events.length, 'a repetition changes nothing')
  }
})

test('a hard bounce is refused unless force is true, wherever it is known from', async (t) => {
  const cases = [
    await person('BOUNCED', { bounceCategory: 'NO_SUCH_USER' }),
    await person('BOUNCED', { bounceCategory: 'INTERNAL' }),
    await person('BOUNCED', { bounceCategory: 'MAILBOX_FULL', suppressions: ['HARD_BOUNCE'] }),
    await person('UNSUBSCRIBED', { suppressions: ['HARD_BOUNCE'] }),
    await person('UNSUBSCRIBED', { bounceCategory: 'NO_SUCH_USER' }),
  ]
  for (const { id, email } of cases) {
    for (const force of [undefined, false]) {
      const answer = await organization.call('reactivate_subscriber', { subscriberId: id, force })
      t.is(answer.status, 409)
      t.is(answer.body.code, 'WRONG_STATE')
      t.regex(answer.body.error, /force: true/)
    }
    t.not((await organization.data('get_subscriber', { email })).subscriber.status, 'SUBSCRIBED')
    const { subscriber } = await organization.data('reactivate_subscriber', { subscriberId: id, force: true })
    t.is(subscriber.status, 'SUBSCRIBED')
    t.deepEqual(await reasonsOf(email), [])
  }
})

test('a hard bounce that was lifted needs no force again after a later complaint', async (t) => {
  const organization = await api.organization()
  const email = 'back@reader.example'
  const { subscriber } = await organization.data('add_subscriber', { email })
  const block = (reason: string) => organization.confirmed('import_suppressions', { emails: [email], reason })
  t.is((await block('HARD_BOUNCE')).status, 200)
  await organization.confirmed('unsubscribe', { email })
  t.is((await organization.data('add_subscriber', { email })).subscriber.status, 'SUBSCRIBED')
  const lift = (force: boolean) =>
    organization.call('reactivate_subscriber', { subscriberId: subscriber.id, ...(force && { force }) })
  t.is((await lift(false)).status, 409)
  t.is((await lift(true)).status, 200)
  t.is((await block('COMPLAINT')).status, 200)
  t.like(await lift(false), { status: 200, body: { data: { subscriber: { status: 'SUBSCRIBED' } } } })
})

test('a suppression by hand is never lifted by reactivating', async (t) => {
  const cases = [
    await person('BANNED'),
    await person('BANNED', { suppressions: ['MANUAL'] }),
    await person('UNSUBSCRIBED', { suppressions: ['MANUAL'] }),
  ]
  for (const { id, email } of cases) {
    const before = await reasonsOf(email)
    const answer = await organization.call('reactivate_subscriber', { subscriberId: id, force: true })
    t.is(answer.status, 409)
    t.regex(answer.body.error, /by hand/)
    t.deepEqual(await reasonsOf(email), before)
  }
})

test('a soft suppression is lifted without moving the status; where nothing blocks, the answer says so', async (t) => {
  const full = await person('SUBSCRIBED', { suppressions: ['SOFT_BOUNCE'] })
  const { subscriber } = await organization.data('reactivate_subscriber', { subscriberId: full.id })
  t.is(subscriber.status, 'SUBSCRIBED')
  t.deepEqual(await reasonsOf(full.email), [])
  for (const status of ['PENDING_CONFIRMATION', 'TRANSACTIONAL']) {
    const { id } = await person(status)
    const answer = await organization.call('reactivate_subscriber', { subscriberId: id })
    t.is(answer.status, 409)
    t.true(answer.body.error.includes(status))
  }
})

test('reactivating somebody of another organization answers as a missing id, and starts workflows once', async (t) => {
  const other = await api.organization()
  const { id } = await person('UNSUBSCRIBED')
  t.is((await other.call('reactivate_subscriber', { subscriberId: id })).status, 404)
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => organization.call('reactivate_subscriber', { subscriberId: id })),
  )
  t.true(answers.every(({ status }) => status === 200))
  const [found] = await rows<{ count: number }>(
    api.services.orm.em.fork(),
    sql`select count(*)::int as count from subscriber_event where subscriber_id = ${readId('sub', id)}
      and type = 'SUBSCRIBED' and data ? 'reactivated'`,
  )
  t.is(found?.count, 1)
})

test('every change is an event that says who caused it and when', async (t) => {
  const own = await api.organization()
  const { tokens } = await row<{ tokens: string[] }>(
    api.services.orm.em.fork(),
    sql`select array_agg(id) as tokens from api_token where organization_id = ${own.id}`,
  ).then((found) => found ?? { tokens: [] })
  const byToken = { kind: 'token', id: encodeId('tok', tokens[0] ?? ''), name: 'test' }
  const email = `cause-${newId()}@example.com`
  const { subscriber } = await own.data('add_subscriber', { email, tags: ['vip'], fields: { plan: 'free' } })
  await own.data('update_subscriber', { subscriber: email, fields: { plan: 'pro' } })
  await own.data('bulk_remove_tags', { subscriberIds: [subscriber.id], tagNames: ['vip'] })
  const subscriberId = readId('sub', subscriber.id) ?? ''
  const link = { kind: 'unsubscribe', organizationId: own.id, messageId: newId(), subscriberId } as const
  const left = await api.request('POST', `/u/${signToken(api.services.config.secret, link)}`)
  t.is(left.status, 200)
  await own.data('reactivate_subscriber', { subscriberId: subscriber.id })
  const { events } = await own.data('list_subscriber_events', { email })
  const byLink = { kind: 'public', id: subscriber.id, name: 'Unsubscribe link' }
  t.deepEqual(
    events.map(({ type, cause }: { type: string; cause: object }) => [type, cause]),
    [
      ['SUBSCRIBED', byToken],
      ['UNSUBSCRIBED', byLink],
      ['TAG_REMOVED', byToken],
      ['FIELD_UPDATED', byToken],
      ['TAG_ADDED', byToken],
      ['SUBSCRIBED', byToken],
    ],
  )
  for (const { createdAt } of events) t.regex(createdAt, /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/)
})

test('a field keeps its type while its values are cleared and set again', async (t) => {
  const own = await api.organization()
  const email = `field-${newId()}@example.com`
  await own.data('add_subscriber', {
    email,
    fields: { seats: 5, since: '2027-03-01', beta: true, plan: 'free' },
  })
  const { customFields } = await own.data('get_custom_fields')
  t.deepEqual(
    customFields.map(({ name, type }: { name: string; type: string }) => [name, type]),
    [
      ['beta', 'boolean'],
      ['plan', 'string'],
      ['seats', 'number'],
      ['since', 'date'],
    ],
  )
  for (const fields of [{ seats: null }, { seats: '5' }, { seats: 6 }]) {
    const answer = await own.call('update_subscriber', { subscriber: email, fields })
    t.is(answer.status, fields.seats === '5' ? 400 : 200)
    if (answer.status === 400) t.regex(answer.body.error, /fields\.seats: must be a number/)
  }
  const { events } = await own.data('list_subscriber_events', { email, eventType: 'FIELD_UPDATED' })
  t.deepEqual(
    events.map(({ data }: { data: object }) => data),
    [
      { field: 'seats', custom: true, from: null, to: 6 },
      { field: 'seats', custom: true, from: 5, to: null },
    ],
  )
})
