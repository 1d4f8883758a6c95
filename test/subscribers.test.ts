import test from 'ava'
import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { inTurns } from './helpers/in-turns.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

async function add(organization: TestOrganization, input: object = {}) {
  const { subscriber } = await organization.data('add_subscriber', { email: 'ada@example.com', ...input })
  return subscriber
}

async function events(organization: TestOrganization, subscriberId: string, eventType?: string) {
  const input = { subscriberId, limit: 100, ...(eventType && { eventType }) }
  return (await organization.data('list_subscriber_events', input)).events
}

test('add_subscriber makes a whole record and the events of it', async (t) => {
  const organization = await api.organization()
  const subscriber = await add(organization, {
    name: 'Ada Lovelace',
    phone: '+33 6 12 34 56 78',
    country: 'GB',
    ipAddress: '2001:db8::7',
    tags: ['vip', 'Early'],
    fields: { plan: 'pro', seats: 3, trial: false, born: '1815-12-10' },
  })
  t.regex(subscriber.id, /^sub_[0-9a-z]{26}$/)
  t.regex(subscriber.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  t.like(subscriber, {
    email: 'ada@example.com',
    name: 'Ada Lovelace',
    phone: '+33 6 12 34 56 78',
    status: 'SUBSCRIBED',
    country: 'GB',
    tags: ['Early', 'vip'],
    customFields: { plan: 'pro', seats: 3, trial: false, born: '1815-12-10' },
    revenue: 0,
    emailCount: 0,
    openCount: 0,
    clickCount: 0,
  })
  t.false('ipAddress' in subscriber)
  t.deepEqual(
    (await events(organization, subscriber.id)).map(({ type }: { type: string }) => type).toSorted(),
    ['SUBSCRIBED', 'TAG_ADDED', 'TAG_ADDED'],
  )
  const { customFields } = await organization.data('get_custom_fields')
  t.deepEqual(
    customFields.map(({ name, type }: { name: string; type: string }) => [name, type]),
    [
      ['born', 'date'],
      ['plan', 'string'],
      ['seats', 'number'],
      ['trial', 'boolean'],
    ],
  )
})

test('an email names the same person whatever its letter case, and stays as it was given', async (t) => {
  const organization = await api.organization()
  const first = await add(organization, { email: 'Ada@Example.com', name: 'Ada', tags: ['one'] })
  const second = await add(organization, { email: 'ada@EXAMPLE.com', phone: '123', tags: ['two'] })
  t.is(second.id, first.id)
  t.like(second, { email: 'Ada@Example.com', name: 'Ada', phone: '123', tags: ['one', 'two'] })
  const { subscriber } = await organization.data('get_subscriber', { email: 'ADA@example.COM' })
  t.deepEqual(subscriber, second)
})

test('1,000 calls, many at once, for one email make one subscriber and lose no tag', async (t) => {
  const organization = await api.organization()
  const answers = await inTurns([...Array(1_000).keys()], (index) =>
    organization.call('add_subscriber', {
      email: index % 2 ? 'Crowd@example.com' : 'crowd@EXAMPLE.com',
      tags: [`tag-${index % 100}`],
      fields: { [`field${index % 20}`]: index },
    }),
  )
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  t.is(new Set(answers.map(({ body }) => body.data.subscriber.id)).size, 1)
  const { subscribers } = await organization.data('list_subscribers')
  t.is(subscribers.length, 1)
  const [{ id, tags, customFields }] = subscribers
  t.is(tags.length, 100)
  t.is(Object.keys(customFields).length, 20)
  const count = await row<{ subscribed: number; tagged: number }>(
    api.services.orm.em.fork(),
    sql`select count(*) filter (where type = 'SUBSCRIBED')::int as subscribed,
        count(*) filter (where type = 'TAG_ADDED')::int as tagged
      from subscriber_event where organization_id = ${organization.id} and subscriber_id = ${decodeId('sub', id)}`,
  )
  t.deepEqual(count, { subscribed: 1, tagged: 100 })
})

test('patches of different fields at once lose nothing', async (t) => {
  const organization = await api.organization()
  const { id } = await add(organization)
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      organization.call('update_subscriber', { subscriber: id, fields: { [`f${index}`]: index } }),
    ),
  )
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  const { subscriber } = await organization.data('get_subscriber', { subscriberId: id })
  t.is(Object.keys(subscriber.customFields).length, 40)
  t.is((await events(organization, id, 'FIELD_UPDATED')).length, 40)
})

