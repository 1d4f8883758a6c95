import test from 'ava'
import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

type Person = { id: string; email: string; name: string | null }

async function add(organization: TestOrganization, input: object) {
  const { subscriber } = await organization.data('add_subscriber', input)
  return subscriber
}

/** Adds the subscribers p0 (oldest) to p(count - 1). */
async function people(organization: TestOrganization, count: number, input: object = {}): Promise<Person[]> {
  const made: Person[] = []
  for (let number = 0; number < count; number++) {
    made.push(await add(organization, { email: `p${number}@example.com`, ...input }))
  }
  return made
}

async function run(statement: ReturnType<typeof sql>): Promise<void> {
  await execute(api.services.orm.em.fork(), statement)
}

async function emails(organization: TestOrganization, input: object, tool = 'query_subscribers') {
  const { subscribers } = await organization.data(tool, input)
  return subscribers.map(({ email }: Person) => email.split('@')[0]).join(' ')
}

test('query_subscribers combines filters, status and free text, newest first', async (t) => {
  const organization = await api.organization()
  await add(organization, {
    email: 'ann@one.example',
    name: 'Ann',
    tags: ['VIP'],
    fields: { plan: 'pro', seats: 3 },
  })
  await add(organization, { email: 'bob@two.example', name: 'Bob', fields: { plan: 'free', seats: 30 } })
  await add(organization, { email: 'cleo@two.example', name: 'Zoë', tags: ['vip', 'beta'] })
  await organization.confirmed('unsubscribe', { email: 'cleo@two.example' })
  const vip = { field: 'tags', operator: 'has_any', value: ['vip'] }
  const pro = { field: 'customFields.plan', operator: 'equals', value: 'pro' }
  t.is(await emails(organization, {}), 'cleo bob ann')
  t.is(await emails(organization, { filters: [vip] }), 'cleo ann')
  t.is(await emails(organization, { filters: [vip], status: 'SUBSCRIBED' }), 'ann')
  t.is(await emails(organization, { filters: [vip, pro] }), 'ann')
  t.is(await emails(organization, { filters: [{ any: [{ not: vip }, pro] }] }), 'bob ann')
  t.is(await emails(organization, { filters: [vip], query: 'two' }), 'cleo')
  t.is(await emails(organization, { query: 'two.EX', status: 'UNSUBSCRIBED' }), 'cleo')
  const count = async (input: object) => (await organization.data('count_subscribers', input)).total
  t.is(await count({}), 3)
  t.is(await count({ filters: [vip] }), 2)
  t.is(await count({ filters: [vip], status: 'SUBSCRIBED' }), 1)
  t.is(await count({ query: 'beta' }), 1)
  const { total, byStatus } = await organization.data('count_subscribers_by_status')
  t.is(total, 3)
  t.like(byStatus, { SUBSCRIBED: 2, UNSUBSCRIBED: 1, BOUNCED: 0 })
  const some = await organization.data('count_subscribers_by_status', { filters: [vip], query: 'e' })
  t.is(some.total, 2)
  t.like(some.byStatus, { SUBSCRIBED: 1, UNSUBSCRIBED: 1 })
})

test('free text is a part of the email, the name or a tag name, and means itself', async (t) => {
  const organization = await api.organization()
  await add(organization, { email: 'ann@example.com', name: '100% Ann', tags: ['Early_Bird'] })
  await add(organization, { email: 'bob@example.com', name: "O'Neil \\ “Bob”", tags: ['ÉLAN', 'other elan'] })
  await add(organization, { email: 'cleo@example.com', name: 'Ngũgĩ 東京 🎉' })
  for (const [query, found] of [
    ['%', 'ann'],
    ['_', 'ann'],
    ['\\', 'bob'],
    ["o'neil", 'bob'],
    ['“bob”', 'bob'],
    ['élan', 'bob'],
    ['early', 'ann'],
    ['東京', 'cleo'],
    ['🎉', 'cleo'],
    ['NGŨGĨ', 'cleo'],
    ['ar', 'ann'],
    ['o', 'cleo bob ann'],
    ['  bob ', 'bob'],
    ['   ', 'cleo bob ann'],
    ["' or 1=1 --", ''],
    ['nobody', ''],
  ] as const) {
    t.is(await emails(organization, { query }), found, query)
    t.is(await emails(organization, { query }, 'list_subscribers'), found, query)
    const { total } = await organization.data('count_subscribers', { query })
    t.is(total, found === '' ? 0 : found.split(' ').length, query)
  }
})

