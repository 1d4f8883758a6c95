import type { MikroORM } from '@mikro-orm/postgresql'
import test from 'ava'
import fc from 'fast-check'
import { sql } from 'kysely'

import {
  type Filter,
  type FilterOperator,
  type FilterValue,
  type Leaf,
  OPERATORS,
  type Scalar,
} from '../schema/audience.ts'
import { type EntityManager, execute, migrate, openDatabase, rows } from '../src/database.ts'
import { audiencePredicate, matches } from '../src/domain/audience/match.ts'
import { validateFilters } from '../src/domain/audience/validate.ts'
import { encodeId, newId } from '../src/ids.ts'
import { createDatabase, type TestDatabase } from './helpers/services.ts'

const SEED = Number(process.env['SEED'] ?? 20_250_301)
const DAY = 86_400_000
const organizationId = newId()
const otherOrganizationId = newId()
const scope = { organizationId }

type Person = {
  id: string
  email: string
  name: string | null
  phone: string | null
  country: string | null
  status: string
  createdAt: number
  fields: Record<string, Scalar>
  stat: { revenue: number; opens: number; lastOpenedAt: number | null } | null
}

/** Texts that are special in SQL, LIKE, JSON or regular expressions, and some in other alphabets. */
const awkward = fc.constantFrom(
  '',
  "O'Brien",
  '100%',
  'a_b',
  'aXb',
  'back\\slash',
  '"quoted"',
  '{"a": 1}',
  'null',
  'Ünïcödé',
  'ÜNÏ',
  '中文',
  '😀 smile',
  '  spaces ',
  '$1 ? :name',
  '[^@]*$',
  'Ann',
  'anna',
  'Joanne',
  '10',
)
const numbers = fc.constantFrom(0, 1, -1, 2.5, 10, 99.99, 1e6)
const dates = fc.constantFrom(
  '2024-02-29',
  '2025-01-31',
  '2025-01-31T12:00:00Z',
  '2025-01-31T23:30:00-05:00',
  '2026-06-15',
)
// Half days, so that no boundary of a whole day passes while the test runs.
const ages = fc.integer({ min: -20, max: 40 }).map((days) => (days + 0.5) * DAY)

const person = (now: number) =>
  fc.record({
    email: fc.tuple(
      fc.constantFrom('Ann', 'bob', 'c_d', 'x%y', 'ANN.b'),
      fc.constantFrom('example.com', 'Mail.Example', 'b.test'),
    ),
    name: fc.option(awkward),
    phone: fc.option(fc.constantFrom('+33612345678', '+49 30 1234', '')),
    country: fc.option(fc.constantFrom('FR', 'DE', 'us')),
    status: fc.constantFrom('SUBSCRIBED', 'UNSUBSCRIBED', 'PENDING_CONFIRMATION', 'BOUNCED'),
    createdAt: ages.map((age) => now - age),
    fields: fc.record(
      { plan: awkward, score: numbers, trial: fc.boolean(), renewal: dates, 'two-words': awkward },
      { requiredKeys: [] },
    ),
    stat: fc.option(
      fc.record({
        revenue: fc.constantFrom(0, 5.5, 100),
        opens: fc.integer({ min: 0, max: 4 }),
        lastOpenedAt: fc.option(ages.map((age) => now - age)),
      }),
    ),
  })

const textLeaf = (field: string) =>
  fc
    .oneof(
      fc.tuple(fc.constantFrom('equals', 'not_equals'), awkward),
      fc.tuple(
        fc.constantFrom('contains', 'not_contains', 'starts_with', 'ends_with'),
        fc
          .oneof(awkward, fc.constantFrom('%', '_', '\\', 'a', 'AN', 'ü', "'", '"'))
          .filter((text) => text !== ''),
      ),
      fc.tuple(fc.constantFrom('in', 'not_in'), fc.array(awkward, { minLength: 1, maxLength: 20 })),
      presence,
    )
    .map(([operator, value]) => leaf(field, operator, value))
const presence = fc.tuple(fc.constantFrom('is_set', 'is_not_set'), fc.constant(undefined))
const pair = <Value>(arbitrary: fc.Arbitrary<Value>, order: (left: Value, right: Value) => number) =>
  fc.tuple(arbitrary, arbitrary).map((values) => values.toSorted(order))
const numberLeaf = (field: string) =>
  fc
    .oneof(
      fc.tuple(fc.constantFrom('equals', 'gt', 'gte', 'lt', 'lte'), numbers),
      fc.tuple(
        fc.constant('between'),
        pair(numbers, (left, right) => left - right),
      ),
      presence,
    )
    .map(([operator, value]) => leaf(field, operator, value))