test('each real change of a field is one event, and a change that is none is no event', async (t) => {
  const organization = await api.organization()
  const before = await add(organization, { name: 'Ada', fields: { plan: 'free', seats: 1 } })
  const same = { subscriber: before.id, name: 'Ada', fields: { plan: 'free', gone: null } }
  const { subscriber: unchanged } = await organization.data('update_subscriber', same)
  t.deepEqual(unchanged, before)
  await organization.data('update_subscriber', {
    subscriber: before.id,
    name: 'Ada L.',
    fields: { plan: 'pro', seats: null, born: '1815-12-10T12:00:00+02:00' },
  })
  const changes = await events(organization, before.id, 'FIELD_UPDATED')
  const data = changes.map((event: { data: { field: string } }) => event.data)
  t.deepEqual(
    data.toSorted((one: { field: string }, other: { field: string }) => one.field.localeCompare(other.field)),
    [
      { field: 'born', custom: true, from: null, to: '1815-12-10T10:00:00.000Z' },
      { field: 'name', custom: false, from: 'Ada', to: 'Ada L.' },
      { field: 'plan', custom: true, from: 'free', to: 'pro' },
      { field: 'seats', custom: true, from: 1, to: null },
    ],
  )
  const { subscriber } = await organization.data('get_subscriber', { subscriberId: before.id })
  t.deepEqual(subscriber.customFields, { plan: 'pro', born: '1815-12-10T10:00:00.000Z' })
  t.true(subscriber.updatedAt > before.updatedAt)
})

test('a value of another type than its field is refused and names the field', async (t) => {
  const organization = await api.organization()
  await add(organization, { fields: { text: 'a', count: 1, flag: true, day: '2027-03-01' } })
  for (const [name, value] of [
    ['text', 1],
    ['text', false],
    ['count', '1'],
    ['flag', 'true'],
    ['flag', 0],
    ['day', 'tomorrow'],
    ['day', '2027-02-30'],
    ['day', 20270301],
    ['text', ['a']],
    ['text', { a: 1 }],
    ['text', 'a\nb'],
    ['text', 'x'.repeat(2_001)],
    ['fresh', []],
    ['9lives', 'x'],
    ['with space', 'x'],
    ['x'.repeat(65), 'x'],
    ['email', 'x'],
    ['unsubscribeUrl', 'x'],
  ] as const) {
    const answer = await organization.call('add_subscriber', {
      email: 'ada@example.com',
      fields: { [name]: value },
    })
    const message = `${name.slice(0, 20)} = ${JSON.stringify(value).slice(0, 40)}: ${answer.body.error}`
    t.is(answer.status, 400, message)
    t.is(answer.body.code, 'INVALID_INPUT')
    t.true(answer.body.error.includes(`fields.${name.slice(0, 60)}`), message)
  }
  const { subscriber } = await organization.data('get_subscriber', { email: 'ada@example.com' })
  t.deepEqual(subscriber.customFields, { text: 'a', count: 1, flag: true, day: '2027-03-01' })
  t.is((await organization.data('get_custom_fields')).customFields.length, 4)
})

test('a text field takes a date as text', async (t) => {
  const organization = await api.organization()
  await add(organization, { fields: { note: 'hello' } })
  const { customFields } = await add(organization, { fields: { note: '2027-03-01' } })
  t.is(customFields.note, '2027-03-01')
})