test('only the fields that are asked for come back', async (t) => {
  const organization = await api.organization()
  const { id } = await add(organization, {
    email: 'ann@example.com',
    phone: '+33 1',
    tags: ['b', 'A'],
    fields: { plan: 'pro' },
  })
  await organization.data('create_event', {
    subscriberId: id,
    eventType: 'SUBSCRIBER_PAYMENT',
    amount: 12.5,
  })
  const one = async (fields?: string[]) =>
    (await organization.data('query_subscribers', fields ? { fields } : {})).subscribers[0]
  t.deepEqual(Object.keys(await one()).sort(), ['createdAt', 'email', 'id', 'name', 'status', 'tags'])
  t.deepEqual(await one(['revenue', 'openCount', 'emailCount', 'clickCount']), {
    revenue: 12.5,
    openCount: 0,
    emailCount: 0,
    clickCount: 0,
  })
  t.deepEqual(await one(['tags', 'customFields', 'phone']), {
    tags: ['A', 'b'],
    customFields: { plan: 'pro' },
    phone: '+33 1',
  })
  t.is((await one(['id', 'updatedAt'])).id, id)
  for (const fields of [[], ['email', 'email'], ['country'], ['fields'], 'email']) {
    t.is((await organization.call('query_subscribers', { fields })).status, 400, JSON.stringify(fields))
  }
})

test('what is wrong with a question is refused at its path, all at once', async (t) => {
  const organization = await api.organization()
  for (const [input, path] of [
    [{ limit: 501 }, 'limit'],
    [{ limit: 0 }, 'limit'],
    [{ status: 'all' }, 'status'],
    [{ query: 'x'.repeat(201) }, 'query'],
    [{ filters: {} }, 'filters'],
    [{ filters: [{ field: 'nmae', operator: 'is_set' }] }, 'filters[0].field'],
    [{ filters: [{ field: 'tags', operator: 'has_any', value: ['nope'] }] }, 'filters[0].value'],
    [{ filters: [{ field: 'customFields.nope', operator: 'is_set' }] }, 'filters[0].field'],
    [{ filters: [{ not: { field: 'revenue', operator: 'gt', value: '1' } }] }, 'filters[0].not.value'],
    [
      { filters: [{ field: 'segment', operator: 'has_any', value: [encodeId('seg', newId())] }] },
      'filters[0].value',
    ],
  ] as const) {
    const answer = await organization.call('query_subscribers', input)
    t.is(answer.status, 400, JSON.stringify(input))
    t.is(answer.body.code, 'INVALID_INPUT')
    t.is(answer.body.details[0].path, path)
  }
  const both = await organization.call('count_subscribers', {
    filters: [
      { field: 'email', operator: 'like', value: 'x' },
      { field: 'tags', operator: 'has_any', value: ['a'] },
    ],
  })
  t.is(both.body.details.length, 2)
})

test('a deleted tag inside a segment stops the question and never means everybody', async (t) => {
  const organization = await api.organization()
  await people(organization, 2, { tags: ['vip'] })
  const segment = newId()
  const filters = JSON.stringify([{ field: 'tags', operator: 'has_none', value: ['vip'] }])
  await run(
    sql`insert into segment (id, organization_id, name, filters) values (${segment}, ${organization.id}, 'S', ${filters}::jsonb)`,
  )
  const asked = {
    filters: [{ field: 'segment', operator: 'has_none', value: [encodeId('seg', segment)] }],
  }
  t.is((await organization.data('count_subscribers', asked)).total, 2)
  await organization.confirmed('delete_tag', { name: 'vip' })
  const answer = await organization.call('count_subscribers', asked)
  t.is(answer.status, 409)
  t.is(answer.body.code, 'FILTER_REFERENCE_MISSING')
})