const dateLeaf = (field: string) =>
  fc
    .oneof(
      fc.tuple(fc.constantFrom('equals', 'gt', 'gte', 'lt', 'lte', 'before', 'after'), dates),
      fc.tuple(
        fc.constantFrom('within_last', 'more_than_ago', 'within_next'),
        fc.record({
          amount: fc.integer({ min: 1, max: 30 }),
          unit: fc.constantFrom('DAYS', 'HOURS', 'WEEKS'),
        }),
      ),
      fc.tuple(
        fc.constant('between'),
        pair(dates, (left, right) => span(left)[0] - span(right)[0]),
      ),
      presence,
    )
    .map(([operator, value]) => leaf(field, operator, value))
const booleanLeaf = (field: string) =>
  fc
    .oneof(fc.tuple(fc.constantFrom('equals', 'not_equals'), fc.boolean()), presence)
    .map(([operator, value]) => leaf(field, operator, value))

const leaves = fc.oneof(
  textLeaf('name'),
  textLeaf('email'),
  textLeaf('email.domain'),
  textLeaf('phone'),
  textLeaf('country'),
  textLeaf('customFields.plan'),
  textLeaf('customFields.two-words'),
  numberLeaf('customFields.score'),
  booleanLeaf('customFields.trial'),
  dateLeaf('customFields.renewal'),
  dateLeaf('createdAt'),
  dateLeaf('lastOpenedAt'),
  numberLeaf('revenue'),
  numberLeaf('openCount'),
  fc
    .tuple(
      fc.constantFrom('in', 'not_in'),
      fc.subarray(['SUBSCRIBED', 'BOUNCED', 'BANNED'], { minLength: 1 }),
    )
    .map(([operator, value]) => leaf('status', operator, value)),
)
const { filter: trees } = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { depthSize: 'small', maxDepth: 4, withCrossShrink: true },
    leaves,
    fc.array(tie('filter'), { minLength: 1, maxLength: 3 }).map((all) => ({ all })),
    fc.array(tie('filter'), { minLength: 1, maxLength: 3 }).map((any) => ({ any })),
    tie('filter').map((not) => ({ not })),
  ),
}))

let database: TestDatabase
let orm: MikroORM
let em: EntityManager
let people: Person[] = []
const now = Date.now()

test.after.always(async () => {
  await orm?.close()
  await database?.drop()
})

test.before(async () => {
  database = await createDatabase()
  await migrate({ databaseUrl: database.url })
  orm = await openDatabase(database.url)
  em = orm.em.fork()
  people = fc.sample(person(now), { numRuns: 120, seed: SEED }).map((made, index) => ({
    ...made,
    id: newId(),
    email: `${made.email[0]}${index}@${made.email[1]}`,
  }))
  for (const id of [organizationId, otherOrganizationId]) {
    await execute(
      em,
      sql`insert into organization (id, name, slug, timezone) values (${id}, 'Test', ${id}, 'UTC')`,
    )
    for (const [name, type] of Object.entries({
      plan: 'string',
      score: 'number',
      trial: 'boolean',
      renewal: 'date',
      'two-words': 'string',
    })) {
      await execute(
        em,
        sql`insert into custom_field (id, organization_id, name, type) values (${newId()}, ${id}, ${name}, ${type})`,
      )
    }
    await execute(
      em,
      sql`insert into subscriber_event (id, organization_id, subscriber_id, type, data)
        select new_id(), ${id}, ${newId()}, 'ORDERED', jsonb_build_object('a', jsonb_build_object('b', b))
        from unnest(array['1', '"x"', 'null', 'true', '"infinity"', '"2025-02-30"', '"2025-02-28"', '{}', '[]']::jsonb[]) b`,
    )
    for (const one of people) await insert(id, id === organizationId ? one : { ...one, id: newId() })
  }
})

test('every operator of every type answers as the plain rules do', async (t) => {
  const property = fc.asyncProperty(leaves, async (filter) => {
    t.deepEqual(validateFilters([filter], ''), [])
    t.deepEqual(await ask([filter]), expected([filter]), JSON.stringify(filter))
  })
  await fc.assert(property, { numRuns: 600, seed: SEED })
})

test('all, any and not combine them as logic does, missing values included', async (t) => {
  const property = fc.asyncProperty(fc.array(trees, { maxLength: 2 }), async (filters) => {
    t.deepEqual(await ask(filters), expected(filters), JSON.stringify(filters))
  })
  await fc.assert(property, { numRuns: 200, seed: SEED })
})