test('an organization has at most 200 custom fields', async (t) => {
  const organization = await api.organization()
  const numbered = (from: number, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${from + index}`, 1]))
  await add(organization, { fields: numbered(0, 199) })
  const both = await organization.call('add_subscriber', {
    email: 'a@example.com',
    fields: { f199: 1, f200: 1 },
  })
  t.is(both.status, 400)
  t.regex(both.body.error, /200/)
  await add(organization, { fields: { f199: 1, f0: 2 } })
  const over = await organization.call('add_subscriber', { email: 'a@example.com', fields: { f200: 1 } })
  t.is(over.status, 400)
  t.is((await organization.call('get_subscriber', { email: 'a@example.com' })).status, 404)
})

for (const email of [
  '',
  'ada',
  '@example.com',
  'ada@',
  'ada@localhost',
  'ada@-example.com',
  'ada@example..com',
  'ada@example.com.',
  'ada@127.0.0.1',
  'ada@[127.0.0.1]',
  'a b@example.com',
  'ada\n@example.com',
  'ada@example.com\r\nBcc: eve@example.com',
  '.ada@example.com',
  'ada..b@example.com',
  '"ada"@example.com',
  'Ada <ada@example.com>',
  'ada@exa_mple.com',
  'ada@example.com,eve@example.com',
  `${'x'.repeat(65)}@example.com`,
  `ada@${'x'.repeat(64)}.com`,
  `${'x'.repeat(60)}@${`${'y'.repeat(60)}.`.repeat(3)}${'z'.repeat(20)}.com`,
  `${'ä'.repeat(33)}@example.com`,
  'a\u0308da@example.com',
  'ä\u00a0da@example.com',
  'ä\u202eda@example.com',
  'ä😀@example.com',
  'İda@example.com',
  'ada@example\u0000.com',
]) {
  test(`${JSON.stringify(email).slice(-66)} (${email.length}) is no email address`, async (t) => {
    const organization = await api.organization()
    const answer = await organization.call('add_subscriber', { email })
    t.is(answer.status, 400)
    t.is(answer.body.code, 'INVALID_INPUT')
    t.regex(answer.body.error, /email/)
  })
}

for (const email of [
  "o'neil+tag@example.co.uk",
  'ada@bücher.example',
  'ada@xn--bcher-kva.example',
  'a@b.co',
  '!#$%&*/=?^_`{|}~-@example.com',
  `${'x'.repeat(64)}@example.com`,
  'ada@例え.テスト',
  'ädä.大阪+tag@example.com',
  `${'ä'.repeat(32)}@example.com`,
]) {
  test(`${email.slice(-40)} is an email address`, async (t) => {
    const organization = await api.organization()
    t.is((await add(organization, { email })).email, email)
  })
}

for (const [name, value] of [
  ['country', 'fr'],
  ['country', 'XX'],
  ['country', 'FRA'],
  ['ipAddress', '300.1.1.1'],
  ['ipAddress', 'fe80::1%eth0'],
  ['ipAddress', 'example.com'],
  ['name', 'a\u0007b'],
  ['name', 'a\nb'],
  ['name', 'x'.repeat(201)],
  ['phone', '1\t2'],
  ['phone', '1'.repeat(41)],
  ['name', 5],
  ['tags', 'vip'],
  ['fields', []],
  ['replaceTags', 'yes'],
  ['resubscribe', 1],
  ['status', 'BANNED'],
  ['firstName', 'Ada'],
] as const) {
  test(`${name} does not take ${JSON.stringify(value).slice(0, 40)}`, async (t) => {
    const organization = await api.organization()
    await add(organization)
    for (const [tool, input] of [
      ['add_subscriber', { email: 'ada@example.com' }],
      ['update_subscriber', { subscriber: 'ada@example.com' }],
    ] as const) {
      const answer = await organization.call(tool, { ...input, [name]: value })
      t.is(answer.status, 400, tool)
      t.is(answer.body.code, 'INVALID_INPUT')
      t.true(answer.body.error.includes(name))
    }
  })
}

test('an empty string clears name, phone, country and address, and what is left out stays', async (t) => {
  const organization = await api.organization()
  await add(organization, { name: 'Ada', phone: '1', country: 'FR', ipAddress: '192.0.2.1' })
  const kept = await add(organization)
  t.like(kept, { name: 'Ada', phone: '1', country: 'FR' })
  const cleared = await add(organization, { name: '', phone: '', country: '', ipAddress: '' })
  t.like(cleared, { name: null, phone: null, country: null })
})

test('replaceTags takes the tags that are not named', async (t) => {
  const organization = await api.organization()
  const { id } = await add(organization, { tags: ['a', 'b'] })
  t.deepEqual((await add(organization, { tags: ['B', 'c'], replaceTags: true })).tags, ['b', 'c'])
  t.is((await events(organization, id, 'TAG_REMOVED')).length, 1)
  const kept = await organization.data('update_subscriber', { subscriber: id, replaceTags: true })
  t.deepEqual(kept.subscriber.tags, ['b', 'c'])
  t.deepEqual((await add(organization, { replaceTags: true })).tags, [])
})

test('an email can change to one that nobody has', async (t) => {
  const organization = await api.organization()
  const { id } = await add(organization)
  await add(organization, { email: 'grace@example.com' })
  const taken = await organization.call('update_subscriber', { subscriber: id, email: 'GRACE@example.com' })
  t.is(taken.status, 409)
  t.is(taken.body.code, 'ALREADY_EXISTS')
  t.regex(taken.body.error, /email/)
  const { subscriber } = await organization.data('update_subscriber', {
    subscriber: id,
    email: 'ADA@example.com',
  })
  t.is(subscriber.email, 'ADA@example.com')
  const moved = await organization.data('update_subscriber', {
    subscriber: 'ada@example.com',
    email: 'new@example.com',
  })
  t.is(moved.subscriber.id, id)
  t.is((await organization.call('get_subscriber', { email: 'ada@example.com' })).status, 404)
})

test('a person is named by exactly one of id and email', async (t) => {
  const organization = await api.organization()
  const { id, email } = await add(organization)
  for (const [tool, rest] of [
    ['get_subscriber', {}],
    ['unsubscribe', {}],
    ['create_event', { eventType: 'SUBSCRIBER_PAYMENT' }],
    ['list_subscriber_events', {}],
    ['get_subscriber_emails', {}],
  ] as const) {
    for (const input of [{}, { subscriberId: id, email }]) {
      const answer = await organization.call(tool, { ...input, ...rest })
      t.is(answer.status, 400, tool)
      t.regex(answer.body.error, /exactly one/)
    }
  }
})

test('a foreign, unknown or malformed id answers alike, and a foreign email is not there', async (t) => {
  const [organization, stranger] = [await api.organization(), await api.organization()]
  const { id } = await add(stranger, { email: 'theirs@example.com' })
  for (const subscriberId of [id, encodeId('sub', newId()), 'sub_short', 'tag_01', 'nonsense', "' or 1=1"]) {
    for (const [tool, input] of [
      ['get_subscriber', { subscriberId }],
      ['update_subscriber', { subscriber: subscriberId, name: 'Eve' }],
      ['unsubscribe', { subscriberId }],
      ['create_event', { subscriberId, eventType: 'SUBSCRIBER_PAYMENT', amount: 1 }],
      ['list_subscriber_events', { subscriberId }],
      ['get_subscriber_emails', { subscriberId }],
    ] as const) {
      const answer = await organization.call(tool, input)
      t.is(answer.status, 404, `${tool} ${subscriberId}`)
      t.is(answer.body.code, 'NOT_FOUND')
    }
  }
  t.is((await organization.call('get_subscriber', { email: 'theirs@example.com' })).status, 404)
  t.is(
    (await organization.call('update_subscriber', { subscriber: 'theirs@example.com', name: 'x' })).status,
    404,
  )
  t.is((await stranger.data('get_subscriber', { subscriberId: id })).subscriber.name, null)
})

test('list_subscribers pages newest first, and a position outlives its row', async (t) => {
  const organization = await api.organization()
  const ids: string[] = []
  for (let number = 0; number < 7; number++) {
    const { id } = await add(organization, { email: `p${number}@example.com` })
    ids.unshift(id)
  }
  const first = await organization.data('list_subscribers', { limit: 3 })
  t.deepEqual(
    first.subscribers.map(({ id }: { id: string }) => id),
    ids.slice(0, 3),
  )
  t.is(first.nextCursor, ids[2])
  t.true(first.hasMore)
  await execute(
    api.services.orm.em.fork(),
    sql`delete from subscriber where organization_id = ${organization.id} and id = ${decodeId('sub', ids[2] ?? '')}`,
  )
  const second = await organization.data('list_subscribers', { limit: 4, cursor: first.nextCursor })
  t.deepEqual(
    second.subscribers.map(({ id }: { id: string }) => id),
    ids.slice(3),
  )
  t.is(second.nextCursor, null)
  t.false(second.hasMore)
  const malformed = await organization.call('list_subscribers', { cursor: 'page-2' })
  t.is(malformed.status, 400)
  t.regex(malformed.body.error, /cursor/)
})

test('list_subscribers finds by status, tag and a part of name or email', async (t) => {
  const organization = await api.organization()
  await add(organization, { email: 'ada@one.example', name: 'Ada 100%', tags: ['VIP'] })
  await add(organization, { email: 'grace@two.example', name: 'Grace_H' })
  await organization.confirmed('unsubscribe', { email: 'grace@two.example' })
  const emails = async (input: object) =>
    (await organization.data('list_subscribers', input)).subscribers.map(
      ({ email }: { email: string }) => email,
    )
  t.deepEqual(await emails({ status: 'UNSUBSCRIBED' }), ['grace@two.example'])
  t.deepEqual(await emails({ status: 'all' }), ['grace@two.example', 'ada@one.example'])
  t.deepEqual(await emails({ tag: 'vip' }), ['ada@one.example'])
  t.deepEqual(await emails({ tag: 'nobody has it' }), [])
  t.deepEqual(await emails({ query: 'ADA' }), ['ada@one.example'])
  t.deepEqual(await emails({ query: 'TWO.ex' }), ['grace@two.example'])
  t.deepEqual(await emails({ query: '%' }), ['ada@one.example'])
  t.deepEqual(await emails({ query: '_' }), ['grace@two.example'])
  t.deepEqual(await emails({ query: '\\' }), [])
  t.deepEqual(await emails({ query: 'example', tag: 'vip', status: 'SUBSCRIBED' }), ['ada@one.example'])
  for (const input of [{ limit: 0 }, { limit: 501 }, { limit: 1.5 }, { limit: '5' }, { status: 'ALL' }]) {
    t.is((await organization.call('list_subscribers', input)).status, 400, JSON.stringify(input))
  }
  t.is((await organization.call('list_subscribers', { limit: 500 })).status, 200)
})

test('payments and refunds are events and move the revenue', async (t) => {
  const organization = await api.organization()
  const { id, email } = await add(organization)
  const { event } = await organization.data('create_event', {
    subscriberId: id,
    eventType: 'SUBSCRIBER_PAYMENT',
    amount: 19.9,
    metadata: { order: 'A-1', lines: [1, 2] },
  })
  t.regex(event.id, /^evt_/)
  t.like(event, { subscriberId: id, type: 'SUBSCRIBER_PAYMENT' })
  t.deepEqual(event.data, { amount: 19.9, currency: 'USD', metadata: { order: 'A-1', lines: [1, 2] } })
  await organization.data('create_event', {
    email,
    eventType: 'SUBSCRIBER_REFUND',
    amount: 5.05,
    currency: 'EUR',
  })
  await organization.data('create_event', { email, eventType: 'SUBSCRIBER_PAYMENT' })
  t.is((await organization.data('get_subscriber', { email })).subscriber.revenue, 14.85)
  t.is((await events(organization, id, 'SUBSCRIBER_PAYMENT')).length, 2)
  await Promise.all(
    Array.from({ length: 20 }, () =>
      organization.data('create_event', { email, eventType: 'SUBSCRIBER_PAYMENT', amount: 0.1 }),
    ),
  )
  t.is((await organization.data('get_subscriber', { email })).subscriber.revenue, 16.85)
})

for (const [title, input] of [
  ['another type', { eventType: 'EMAIL_OPENED' }],
  ['a custom type', { eventType: 'ORDER_PLACED' }],
  ['no type', { eventType: undefined }],
  ['a negative amount', { amount: -1 }],
  ['three decimals', { amount: 1.005 }],
  ['too large an amount', { amount: 1e12 }],
  ['text as amount', { amount: '5' }],
  ['a currency that is none', { currency: 'XYZ' }],
  ['a currency in small letters', { currency: 'usd' }],
  ['a list as metadata', { metadata: [] }],
  ['too much metadata', { metadata: { text: 'x'.repeat(20_000) } }],
] as const) {
  test(`create_event refuses ${title}`, async (t) => {
    const organization = await api.organization()
    const { id, email } = await add(organization)
    const answer = await organization.call('create_event', {
      email,
      eventType: 'SUBSCRIBER_PAYMENT',
      ...input,
    })
    t.is(answer.status, 400)
    t.is(answer.body.code, 'INVALID_INPUT')
    t.is((await events(organization, id)).length, 1)
  })
}

test('list_subscriber_events shows the newest first, at most as many as asked for', async (t) => {
  const organization = await api.organization()
  const { id } = await add(organization)
  for (const tag of ['a', 'b', 'c']) await add(organization, { tags: [tag] })
  const page = await organization.data('list_subscriber_events', { subscriberId: id, limit: 2 })
  t.true(page.hasMore)
  t.deepEqual(
    page.events.map(({ data }: { data: { tag: string } }) => data.tag),
    ['c', 'b'],
  )
  t.is(
    (await organization.call('list_subscriber_events', { subscriberId: id, eventType: 'NOPE' })).status,
    400,
  )
  t.is((await organization.call('list_subscriber_events', { subscriberId: id, limit: 101 })).status, 400)
})

test('get_subscriber_emails tells what became of each email, newest first', async (t) => {
  const organization = await api.organization()
  const { id, email } = await add(organization)
  const em = api.services.orm.em.fork()
  const [campaignId, sendId] = [newId(), newId()]
  await execute(
    em,
    sql`with made as (
        insert into campaign (id, organization_id, kind, name, subject)
        values (${campaignId}, ${organization.id}, 'BROADCAST', 'Spring news', 'Restored since') returning *)
      insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, sender_name,
        sender_email, recipient_filters)
      select ${sendId}, organization_id, id, 1, 'From the campaign', '"x"', 'MARKDOWN', 'Shop', 'hello@example.com', '[]'
      from made`,
  )
  for (const [status, opened] of [
    ['QUEUED', false],
    ['SENT', false],
    ['DELIVERED', true],
    ['BOUNCED', false],
    ['FAILED', false],
    ['SKIPPED', false],
  ] as const) {
    await execute(
      em,
      sql`insert into message (id, organization_id, class, marketing, status, subscriber_id, recipient, from_email,
          subject, campaign_id, version_id, opened_at)
        values (${newId()}, ${organization.id}, 'CAMPAIGN', true, ${status}, ${decodeId('sub', id)}, ${email},
          'hello@example.com', ${status === 'QUEUED' ? null : `Was ${status}`}, ${campaignId}, ${sendId},
          ${opened ? sql`now()` : null})`,
    )
  }
  const { emails, hasMore } = await organization.data('get_subscriber_emails', { subscriberId: id })
  t.false(hasMore)
  t.deepEqual(
    emails.map(({ subject, status, lastEvent }: Record<string, string>) => [subject, status, lastEvent]),
    [
      ['Was FAILED', 'BOUNCED', 'failed'],
      ['Was BOUNCED', 'BOUNCED', 'bounced'],
      ['Was DELIVERED', 'DELIVERED', 'opened'],
      ['Was SENT', 'SENT', 'sent'],
      ['From the campaign', 'PENDING', 'queued'],
    ],
  )
  t.like(emails[0], { campaignName: 'Spring news', campaignId: encodeId('cmp', campaignId) })
  const bounced = await organization.data('get_subscriber_emails', { email, status: 'BOUNCED', limit: 1 })
  t.is(bounced.emails.length, 1)
  t.true(bounced.hasMore)
  t.is((await organization.call('get_subscriber_emails', { email, status: 'SKIPPED' })).status, 400)
})
