import test from 'ava'
import { sql } from 'kysely'

import { rows } from '../src/database.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi
test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `imports-${process.pid}` })
})
test.after.always(() => api.close())

/** Returns an organization's events as "TYPE detail count", in order. */
async function eventsOf(organization: TestOrganization): Promise<string[]> {
  const found = await rows<{ text: string }>(
    api.services.orm.em.fork(),
    sql`select type || coalesce(' ' || (data ->> 'tag'), ' ' || (data ->> 'field'), '') || ' ' || count(*) as text
      from subscriber_event where organization_id = ${organization.id}
      group by type, data ->> 'tag', data ->> 'field' order by 1`,
  )
  return found.map(({ text }) => text)
}

async function statusOf(organization: TestOrganization, email: string): Promise<string> {
  return (await organization.data('get_subscriber', { email })).subscriber.status
}

async function setStatus({ id }: TestOrganization, email: string, status: string): Promise<void> {
  await rows(
    api.services.orm.em.fork(),
    sql`update subscriber set status = ${status} where organization_id = ${id} and email_key = ${email}`,
  )
}

function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)]
}

test('a call creates, updates and counts; the same call again changes nothing', async (t) => {
  const organization = await api.organization()
  await organization.data('add_subscriber', {
    email: 'known@example.com',
    name: 'Old',
    fields: { plan: 'free' },
  })
  const input = {
    subscribers: [
      {
        email: 'new@example.com',
        name: 'Søren',
        phone: '+46 8',
        tags: ['VIP', 'new'],
        fields: { plan: 'pro', age: 7 },
      },
      { email: 'KNOWN@example.com', name: 'New', tags: ['vip'], fields: { plan: 'pro' } },
    ],
  }
  t.deepEqual(await organization.data('import_subscribers', input), {
    imported: 1,
    updated: 1,
    failed: 0,
    errors: [],
  })
  const events = [
    'FIELD_UPDATED name 1',
    'FIELD_UPDATED plan 1',
    'SUBSCRIBED 2',
    'TAG_ADDED VIP 2',
    'TAG_ADDED new 1',
  ]
  t.deepEqual(await eventsOf(organization), events)
  t.deepEqual(await organization.data('import_subscribers', input), {
    imported: 0,
    updated: 2,
    failed: 0,
    errors: [],
  })
  t.deepEqual(await eventsOf(organization), events)
  const { subscriber } = await organization.data('get_subscriber', { email: 'new@example.com' })
  t.like(subscriber, {
    name: 'Søren',
    phone: '+46 8',
    status: 'SUBSCRIBED',
    customFields: { plan: 'pro', age: 7 },
  })
  t.deepEqual(subscriber.tags, ['new', 'VIP'])
  const known = await organization.data('get_subscriber', { email: 'known@example.com' })
  t.like(known.subscriber, { email: 'known@example.com', name: 'New', customFields: { plan: 'pro' } })
})

test('a row that is refused says why and leaves its neighbours alone', async (t) => {
  const organization = await api.organization()
  await organization.data('add_subscriber', {
    email: 'first@example.com',
    fields: { age: 7, day: '2027-03-01' },
  })
  const { errors, ...counts } = await organization.data('import_subscribers', {
    subscribers: [
      { email: 'good@example.com', fields: { city: 'Oslo' } },
      { email: 'not an address' },
      { email: 'age@example.com', fields: { age: 'seven', day: 'soon' } },
      { email: 'nested@example.com', fields: { deep: { a: 1 } } },
      { email: 'taken@example.com', fields: { email: 'x' } },
      { email: 'tag@example.com', tags: [' blank '] },
      { email: 'tags@example.com', tags: Array.from({ length: 101 }, (_, index) => `t${index}`) },
      { email: 'long@example.com', name: 'x'.repeat(201) },
      { email: 'line@example.com', name: 'two\nlines' },
      { email: 'good2@example.com', fields: { city: null } },
    ],
  })
  t.deepEqual(counts, { imported: 2, updated: 0, failed: 8 })
  t.deepEqual(
    errors.map(({ index, email }: { index: number; email: string }) => [index, email]),
    [
      [1, 'not an address'],
      [2, 'age@example.com'],
      [3, 'nested@example.com'],
      [4, 'taken@example.com'],
      [5, 'tag@example.com'],
      [6, 'tags@example.com'],
      [7, 'long@example.com'],
      [8, 'line@example.com'],
    ],
  )
  t.regex(errors[0].error, /email is not an email address/)
  t.regex(errors[1].error, /fields\.age must be a number, not text.*fields\.day must be an ISO 8601 date/)
  t.is((await organization.data('list_subscribers')).subscribers.length, 3)
})