test('one subscriber is answered as the audience is', async (t) => {
  const property = fc.asyncProperty(trees, async (filter) => {
    const all = expected([filter])
    const first = people[0]?.id ?? ''
    t.is(await matches(em, scope, first, [filter]), all.includes(first))
  })
  await fc.assert(property, { numRuns: 40, seed: SEED })
})

test('whatever passes validation compiles and runs', async (t) => {
  const values = fc.oneof(
    awkward,
    numbers,
    dates,
    fc.constantFrom(1e308, -1e-7, 'infinity', '9999-12-31', '1000-01-01T00:00Z', true, null),
    fc.array(fc.oneof(awkward, numbers, dates), { maxLength: 3 }),
    fc.record({
      amount: fc.constantFrom(0, 1, 1200, 36_500),
      unit: fc.constantFrom('MINUTES', 'DAYS', 'MONTHS'),
    }),
    fc.jsonValue({ maxDepth: 1 }),
  )
  const fields = [
    'entry.a.0.b',
    'customFields.plan',
    'customFields.score',
    'customFields.trial',
    'customFields.renewal',
  ]
  const plain = [
    'id',
    'email',
    'email.domain',
    'country',
    'status',
    'createdAt',
    'revenue',
    'lastClickedAt',
    'campaign',
    'workflow',
    'random',
  ]
  const operators = [...new Set(Object.values(OPERATORS).flat())]
  const anyLeaf = fc
    .tuple(
      fc.constantFrom(...fields, ...plain),
      fc.constantFrom(...operators),
      fc.option(values, { nil: undefined }),
    )
    .map(([field, operator, value]) => leaf(field, operator, value))
  const event = fc
    .tuple(
      fc.constantFrom(...operators),
      fc.option(values, { nil: undefined }),
      fc.constantFrom('equals', 'gt', 'lte'),
      fc.nat(3),
    )
    .map(([operator, value, count, times]) => ({
      ...leaf('event', 'performed', undefined),
      event: 'ORDERED',
      where: [value === undefined ? { path: 'a.b', operator } : { path: 'a.b', operator, value }],
      count: { operator: count, value: times },
    }))
  let run = 0
  const property = fc.asyncProperty(
    fc.oneof({ arbitrary: anyLeaf, weight: 4 }, { arbitrary: event, weight: 1 }),
    async (made) => {
      const filters = [made, { not: made }] as Filter[]
      if (validateFilters(filters, '', { entry: true }).length > 0) return
      run += 1
      const entry = { a: [{ b: '2025-01-01' }] }
      const inside = await audiencePredicate(em, scope, filters, { entry })
      // `made` contains a filter and its negation, so nobody may match.
      const found = await rows(
        em,
        sql`select 1 from subscriber s where s.organization_id = ${organizationId} and ${inside}`,
      )
      t.is(found.length, 0, JSON.stringify(made))
    },
  )
  await fc.assert(property, { numRuns: 3000, seed: SEED })
  t.true(run > 150, `${run} of them were valid`)
})

test('an id matches itself, and nobody of another organization', async (t) => {
  const [first] = people
  const id = encodeId('sub', first?.id ?? '')
  t.deepEqual(await ask([{ field: 'id', operator: 'equals', value: id }]), [first?.id])
  t.is((await ask([{ field: 'id', operator: 'not_in', value: [id] }])).length, people.length - 1)
  t.is((await ask([])).length, people.length)
  t.false(await matches(em, { organizationId: otherOrganizationId }, first?.id ?? '', []))
})

function leaf(field: string, operator: string, value: unknown): Leaf {
  const made = { field, operator: operator as FilterOperator }
  return value === undefined ? made : { ...made, value: value as FilterValue }
}

async function ask(filters: Filter[]): Promise<string[]> {
  const predicate = await audiencePredicate(em, scope, filters)
  const found = await rows<{ id: string }>(
    em,
    sql`select s.id from subscriber s where s.organization_id = ${organizationId} and ${predicate} order by s.id`,
  )
  return found.map(({ id }) => id)
}

function expected(filters: Filter[]): string[] {
  return people
    .filter((one) => filters.every((filter) => holds(one, filter)))
    .map(({ id }) => id)
    .toSorted()
}