for (const [tool, input] of [
  ['query_subscribers', { query: 'example', status: 'SUBSCRIBED' }],
  ['get_subscribers_by_tag', { name: 'VIP' }],
  ['list_subscribers', { tag: 'vip' }],
] as const) {
  test(`${tool}: pages stay right while people come and go`, async (t) => {
    const organization = await api.organization()
    const made = await people(organization, 9, { tags: ['vip'] })
    const first = await organization.data(tool, { ...input, limit: 3 })
    t.deepEqual(
      first.subscribers.map(({ email }: Person) => email),
      ['p8@example.com', 'p7@example.com', 'p6@example.com'],
    )
    // Between two pages, delete the last subscriber of the first and the first of the second, and add a new one.
    for (const gone of [made[6], made[5]]) {
      await run(
        sql`delete from subscriber where organization_id = ${organization.id} and id = ${decodeId('sub', gone?.id ?? '')}`,
      )
    }
    await add(organization, { email: 'late@example.com', tags: ['vip'] })
    const second = await organization.data(tool, { ...input, limit: 3, cursor: first.nextCursor })
    t.deepEqual(
      second.subscribers.map(({ email }: Person) => email),
      ['p4@example.com', 'p3@example.com', 'p2@example.com'],
    )
    t.true(second.hasMore)
    const third = await organization.data(tool, { ...input, limit: 2, cursor: second.nextCursor })
    t.deepEqual(
      third.subscribers.map(({ email }: Person) => email),
      ['p1@example.com', 'p0@example.com'],
    )
    t.is(third.nextCursor, null)
    t.false(third.hasMore)
  })
}

test('a page of a search holds each person once, whatever they were found by', async (t) => {
  const organization = await api.organization()
  await people(organization, 5, { name: 'Vip', tags: ['vip', 'vips'] })
  const seen: string[] = []
  for (let cursor: string | null = null; ;) {
    const page: { subscribers: Person[]; nextCursor: string | null } = await organization.data(
      'query_subscribers',
      { query: 'vip', limit: 2, ...(cursor && { cursor }) },
    )
    seen.push(...page.subscribers.map(({ email }) => email.slice(0, 2)))
    cursor = page.nextCursor
    if (cursor === null) break
  }
  t.is(seen.join(' '), 'p4 p3 p2 p1 p0')
  t.is((await organization.data('count_subscribers', { query: 'vip' })).total, 5)
})

test('a cursor continues its own query only', async (t) => {
  const [organization, stranger] = [await api.organization(), await api.organization()]
  await people(organization, 3, { tags: ['vip'] })
  await people(stranger, 3, { tags: ['vip'] })
  const asked = { limit: 1, query: 'example' }
  const { nextCursor } = await organization.data('query_subscribers', asked)
  // A cursor is bound to the question, not to the limit or the fields that are shown.
  t.is(
    (await organization.data('query_subscribers', { ...asked, limit: 2, cursor: nextCursor })).subscribers
      .length,
    2,
  )
  const forged = Buffer.from(
    JSON.stringify([JSON.parse(Buffer.from(nextCursor, 'base64url').toString())[0], "'; drop table x"]),
  ).toString('base64url')
  for (const [caller, tool, input] of [
    [organization, 'query_subscribers', { query: 'other', cursor: nextCursor }],
    [organization, 'query_subscribers', { ...asked, status: 'SUBSCRIBED', cursor: nextCursor }],
    [organization, 'get_subscribers_by_tag', { name: 'vip', cursor: nextCursor }],
    [organization, 'list_suppressed_subscribers', { cursor: nextCursor }],
    [stranger, 'query_subscribers', { ...asked, cursor: nextCursor }],
    [organization, 'query_subscribers', { ...asked, cursor: forged }],
    [organization, 'query_subscribers', { ...asked, cursor: 'x' }],
    [organization, 'query_subscribers', { ...asked, cursor: '' }],
    [organization, 'query_subscribers', { ...asked, cursor: encodeId('sub', newId()) }],
    [organization, 'list_subscribers', { cursor: nextCursor }],
  ] as const) {
    const answer = await caller.call(tool, input)
    t.is(answer.status, 400, `${tool} ${JSON.stringify(input)}`)
    t.is(answer.body.code, 'INVALID_INPUT')
    t.regex(answer.body.error, /cursor/)
  }
})