test('what is no row, or holds what none may hold, is refused by itself too', async (t) => {
  const organization = await api.organization()
  const refused = [
    [{ name: 'Nobody' }, /^email: "email" is missing\.$/],
    [{ email: null }, /^email: must be text, not null\.$/],
    ['text@example.com', /^the row must be an object, not text\.$/],
    [null, /^the row must be an object, not null\.$/],
    [{ email: 'null@example.com', name: null }, /^name: must be text, not null\.$/],
    [
      { email: 'tag@example.com', tag: 'x' },
      /^tag: the field "tag" is not known here; did you mean "tags"\?\.$/,
    ],
    [{ email: 'zero@example.com', name: 'a\u0000b' }, /^name: holds a control character; remove it\.$/],
    [
      { email: 'deep@example.com', fields: { a: nested(40) } },
      /^fields\.a.*: is nested deeper than 30 levels\.$/,
    ],
  ] as const
  const rows = refused.map(([row]) => row)
  const { errors, ...counts } = await organization.data('import_subscribers', {
    subscribers: [{ email: 'first@example.com' }, ...rows, { email: 'last@example.com', tags: ['x'] }],
  })
  t.deepEqual(counts, { imported: 2, updated: 0, failed: rows.length })
  t.deepEqual(
    errors.map(({ index, email }: { index: number; email: string }) => [index, email]),
    ['', '', '', '', 'null@example.com', 'tag@example.com', '', ''].map((email, at) => [at + 1, email]),
  )
  refused.forEach(([, reason], index) => t.regex(errors[index].error, reason))
  const input = { subscribers: [{ email: 'third@example.com' }, {}], resubscribe: 'yes' }
  const answer = await organization.call('import_subscribers', input)
  t.like(answer, { status: 400, body: { details: [{ path: 'resubscribe' }] } })
  const { total } = await organization.data('count_subscribers')
  t.is(total, 2)
})

test('the errors of rows are in the order of the rows, also where all are refused', async (t) => {
  const organization = await api.organization()
  const subscribers = [{ email: 'field@example.com', fields: { '': 1 } }, { email: 'no address' }]
  const { errors } = await organization.data('import_subscribers', { subscribers })
  t.deepEqual(
    errors.map(({ index }: { index: number }) => index),
    [0, 1],
  )
})

test('new fields take the type of their first value, while there is room for them', async (t) => {
  const organization = await api.organization()
  const fields = Object.fromEntries(Array.from({ length: 199 }, (_, index) => [`f${index}`, 1]))
  const { failed, errors } = await organization.data('import_subscribers', {
    subscribers: [
      { email: 'a@example.com', fields },
      { email: 'b@example.com', fields: { last: true } },
      { email: 'c@example.com', fields: { over: 1 } },
      { email: 'd@example.com', fields: { f0: 2, last: 'text' } },
    ],
  })
  t.is(failed, 2)
  t.regex(errors[0].error, /fields\.over would be a new custom field.*at most 200/)
  t.regex(errors[1].error, /fields\.last must be a boolean/)
})

