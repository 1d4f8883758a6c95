import test from 'ava'
import { sql } from 'kysely'
import { Compile } from 'typebox/compile'

import type { FilterField } from '../schema/audience-description.ts'
import { FIELDS, OPERATORS } from '../schema/audience.ts'
import { FIELD_TYPES } from '../schema/values.ts'
import { execute } from '../src/database.ts'
import { validateFilters } from '../src/domain/audience/validate.ts'
import { encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

async function run(statement: ReturnType<typeof sql>): Promise<void> {
  await execute(api.services.orm.em.fork(), statement)
}

async function inZone(timezone: string): Promise<TestOrganization> {
  const organization = await api.organization()
  await run(sql`update organization set timezone = ${timezone} where id = ${organization.id}`)
  return organization
}

/** Adds a person and their events at a point in time. */
async function person(organization: TestOrganization, at: string, ...types: string[]): Promise<void> {
  const id = newId()
  await run(sql`insert into subscriber (id, organization_id, email, status, created_at)
    values (${id}, ${organization.id}, ${`${id}@example.com`}, 'SUBSCRIBED', ${at}::timestamptz)`)
  for (const type of types) await event(organization, id, at, type)
}

async function event(organization: TestOrganization, subscriberId: string, at: string, type: string) {
  await run(sql`insert into subscriber_event (id, organization_id, subscriber_id, type, created_at)
    values ((left(id_floor(${at}::timestamptz)::text, 24) || right(${newId()}, 12))::uuid, ${organization.id},
      ${subscriberId}, ${type}, ${at}::timestamptz)`)
}

type Bucket = { date: string; start: string; created: number; total: number; net: number }

async function growth(organization: TestOrganization, input: object) {
  const { growth: found } = await organization.data('get_subscriber_growth', input)
  return found
}

test('a day of growth is a day of the organization, also when the clocks change', async (t) => {
  const organization = await inZone('Europe/Paris')
  // In Paris, 30 March 2025 has 23 hours and 26 October has 25.
  for (const at of [
    '2025-03-29T22:59:59.999Z',
    '2025-03-29T23:00:00Z',
    '2025-03-30T21:59:59.999Z',
    '2025-03-30T22:00:00Z',
    '2025-10-25T21:59:59.999Z',
    '2025-10-25T22:00:00Z',
    '2025-10-26T22:59:59.999Z',
    '2025-10-26T23:00:00Z',
  ]) {
    await person(organization, at, 'SUBSCRIBED')
  }
  const spring = await growth(organization, { from: '2025-03-29', to: '2025-03-31' })
  t.is(spring.timezone, 'Europe/Paris')
  t.is(spring.from, '2025-03-28T23:00:00.000Z')
  t.is(spring.to, '2025-03-31T22:00:00.000Z')
  t.deepEqual(
    spring.buckets.map(({ date, start, created, total }: Bucket) => [date, start, created, total]),
    [
      ['2025-03-29', '2025-03-28T23:00:00.000Z', 1, 1],
      ['2025-03-30', '2025-03-29T23:00:00.000Z', 2, 3],
      ['2025-03-31', '2025-03-30T22:00:00.000Z', 1, 4],
    ],
  )
  const autumn = await growth(organization, { from: '2025-10-25', to: '2025-10-28' })
  t.deepEqual(
    autumn.buckets.map(({ date, start, created, total, net }: Bucket) => [date, start, created, total, net]),
    [
      ['2025-10-25', '2025-10-24T22:00:00.000Z', 1, 5, 1],
      ['2025-10-26', '2025-10-25T22:00:00.000Z', 2, 7, 2],
      ['2025-10-27', '2025-10-26T23:00:00.000Z', 1, 8, 1],
      ['2025-10-28', '2025-10-27T23:00:00.000Z', 0, 8, 0],
    ],
  )
})

test('a day without a midnight begins when it begins', async (t) => {
  // Clocks in Cairo went from 00:00 to 01:00 on 26 April 2024.
  const organization = await inZone('Africa/Cairo')
  await person(organization, '2024-04-25T21:59:59Z')
  await person(organization, '2024-04-25T22:00:00Z')
  const { buckets } = await growth(organization, { from: '2024-04-25', to: '2024-04-26' })
  t.deepEqual(
    buckets.map(({ date, start, created }: Bucket) => [date, start, created]),
    [
      ['2024-04-25', '2024-04-24T22:00:00.000Z', 1],
      ['2024-04-26', '2024-04-25T22:00:00.000Z', 1],
    ],
  )
})

test('weeks begin on Monday and months on the first, and gaps are zero', async (t) => {
  const organization = await inZone('America/New_York')
  await person(organization, '2025-01-06T04:59:00Z', 'SUBSCRIBED')
  await person(organization, '2025-01-06T05:00:00Z', 'SUBSCRIBED')
  await person(organization, '2025-03-01T04:59:00Z', 'SUBSCRIBED', 'UNSUBSCRIBED')
  const weeks = await growth(organization, { from: '2025-01-01', to: '2025-01-21', interval: 'week' })
  t.deepEqual(
    weeks.buckets.map(({ date, created }: Bucket) => [date, created]),
    [
      ['2024-12-30', 1],
      ['2025-01-06', 1],
      ['2025-01-13', 0],
      ['2025-01-20', 0],
    ],
  )
  const months = await growth(organization, {
    from: '2024-12-31',
    to: '2025-03-01T05:00:00Z',
    interval: 'month',
  })
  t.deepEqual(
    months.buckets.map(({ date, created, total, net }: Bucket) => [date, created, total, net]),
    [
      ['2024-12-01', 0, 0, 0],
      ['2025-01-01', 2, 2, 2],
      ['2025-02-01', 1, 3, 0],
    ],
  )
  // Only events within the period count, even in its first bucket.
  const part = await growth(organization, {
    from: '2025-01-06T05:00:00Z',
    to: '2025-01-31',
    interval: 'month',
  })
  t.deepEqual(
    part.buckets.map(({ created, total }: Bucket) => [created, total]),
    [[1, 2]],
  )
})

test('without a period it is the last 30 days, 12 weeks or 12 months', async (t) => {
  const organization = await inZone('Pacific/Auckland')
  await organization.data('add_subscriber', { email: 'ann@example.com' })
  for (const [interval, count] of [
    ['day', 30],
    ['week', 12],
    ['month', 12],
  ] as const) {
    const { buckets } = await growth(organization, { interval })
    t.is(buckets.length, count)
    t.like(buckets.at(-1), { created: 1, subscribed: 1, total: 1, net: 1 })
    t.is(buckets.at(-2).total, 0)
  }
})

test('statistics count statuses now and changes in a period', async (t) => {
  const organization = await inZone('UTC')
  await person(organization, '2025-01-31T12:00:00Z', 'SUBSCRIBED')
  await person(organization, '2025-02-01T00:00:00Z', 'SUBSCRIBED', 'EMAIL_BOUNCED', 'EMAIL_BOUNCED')
  await person(organization, '2025-02-28T23:59:59Z', 'SUBSCRIBED', 'UNSUBSCRIBED', 'EMAIL_COMPLAINED')
  await person(organization, '2025-03-01T00:00:00Z', 'SUBSCRIBED')
  const { stats } = await organization.data('get_subscriber_stats', { from: '2025-02-01', to: '2025-02-28' })
  t.is(stats.total, 4)
  t.like(stats.byStatus, { SUBSCRIBED: 4, BANNED: 0 })
  t.deepEqual(stats.period, {
    from: '2025-02-01T00:00:00.000Z',
    to: '2025-03-01T00:00:00.000Z',
    created: 2,
    subscribed: 2,
    unsubscribed: 1,
    bounced: 1,
    complained: 1,
    net: 1,
    growthRate: 100,
  })
  const first = await organization.data('get_subscriber_stats', { from: '2024-01-01', to: '2025-01-01' })
  t.like(first.stats.period, { created: 0, growthRate: null })
})

test('a period that makes no sense is refused', async (t) => {
  const organization = await api.organization()
  for (const [input, path] of [
    [{ from: 'yesterday' }, 'from'],
    [{ to: '2025-02-30' }, 'to'],
    [{ from: '2025-02-02', to: '2025-02-01' }, 'from'],
    [{ from: '2999-01-01' }, 'from'],
  ] as const) {
    for (const tool of ['get_subscriber_growth', 'get_subscriber_stats']) {
      const answer = await organization.call(tool, input)
      t.is(answer.status, 400, JSON.stringify(input))
      t.is(answer.body.details[0].path, path)
    }
  }
  const long = { from: '2000-01-01', to: '2025-01-01' }
  const answer = await organization.call('get_subscriber_growth', long)
  t.is(answer.status, 400)
  t.regex(answer.body.error, /1000 buckets/)
  t.is((await growth(organization, { ...long, interval: 'month' })).buckets.length, 301)
  t.is((await organization.call('get_subscriber_growth', { interval: 'year' })).status, 400)
  // In the evening of the last day it is the year 10000 in UTC.
  const range = { from: '1000-01-01', to: '9999-12-31' }
  for (const each of [organization, await inZone('America/New_York'), await inZone('Asia/Tokyo')]) {
    t.is((await each.call('get_subscriber_stats', range)).status, 200)
  }
})

test('get_available_filters describes what validates, with what the organization has', async (t) => {
  const organization = await api.organization()
  const { tag } = await organization.data('create_tag', { name: 'VIP' })
  await organization.data('add_subscriber', {
    email: 'ann@example.com',
    fields: { plan: 'pro', seats: 3, beta: true, born: '1990-01-01' },
  })
  const segment = newId()
  await run(
    sql`insert into segment (id, organization_id, name) values (${segment}, ${organization.id}, 'Best')`,
  )
  const { version, fields, operators, limits } = await organization.data('get_available_filters')
  t.is(version, 1)
  t.like(limits, { depth: 5, leaves: 100 })
  const field = (key: string): FilterField => fields.find((each: FilterField) => each.key === key)
  t.deepEqual(
    Object.keys(FIELDS).filter((key) => !key.includes('<') && !field(key)),
    [],
  )
  t.is(field('customFields.seats').type, 'number')
  t.deepEqual(field('customFields.born').operators, [...OPERATORS.date])
  t.true(field('status').values?.includes('BANNED'))
  t.true(field('event').values?.includes('EMAIL_OPENED'))
  t.deepEqual(field('tags').valuesFrom, {
    tool: 'list_tags',
    total: 1,
    newest: [{ value: tag.name, label: 'VIP' }],
  })
  t.deepEqual(field('segment').valuesFrom?.newest, [{ value: encodeId('seg', segment), label: 'Best' }])
  t.is(field('campaign').valuesFrom?.total, 0)
  // Examples of fields that refer to no record of the organization must work unchanged.
  for (const { key, example } of fields) {
    if (['tags', 'segment', 'campaign', 'workflow'].includes(key)) continue
    const answer = await organization.call('count_subscribers', { filters: [example] })
    t.is(answer.status, 200, `${key}: ${JSON.stringify(answer.body)}`)
  }
  const described = new Set(operators.map(({ operator }: { operator: string }) => operator))
  t.deepEqual(
    fields.flatMap((each: FilterField) => each.operators).filter((each: string) => !described.has(each)),
    [],
  )
})

test('the JSON Schema of filters and the validation of the service agree', async (t) => {
  const organization = await api.organization()
  await organization.data('add_subscriber', {
    email: 'ann@example.com',
    fields: { text: 'pro', number: 3, flag: true, day: '1990-01-01' },
  })
  const { jsonSchema, fields } = await organization.data('get_available_filters')
  const schema = Compile(jsonSchema)
  const customFields = new Map(
    (['text', 'number', 'flag', 'day'] as const).map((name, index) => [
      name as string,
      FIELD_TYPES[index] ?? 'string',
    ]),
  )
  const values = [
    undefined,
    '',
    'text',
    '2025-01-31',
    5,
    101,
    true,
    ['a'],
    [],
    [1, 2],
    ['2025-01-01', '2025-02-01'],
    ['SUBSCRIBED'],
    'SUBSCRIBED',
    [encodeId('sub', newId())],
    encodeId('cmp', newId()),
    [encodeId('wf', newId())],
    [encodeId('seg', newId())],
    { amount: 1, unit: 'DAYS' },
    { amount: 0, unit: 'DAYS' },
    { amount: 1, unit: 'YEARS' },
    null,
  ]
  const known = [...new Set(Object.values(OPERATORS).flat())]
  let right = 0
  for (const { key } of fields) {
    for (const operator of known) {
      for (const value of values) {
        const leaf = { field: key, operator, ...(value !== undefined && { value }) }
        const filters = [{ any: [{ not: leaf }, { all: [{ field: 'name', operator: 'is_set' }] }] }]
        const isRight = validateFilters(filters, '', { customFields }).length === 0
        right += Number(isRight)
        t.is(schema.Check(filters), isRight, JSON.stringify(leaf))
      }
    }
  }
  t.true(right > 300, `${right} were right`)
  const named = { field: 'name', operator: 'is_set' }
  for (const filters of [[], [{ any: [] }], [{ all: [] }], Array.from({ length: 101 }, () => named)]) {
    t.is(schema.Check(filters), validateFilters(filters, '').length === 0, JSON.stringify(filters))
  }
  const event = { field: 'event', operator: 'performed', event: 'SUBSCRIBER_PAYMENT' }
  for (const more of [
    {},
    { count: { operator: 'gte', value: 2 } },
    { within: { amount: 3, unit: 'WEEKS' }, where: [{ path: 'amount', operator: 'gt', value: 1 }] },
    { count: { operator: 'between', value: 2 } },
    { event: 'lower' },
    { value: 1 },
    { within: { amount: 3 } },
  ]) {
    const filters = [{ ...event, ...more }]
    t.is(schema.Check(filters), validateFilters(filters, '').length === 0, JSON.stringify(more))
  }
})