test('get_subscribers_by_tag takes an id or a name', async (t) => {
  const [organization, stranger] = [await api.organization(), await api.organization()]
  await people(organization, 2, { tags: ['Vip'] })
  await add(organization, { email: 'other@example.com', tags: ['other'] })
  const { tag } = await stranger.data('create_tag', { name: 'theirs' })
  const { tags } = await organization.data('list_tags')
  const own = tags.find(({ name }: { name: string }) => name === 'Vip')
  t.is(await emails(organization, { tagId: own.id }, 'get_subscribers_by_tag'), 'p1 p0')
  t.is(await emails(organization, { name: 'VIP' }, 'get_subscribers_by_tag'), 'p1 p0')
  t.is((await organization.call('get_subscribers_by_tag', {})).status, 400)
  t.is((await organization.call('get_subscribers_by_tag', { tagId: own.id, name: 'vip' })).status, 400)
  for (const input of [{ name: 'theirs' }, { tagId: tag.id }, { tagId: encodeId('tag', newId()) }]) {
    const answer = await organization.call('get_subscribers_by_tag', input)
    t.is(answer.status, 404)
    t.is(answer.body.code, 'NOT_FOUND')
  }
})

test('nobody sees the people of another organization', async (t) => {
  const [organization, stranger] = [await api.organization(), await api.organization()]
  await people(stranger, 3, { tags: ['vip'] })
  await run(sql`update subscriber set status = 'BOUNCED' where organization_id = ${stranger.id}`)
  t.is(await emails(organization, {}), '')
  t.is(await emails(organization, { query: 'example' }), '')
  t.is((await organization.data('count_subscribers')).total, 0)
  t.is((await organization.data('count_subscribers_by_status')).total, 0)
  t.deepEqual((await organization.data('export_subscribers')).subscribers, [])
  t.deepEqual((await organization.data('list_suppressed_subscribers')).subscribers, [])
  t.is((await organization.data('get_subscriber_stats')).stats.total, 0)
  const { growth } = await organization.data('get_subscriber_growth')
  t.is(growth.buckets.at(-1).total, 0)
  const { fields } = await organization.data('get_available_filters')
  t.is(fields.find(({ key }: { key: string }) => key === 'tags').valuesFrom.total, 0)
})

test('list_suppressed_subscribers shows who bounced or complained, and why', async (t) => {
  const organization = await api.organization()
  await people(organization, 5)
  const set = (number: number, status: string, category: string | null) =>
    run(sql`update subscriber set status = ${status}, bounce_category = ${category}
      where organization_id = ${organization.id} and email = ${`p${number}@example.com`}`)
  await set(0, 'BOUNCED', 'NO_SUCH_USER')
  await set(1, 'COMPLAINED', null)
  await set(2, 'BANNED', null)
  await set(3, 'BOUNCED', 'MAILBOX_FULL')
  await run(sql`insert into suppression (id, organization_id, email_key, reason, source)
    values (${newId()}, ${organization.id}, 'p0@example.com', 'HARD_BOUNCE', 'delivery')`)
  t.is(await emails(organization, {}, 'list_suppressed_subscribers'), 'p3 p1 p0')
  t.is(await emails(organization, { statuses: ['COMPLAINED'] }, 'list_suppressed_subscribers'), 'p1')
  const { subscribers, nextCursor } = await organization.data('list_suppressed_subscribers', { limit: 2 })
  t.is(subscribers.length, 2)
  const next = await organization.data('list_suppressed_subscribers', { limit: 2, cursor: nextCursor })
  t.like(next.subscribers[0], {
    email: 'p0@example.com',
    status: 'BOUNCED',
    bounceCategory: 'NO_SUCH_USER',
    reason: 'HARD_BOUNCE',
  })
  t.regex(next.subscribers[0].suppressedAt, /Z$/)
  t.false(next.hasMore)
  for (const input of [{ statuses: [] }, { statuses: ['BANNED'] }, { limit: 501 }]) {
    t.is((await organization.call('list_suppressed_subscribers', input)).status, 400)
  }
})