test('a refused row makes no field and decides no type', async (t) => {
  const organization = await api.organization()
  await organization.data('add_subscriber', { email: 'first@example.com', fields: { age: 7 } })
  const { errors, ...counts } = await organization.data('import_subscribers', {
    subscribers: [
      { email: 'a@example.com', fields: { plan: 1, only: 'here', age: 'seven' } },
      { email: 'b@example.com', fields: { plan: 'pro', age: 8 } },
      { email: 'c@example.com', fields: { plan: true, later: 1 } },
      { email: 'd@example.com', fields: { later: 'text' } },
    ],
  })
  t.deepEqual(counts, { imported: 2, updated: 0, failed: 2 })
  t.regex(errors[0].error, /^fields\.age must be a number/)
  t.regex(errors[1].error, /^fields\.plan must be a string, not a boolean/)
  const { customFields } = await organization.data('get_custom_fields')
  t.deepEqual(
    customFields.map(({ name, type }: { name: string; type: string }) => [name, type]),
    [
      ['age', 'number'],
      ['later', 'string'],
      ['plan', 'string'],
    ],
  )
})

test('of two rows with one address the later updates the earlier', async (t) => {
  const organization = await api.organization()
  const counts = await organization.data('import_subscribers', {
    subscribers: [
      { email: 'twice@example.com', name: 'First', tags: ['one'], fields: { plan: 'free', city: 'Oslo' } },
      { email: 'other@example.com' },
      { email: 'TWICE@example.com', name: 'Second', tags: ['two'], fields: { plan: 'pro', city: null } },
    ],
  })
  t.deepEqual(counts, { imported: 2, updated: 1, failed: 0, errors: [] })
  const { subscriber } = await organization.data('get_subscriber', { email: 'twice@example.com' })
  t.like(subscriber, { email: 'twice@example.com', name: 'Second', customFields: { plan: 'pro' } })
  t.deepEqual(subscriber.tags, ['one', 'two'])
  t.deepEqual(await eventsOf(organization), ['SUBSCRIBED 2', 'TAG_ADDED one 1', 'TAG_ADDED two 1'])
})

test('what a row does to each status, with and without resubscribe and double opt-in', async (t) => {
  const before = [
    'SUBSCRIBED',
    'UNSUBSCRIBED',
    'PENDING_CONFIRMATION',
    'TRANSACTIONAL',
    'BOUNCED',
    'COMPLAINED',
    'BANNED',
  ]
  const emailOf = (status: string) => `${status.toLowerCase().replace('_', '-')}@example.com`
  const S = 'SUBSCRIBED'
  const U = 'UNSUBSCRIBED'
  const P = 'PENDING_CONFIRMATION'
  const T = 'TRANSACTIONAL'
  const BAD = ['BOUNCED', 'COMPLAINED', 'BANNED']
  const table: [doubleOptIn: boolean, status: string | undefined, resubscribe: boolean, after: string[]][] = [
    [false, undefined, false, [S, U, P, S, ...BAD]],
    [false, undefined, true, [S, S, P, S, ...BAD]],
    [false, S, false, [S, U, P, S, ...BAD]],
    [false, S, true, [S, S, P, S, ...BAD]],
    [false, U, false, [U, U, U, U, ...BAD]],
    [false, U, true, [U, U, U, U, ...BAD]],
    [true, undefined, false, [S, U, P, T, ...BAD]],
    [true, undefined, true, [S, S, P, T, ...BAD]],
    [true, S, false, [S, U, P, S, ...BAD]],
    [true, U, true, [U, U, U, U, ...BAD]],
  ]
  for (const [doubleOptIn, status, resubscribe, after] of table) {
    const organization = await api.organization({ doubleOptIn })
    await organization.data('import_subscribers', {
      subscribers: before.map((each) => ({ email: emailOf(each), status: S })),
    })
    for (const each of before) await setStatus(organization, emailOf(each), each)
    const { failed } = await organization.data('import_subscribers', {
      subscribers: before.map((each) => ({ email: emailOf(each), ...(status && { status }) })),
      resubscribe,
    })
    t.is(failed, 0)
    const found = await Promise.all(before.map((each) => statusOf(organization, emailOf(each))))
    t.deepEqual(found, after, JSON.stringify({ doubleOptIn, status, resubscribe }))
  }
})