/** A second implementation of the filter language, as simple as possible. */
function holds(one: Person, filter: Filter): boolean {
  if ('all' in filter) return filter.all.every((inner) => holds(one, inner))
  if ('any' in filter) return filter.any.some((inner) => holds(one, inner))
  if ('not' in filter) return !holds(one, filter.not)
  const { operator, value } = filter
  if (operator === 'is_not_set') return !holds(one, { ...filter, operator: 'is_set' })
  if (operator.startsWith('not_'))
    return !holds(one, { ...filter, operator: operator.slice(4) as FilterOperator })
  const actual = valueOf(one, filter.field)
  if (actual === null || actual === undefined) return false
  if (operator === 'is_set') return true
  if (isDate(filter.field)) return dateHolds(actual, operator, value)
  if (typeof actual === 'number') return numberHolds(actual, operator, value)
  if (typeof actual === 'boolean') return actual === value
  return textHolds(actual, operator, value, ['email', 'email.domain', 'country'].includes(filter.field))
}

function valueOf(one: Person, field: string): Scalar | null | undefined {
  const known: Record<string, Scalar | null> = {
    name: one.name,
    email: one.email,
    'email.domain': one.email.split('@')[1] ?? null,
    phone: one.phone,
    country: one.country,
    status: one.status,
    createdAt: one.createdAt,
    revenue: one.stat?.revenue ?? 0,
    openCount: one.stat?.opens ?? 0,
    lastOpenedAt: one.stat?.lastOpenedAt ?? null,
  }
  return field.startsWith('customFields.') ? one.fields[field.slice(13)] : known[field]
}

function textHolds(actual: string, operator: string, value: unknown, ignoresCase: boolean): boolean {
  const same = (left: string, right: unknown) =>
    ignoresCase ? left.toLowerCase() === String(right).toLowerCase() : left === right
  const [text, part] = [actual.toLowerCase(), String(value).toLowerCase()]
  if (operator === 'equals') return same(actual, value)
  if (operator === 'in') return Array.isArray(value) && value.some((item) => same(actual, item))
  if (operator === 'contains') return text.includes(part)
  return operator === 'starts_with' ? text.startsWith(part) : text.endsWith(part)
}

function numberHolds(actual: number, operator: string, value: unknown): boolean {
  if (Array.isArray(value)) return actual >= Number(value[0]) && actual <= Number(value[1])
  const other = Number(value)
  if (operator === 'equals') return actual === other
  if (operator === 'gt') return actual > other
  if (operator === 'gte') return actual >= other
  return operator === 'lt' ? actual < other : actual <= other
}

function isDate(field: string): boolean {
  return ['createdAt', 'lastOpenedAt', 'customFields.renewal'].includes(field)
}

/** Returns the first and last millisecond of a date in UTC. */
function span(text: string): [number, number] {
  const start = Date.parse(text)
  return [start, text.length === 10 ? start + DAY - 1 : start]
}

function dateHolds(actual: Scalar, operator: string, value: unknown): boolean {
  const at = typeof actual === 'number' ? actual : Date.parse(String(actual))
  if (Array.isArray(value)) return at >= span(String(value[0]))[0] && at <= span(String(value[1]))[1]
  if (typeof value === 'string') {
    const [first, last] = span(value)
    if (operator === 'equals') return at >= first && at <= last
    if (operator === 'gt' || operator === 'after') return at > last
    if (operator === 'gte') return at >= first
    return operator === 'lte' ? at <= last : at < first
  }
  const { amount, unit } = value as { amount: number; unit: 'HOURS' | 'DAYS' | 'WEEKS' }
  const length = amount * { HOURS: DAY / 24, DAYS: DAY, WEEKS: 7 * DAY }[unit]
  // A date without a time stands for the whole day, so the limit is rounded down to the beginning of its day.
  const limit = (moment: number) =>
    typeof actual === 'string' && actual.length === 10 ? moment - (moment % DAY) : moment
  if (operator === 'within_last') return at >= limit(now - length) && at <= now
  if (operator === 'more_than_ago') return at < limit(now - length)
  return at >= limit(now) && at <= limit(now + length)
}

async function insert(organization: string, one: Person): Promise<void> {
  await execute(
    em,
    sql`insert into subscriber (id, organization_id, email, name, phone, country, status, created_at, fields)
      values (${one.id}, ${organization}, ${one.email}, ${one.name}, ${one.phone}, ${one.country}, ${one.status},
        ${new Date(one.createdAt).toISOString()}::timestamptz, ${JSON.stringify(one.fields)}::jsonb)`,
  )
  if (!one.stat) return
  const opened = one.stat.lastOpenedAt === null ? null : new Date(one.stat.lastOpenedAt).toISOString()
  await execute(
    em,
    sql`insert into subscriber_stat (organization_id, subscriber_id, revenue, open_count, last_opened_at)
      values (${organization}, ${one.id}, ${one.stat.revenue}::numeric, ${one.stat.opens}, ${opened}::timestamptz)`,
  )
}