test('an export holds tags and custom fields, newest first', async (t) => {
  const organization = await api.organization()
  await add(organization, {
    email: 'ann@example.com',
    name: 'Ann',
    tags: ['b', 'A'],
    fields: { plan: 'pro' },
  })
  await add(organization, { email: 'bob@example.com', phone: '06', fields: { seats: 3, beta: false } })
  await organization.confirmed('unsubscribe', { email: 'bob@example.com' })
  const { subscribers, ...rest } = await organization.data('export_subscribers')
  t.deepEqual(rest, {})
  t.is(subscribers.length, 2)
  t.deepEqual(Object.keys(subscribers[0]).sort(), [
    'createdAt',
    'customFields',
    'email',
    'name',
    'phone',
    'status',
    'tags',
  ])
  t.like(subscribers[1], { email: 'ann@example.com', tags: ['A', 'b'], customFields: { plan: 'pro' } })
  t.is(await emails(organization, { status: 'UNSUBSCRIBED' }, 'export_subscribers'), 'bob')
  t.is(await emails(organization, { tag: 'B' }, 'export_subscribers'), 'ann')
  t.is(await emails(organization, { tag: 'no such tag' }, 'export_subscribers'), '')
  t.is(await emails(organization, { limit: 1 }, 'export_subscribers'), 'bob')
  const { csv } = await organization.data('export_subscribers', { format: 'csv' })
  const [header, bob, ann] = csv.split('\r\n')
  t.is(
    header,
    'email,name,phone,status,tags,customFields.beta,customFields.plan,customFields.seats,createdAt',
  )
  t.is(bob, `bob@example.com,,06,UNSUBSCRIBED,,false,,3,${subscribers[0].createdAt}`)
  t.is(ann, `ann@example.com,Ann,,SUBSCRIBED,"A, b",,pro,,${subscribers[1].createdAt}`)
  for (const input of [{ limit: 10_001 }, { format: 'xlsx' }, { status: 'ALL' }]) {
    t.is((await organization.call('export_subscribers', input)).status, 400, JSON.stringify(input))
  }
  t.is((await organization.call('export_subscribers', { limit: 10_000 })).status, 200)
})

test('a field with the name of a method of every object is empty for whoever has no value of it', async (t) => {
  const organization = await api.organization()
  await add(organization, { email: 'ann@example.com', fields: { toString: 'ours' } })
  await add(organization, { email: 'bob@example.com' })
  const { csv } = await organization.data('export_subscribers', { format: 'csv' })
  t.deepEqual(
    csv.split('\r\n').map((line: string) => line.split(',')[5]),
    ['customFields.toString', '', 'ours', undefined],
  )
})

test('no cell of an export is a formula', async (t) => {
  const organization = await api.organization()
  const cells = ['=1+1', '+33 6 12', '-2', '@SUM(A1)', '=HYPERLINK("http://x.example","a,b")']
  for (const [index, cell] of cells.entries()) {
    await add(organization, { email: `p${index}@example.com`, name: cell, fields: { note: cell, debt: -5 } })
  }
  await add(organization, { email: '=cmd@example.com', name: 'x', tags: ['=tag'], phone: '=2+2' })
  await add(organization, { email: 'phone@example.com', phone: '+33 7 89' })
  const { csv } = await organization.data('export_subscribers', { format: 'csv' })
  const values = [...csv.matchAll(/(?:^|,|\n)(?:"((?:[^"]|"")*)"|([^,\r\n]*))/g)].map(
    ([, quoted, plain]) => quoted ?? plain,
  )
  t.true(values.length > 30)
  t.deepEqual(
    values.filter((value) => /^[=+\-@\t\r]/.test(value)),
    [],
  )
  for (const cell of [
    "'=1+1",
    "'+33 6 12",
    "'-2",
    "'@SUM(A1)",
    "'=cmd@example.com",
    "'=tag",
    "'-5",
    "'=2+2",
    "'+33 7 89",
  ]) {
    t.true(values.includes(cell), cell)
  }
  t.true(csv.includes(`"'=HYPERLINK(""http://x.example"",""a,b"")"`))
  // JSON is not opened as a spreadsheet, so its values are not escaped.
  const { subscribers } = await organization.data('export_subscribers')
  t.like(subscribers[0], { email: 'phone@example.com', phone: '+33 7 89' })
  t.is(subscribers[2].name, cells[4])
})