test('with double opt-in on, a new person needs a status, and their consent is recorded as imported', async (t) => {
  const organization = await api.organization({ doubleOptIn: true })
  const { errors, ...counts } = await organization.data('import_subscribers', {
    subscribers: [
      { email: 'none@example.com' },
      { email: 'yes@example.com', status: 'SUBSCRIBED' },
      { email: 'no@example.com', status: 'UNSUBSCRIBED' },
    ],
  })
  t.deepEqual(counts, { imported: 2, updated: 0, failed: 1 })
  t.like(errors[0], { index: 0, email: 'none@example.com' })
  t.regex(errors[0].error, /status is missing/)
  const consent = async (email: string) =>
    (await organization.data('list_subscriber_events', { email })).events
  t.like((await consent('yes@example.com'))[0], { type: 'SUBSCRIBED', data: { consent: 'imported' } })
  t.like((await consent('no@example.com'))[0], { type: 'UNSUBSCRIBED', data: { source: 'import' } })
  const sent = await rows(
    api.services.orm.em.fork(),
    sql`select from message where organization_id = ${organization.id}`,
  )
  t.is(sent.length, 0)
})

test('workflows start only when asked', async (t) => {
  const organization = await api.organization()
  const silent = async () =>
    await rows<{ silent: boolean }>(
      api.services.orm.em.fork(),
      sql`select distinct coalesce((cause ->> 'silent')::boolean, false) as silent from subscriber_event
        where organization_id = ${organization.id} order by 1`,
    )
  await organization.data('import_subscribers', { subscribers: [{ email: 'a@example.com', tags: ['x'] }] })
  t.deepEqual(await silent(), [{ silent: true }])
  await organization.data('import_subscribers', {
    subscribers: [{ email: 'b@example.com', tags: ['x'] }],
    triggerWorkflows: true,
  })
  t.deepEqual(await silent(), [{ silent: false }, { silent: true }])
})

test('500 rows are taken, 501 and a body over 5 MB are refused', async (t) => {
  const organization = await api.organization()
  const people = (count: number, name = 'x') => ({
    subscribers: Array.from({ length: count }, (_, index) => ({ email: `p${index}@example.com`, name })),
  })
  t.like(await organization.data('import_subscribers', people(500)), { imported: 500, failed: 0 })
  t.is((await organization.call('import_subscribers', people(501))).status, 400)
  t.is((await organization.call('import_subscribers', people(500, 'x'.repeat(9_000)))).status, 200)
  t.is((await organization.call('import_subscribers', people(500, 'x'.repeat(10_100)))).status, 413)
  t.deepEqual(await organization.data('import_subscribers', { subscribers: [] }), {
    imported: 0,
    updated: 0,
    failed: 0,
    errors: [],
  })
})

test('lists with the same people at the same time make each person once', async (t) => {
  const organization = await api.organization()
  const people = Array.from({ length: 200 }, (_, index) => ({
    email: `p${index}@example.com`,
    tags: ['all'],
  }))
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, turn) =>
      organization.data('import_subscribers', { subscribers: turn % 2 ? people : people.toReversed() }),
    ),
  )
  t.is(
    answers.reduce((sum, { imported }) => sum + imported, 0),
    200,
  )
  t.deepEqual(await eventsOf(organization), ['SUBSCRIBED 200', 'TAG_ADDED all 200'])
})

test('an organization imports into itself alone', async (t) => {
  const [one, other] = [await api.organization(), await api.organization()]
  const subscribers = [{ email: 'same@example.com', name: 'One', tags: ['shared'] }]
  await one.data('import_subscribers', { subscribers })
  t.like(await other.data('import_subscribers', { subscribers: [{ email: 'same@example.com' }] }), {
    imported: 1,
  })
  const { subscriber } = await other.data('get_subscriber', { email: 'same@example.com' })
  t.like(subscriber, { name: null, tags: [] })
})
