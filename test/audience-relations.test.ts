import type { MikroORM } from '@mikro-orm/postgresql'
import test from 'ava'
import { sql } from 'kysely'

import type { Filter, FilterOperator, Leaf, Where } from '../schema/audience.ts'
import { Failure } from '../src/catalogue/failure.ts'
import { type EntityManager, execute, json, migrate, openDatabase, rows } from '../src/database.ts'
import { checkFilters } from '../src/domain/audience/check.ts'
import {
  audiencePredicate,
  compileWhere,
  type EntryContext,
  firstMatching,
  matches,
} from '../src/domain/audience/match.ts'
import { tagNamesIn } from '../src/domain/audience/references.ts'
import { encodeId, type IdPrefix, newId } from '../src/ids.ts'
import { createDatabase, type TestDatabase } from './helpers/services.ts'

const NAMES = ['ann', 'bob', 'cleo', 'dan']
let database: TestDatabase
let orm: MikroORM
let em: EntityManager

test.after.always(async () => {
  await orm?.close()
  await database?.drop()
})

test.before(async () => {
  database = await createDatabase()
  await migrate({ databaseUrl: database.url })
  orm = await openDatabase(database.url)
  em = orm.em.fork()
})

/** A separate organization with four people for each test. */
class World {
  readonly organizationId = newId()
  readonly scope = { organizationId: this.organizationId }
  readonly people = new Map(NAMES.map((name) => [name, newId()]))

  static async make(timezone = 'Europe/Paris'): Promise<World> {
    const world = new World()
    const id = world.organizationId
    await execute(
      em,
      sql`insert into organization (id, name, slug, timezone) values (${id}, 'Test', ${id}, ${timezone})`,
    )
    for (const [name, person] of world.people) {
      await execute(
        em,
        sql`insert into subscriber (id, organization_id, email, name, status)
          values (${person}, ${id}, ${`${name}@example.com`}, ${name}, 'SUBSCRIBED')`,
      )
    }
    return world
  }

  id(name: string): string {
    return this.people.get(name) ?? ''
  }

  async tag(name: string, ...people: string[]): Promise<string> {
    const id = newId()
    await execute(
      em,
      sql`insert into tag (id, organization_id, name) values (${id}, ${this.organizationId}, ${name})`,
    )
    for (const person of people) {
      await execute(
        em,
        sql`insert into subscriber_tag (organization_id, subscriber_id, tag_id)
          values (${this.organizationId}, ${this.id(person)}, ${id})`,
      )
    }
    return id
  }

  async segment(filters: Filter[], id = newId()): Promise<string> {
    await execute(
      em,
      sql`insert into segment (id, organization_id, name, filters)
        values (${id}, ${this.organizationId}, 'Segment', ${JSON.stringify(filters)}::jsonb)`,
    )
    return encodeId('seg', id)
  }

  async event(person: string, type: string, data: unknown, age = '0 days'): Promise<void> {
    await execute(
      em,
      sql`insert into subscriber_event (id, organization_id, subscriber_id, type, data, created_at)
        values (${newId()}, ${this.organizationId}, ${this.id(person)}, ${type}, ${JSON.stringify(data)}::jsonb,
          now() - ${age}::interval)`,
    )
  }

  /** Records opens of these ages, and updates the statistics as the service does. */
  async opened(person: string, ages: readonly string[]): Promise<void> {
    for (const age of ages) await this.event(person, 'EMAIL_OPENED', {}, age)
    await execute(
      em,
      sql`insert into subscriber_stat (organization_id, subscriber_id, open_count, last_opened_at)
        select organization_id, subscriber_id, count(*), max(created_at) from subscriber_event
        where organization_id = ${this.organizationId} and subscriber_id = ${this.id(person)} group by 1, 2`,
    )
  }

  async automation(): Promise<{ id: string; versionId: string }> {
    const [id, versionId] = [newId(), newId()]
    await execute(
      em,
      sql`insert into automation (id, organization_id, name) values (${id}, ${this.organizationId}, 'A')`,
    )
    await execute(
      em,
      sql`insert into automation_version (id, organization_id, automation_id, number, definition)
        values (${versionId}, ${this.organizationId}, ${id}, 1, '{}'::jsonb)`,
    )
    return { id, versionId }
  }

  async run(automation: { id: string; versionId: string }, person: string, status: string): Promise<string> {
    const id = newId()
    await execute(
      em,
      sql`insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number, status)
        values (${id}, ${this.organizationId}, ${automation.id}, ${automation.versionId}, ${this.id(person)}, 1, ${status})`,
    )
    return id
  }

  async campaign(): Promise<string> {
    const id = newId()
    await execute(
      em,
      sql`insert into campaign (id, organization_id, kind) values (${id}, ${this.organizationId}, 'BROADCAST')`,
    )
    return id
  }

  async message(
    person: string,
    of: Partial<Record<'campaign' | 'automation' | 'run' | 'step', string>>,
    outcome: string,
  ): Promise<void> {
    const clicked = outcome === 'CLICKED'
    const sent = outcome !== 'QUEUED'
    await execute(
      em,
      sql`insert into message (id, organization_id, class, marketing, status, subscriber_id, recipient, from_email,
          campaign_id, automation_id, run_id, step_id, sent_at, opened_at, clicked_at)
        values (${newId()}, ${this.organizationId}, 'CAMPAIGN', true, ${outcome === 'BOUNCED' ? 'BOUNCED' : sent ? 'SENT' : 'QUEUED'},
          ${this.id(person)}, 'a@example.com', 'b@example.com', ${of.campaign ?? null}, ${of.automation ?? null},
          ${of.run ?? null}, ${of.step ?? null}, case when ${sent}::boolean then now() end,
          case when ${clicked || outcome === 'OPENED'}::boolean then now() end, case when ${clicked}::boolean then now() end)`,
    )
  }

  async field(name: string, type: string, values: Record<string, unknown>): Promise<void> {
    await execute(
      em,
      sql`insert into custom_field (id, organization_id, name, type) values (${newId()}, ${this.organizationId}, ${name}, ${type})`,
    )
    for (const [person, value] of Object.entries(values)) {
      await execute(
        em,
        sql`update subscriber set fields = fields || ${JSON.stringify({ [name]: value })}::jsonb
          where organization_id = ${this.organizationId} and id = ${this.id(person)}`,
      )
    }
  }

  /** Returns the names of the people who match. */
  async who(...filters: Filter[]): Promise<string> {
    const predicate = await audiencePredicate(em, this.scope, filters)
    const found = await rows<{ name: string }>(
      em,
      sql`select s.name from subscriber s where s.organization_id = ${this.organizationId} and ${predicate} order by s.name`,
    )
    // Matching each person individually must give the same result.
    for (const name of NAMES) {
      const alone = await matches(em, this.scope, this.id(name), filters)
      if (alone !== found.some((one) => one.name === name)) throw new Error(`${name} alone is ${alone}`)
    }
    return found.map(({ name }) => name).join(' ')
  }

  async inRun(person: string, context: EntryContext, ...filters: Filter[]): Promise<boolean> {
    return matches(em, this.scope, this.id(person), filters, context)
  }
}

function leaf(field: string, operator: FilterOperator, value?: Leaf['value']): Leaf {
  return value === undefined ? { field, operator } : { field, operator, value }
}

function performed(event: string, rest: Partial<Leaf> = {}): Leaf {
  return { field: 'event', operator: 'performed', event, ...rest }
}

test('tags are compared by name whatever the case', async (t) => {
  const world = await World.make()
  await world.tag('VIP', 'ann', 'bob')
  await world.tag('beta', 'bob', 'cleo')
  const other = await World.make()
  await other.tag('vip', 'dan')
  t.is(await world.who(leaf('tags', 'has_any', ['vip'])), 'ann bob')
  t.is(await world.who(leaf('tags', 'has_any', ['vip', 'Beta'])), 'ann bob cleo')
  t.is(await world.who(leaf('tags', 'has_all', ['vip', 'BETA', 'Vip'])), 'bob')
  t.is(await world.who(leaf('tags', 'has_none', ['vip'])), 'cleo dan')
  t.is(await world.who({ not: leaf('tags', 'has_all', ['vip', 'beta']) }), 'ann cleo dan')
  t.is(await world.who(leaf('tags', 'is_not_set')), 'dan')
  t.deepEqual(
    tagNamesIn([{ any: [leaf('tags', 'has_any', ['a', 'b']), { not: leaf('tags', 'has_none', ['b']) }] }]),
    ['a', 'b'],
  )
})

test('events are counted by type, data and age', async (t) => {
  const world = await World.make()
  await world.event('ann', 'SUBSCRIBER_PAYMENT', { amount: 10, currency: 'EUR', metadata: { plan: 'pro' } })
  await world.event('ann', 'SUBSCRIBER_PAYMENT', { amount: 90, currency: 'EUR' }, '40 days')
  await world.event('bob', 'SUBSCRIBER_PAYMENT', { amount: 50, currency: 'USD' })
  await world.event('cleo', 'ORDERED', { amount: '50' })
  const paid = 'SUBSCRIBER_PAYMENT'
  const where = (...list: Where[]) => ({ where: list })
  t.is(await world.who(performed(paid)), 'ann bob')
  t.is(await world.who({ ...performed(paid), operator: 'not_performed' }), 'cleo dan')
  t.is(await world.who(performed(paid, where({ path: 'amount', operator: 'gte', value: 50 }))), 'ann bob')
  t.is(
    await world.who(
      performed(
        paid,
        where(
          { path: 'amount', operator: 'gte', value: 50 },
          { path: 'currency', operator: 'equals', value: 'USD' },
        ),
      ),
    ),
    'bob',
  )
  t.is(
    await world.who(performed(paid, where({ path: 'metadata.plan', operator: 'not_equals', value: 'pro' }))),
    'ann bob',
  )
  t.is(
    await world.who(
      performed(paid, {
        ...where({ path: 'metadata.plan', operator: 'is_set' }),
        within: { amount: 1, unit: 'DAYS' },
      }),
    ),
    'ann',
  )
  t.is(
    await world.who(
      performed(paid, {
        within: { amount: 1, unit: 'MONTHS' },
        ...where({ path: 'amount', operator: 'gt', value: 60 }),
      }),
    ),
    '',
  )
  t.is(await world.who(performed('ORDERED', where({ path: 'amount', operator: 'gte', value: 50 }))), '')
  t.is(await world.who(performed(paid, { count: { operator: 'gte', value: 2 } })), 'ann')
  t.is(await world.who(performed(paid, { count: { operator: 'equals', value: 1 } })), 'bob')
  t.is(await world.who(performed(paid, { count: { operator: 'lt', value: 2 } })), 'bob cleo dan')
  t.is(await world.who(performed(paid, { count: { operator: 'equals', value: 0 } })), 'cleo dan')
  t.is(await world.who({ not: performed(paid, { count: { operator: 'lte', value: 1 } }) }), 'ann')
  t.is(
    await world.who({
      ...performed(paid, { count: { operator: 'gte', value: 2 } }),
      operator: 'not_performed',
    }),
    'bob cleo dan',
  )
})

test('what people did several times is counted once for all of them, whatever is asked beside it', async (t) => {
  const world = await World.make()
  await world.tag('newer than the statistics', ...NAMES)
  const twice: Partial<Leaf> = { count: { operator: 'gte', value: 2 } }
  for (const filter of [
    performed('SUBSCRIBER_PAYMENT', twice),
    performed('EMAIL_OPENED', { ...twice, within: { amount: 30, unit: 'DAYS' } }),
    performed('SUBSCRIBER_PAYMENT', { count: { operator: 'lt', value: 2 } }),
  ]) {
    const predicate = await audiencePredicate(em, world.scope, [
      filter,
      leaf('tags', 'has_any', ['newer than the statistics']),
    ])
    const plan = await rows<Record<string, string>>(
      em,
      sql`explain select from subscriber s where s.organization_id = ${world.organizationId} and ${predicate}`,
    )
    t.regex(JSON.stringify(plan), /hashed SubPlan/)
  }
})

test('opens, clicks and sends are asked of the numbers that count them, or narrowed by them', async (t) => {
  const world = await World.make()
  await world.opened('ann', ['1 days', '2 days', '100 days'])
  await world.opened('bob', ['1 days', '100 days'])
  await world.opened('cleo', ['40 days', '41 days'])
  const opened = (more: Partial<Leaf> = {}) => performed('EMAIL_OPENED', more)
  const times = (operator: 'equals' | 'gt' | 'gte' | 'lt' | 'lte', value: number) => ({
    count: { operator, value },
  })
  const within: Partial<Leaf> = { within: { amount: 30, unit: 'DAYS' } }
  t.is(await world.who(opened()), 'ann bob cleo')
  t.is(await world.who(opened(times('gte', 3))), 'ann')
  t.is(await world.who(opened(times('equals', 2))), 'bob cleo')
  t.is(await world.who(opened(times('lt', 2))), 'dan')
  t.is(await world.who({ not: opened(times('gt', 2)) }), 'bob cleo dan')
  t.is(await world.who(opened(within)), 'ann bob')
  t.is(await world.who(opened({ ...within, ...times('gte', 2) })), 'ann')
  t.is(await world.who(opened({ ...within, ...times('gt', 0) })), 'ann bob')
  t.is(await world.who(opened({ ...within, ...times('equals', 1) })), 'bob')
  t.is(await world.who(opened({ ...within, ...times('lte', 1) })), 'bob cleo dan')
  t.is(await world.who({ ...opened(within), operator: 'not_performed' }), 'cleo dan')
  const where = [{ path: 'campaignId', operator: 'is_set' as const }]
  t.is(await world.who(opened({ ...times('gte', 2), where })), '')
  t.is(
    await world.who(performed('EMAIL_OPENED', { within: { amount: 1200, unit: 'MONTHS' } })),
    'ann bob cleo',
  )
  t.true(await world.inRun('ann', {}, opened({ ...within, ...times('gte', 2) })))
  t.false(await world.inRun('bob', {}, opened({ ...within, ...times('gte', 2) })))
})

test('campaigns are asked for by what became of their emails', async (t) => {
  const world = await World.make()
  const [first, second] = [await world.campaign(), await world.campaign()]
  await world.message('ann', { campaign: first }, 'CLICKED')
  await world.message('bob', { campaign: first }, 'OPENED')
  await world.message('cleo', { campaign: first }, 'BOUNCED')
  await world.message('cleo', { campaign: second }, 'SENT')
  await world.message('dan', { campaign: second }, 'QUEUED')
  const id = encodeId('cmp', first)
  t.is(await world.who(leaf('campaign', 'received', id)), 'ann bob cleo')
  t.is(await world.who(leaf('campaign', 'not_received', id)), 'dan')
  t.is(await world.who(leaf('campaign', 'opened', id)), 'ann bob')
  t.is(await world.who(leaf('campaign', 'not_opened', id)), 'cleo dan')
  t.is(await world.who(leaf('campaign', 'clicked', [id, encodeId('cmp', second)])), 'ann')
  t.is(await world.who(leaf('campaign', 'not_clicked')), 'bob cleo dan')
  t.is(await world.who(leaf('campaign', 'bounced', id)), 'cleo')
})

test('inside a run, the email of a step is the one this run sent', async (t) => {
  const world = await World.make()
  const automation = await world.automation()
  const [runId, earlier] = [newId(), newId()]
  await world.message('ann', { automation: automation.id, run: earlier, step: 'hello' }, 'CLICKED')
  await world.message('ann', { automation: automation.id, run: runId, step: 'hello' }, 'OPENED')
  const clicked = leaf('campaign', 'clicked', { stepId: 'hello' })
  const run = { automationId: automation.id, runId }
  t.false(await world.inRun('ann', { run }, clicked))
  t.true(await world.inRun('ann', { run: { ...run, runId: earlier } }, clicked))
  t.true(await world.inRun('ann', { run: { automationId: automation.id } }, clicked))
  t.false(await world.inRun('ann', {}, clicked))
  t.true(await world.inRun('ann', { run }, { not: clicked }))
})

test('workflows are asked for by the runs in them', async (t) => {
  const world = await World.make()
  const [first, second] = [await world.automation(), await world.automation()]
  await world.run(first, 'ann', 'WAITING')
  await world.run(first, 'bob', 'COMPLETED')
  await world.run(first, 'cleo', 'SKIPPED')
  await world.run(second, 'dan', 'COMPLETED')
  const id = encodeId('wf', first.id)
  t.is(await world.who(leaf('workflow', 'active_in', id)), 'ann')
  t.is(await world.who(leaf('workflow', 'completed', id)), 'bob')
  t.is(await world.who(leaf('workflow', 'completed')), 'bob dan')
  t.is(await world.who(leaf('workflow', 'never_entered', [id])), 'cleo dan')
})

test('a segment is its filters, in any combination', async (t) => {
  const world = await World.make()
  await world.tag('vip', 'ann', 'bob')
  const vips = await world.segment([leaf('tags', 'has_any', ['vip'])])
  const names = await world.segment([leaf('name', 'in', ['bob', 'cleo'])])
  const nested = await world.segment([leaf('segment', 'has_all', [vips, names])])
  t.is(await world.who(leaf('segment', 'has_any', [vips, names])), 'ann bob cleo')
  t.is(await world.who(leaf('segment', 'has_all', [vips, names])), 'bob')
  t.is(await world.who(leaf('segment', 'has_none', [vips, names])), 'dan')
  t.is(await world.who({ not: leaf('segment', 'has_all', [vips, names]) }), 'ann cleo dan')
  t.is(await world.who(leaf('segment', 'has_none', [nested])), 'ann cleo dan')
})

test('a random share is stable for each subscriber and drawn anew by each seed', async (t) => {
  const world = await World.make()
  const draw = (value: number, seed?: string) =>
    world.who({ ...leaf('random', 'percent', value), ...(seed ? { seed } : {}) })
  t.is(await draw(0), '')
  t.is(await draw(100), 'ann bob cleo dan')
  t.is(await draw(50, 'a'), await draw(50, 'a'))
  await execute(
    em,
    sql`insert into subscriber (id, organization_id, email, name, status)
      select new_id(), ${world.organizationId}, n || '@r.example', 'r', 'SUBSCRIBED' from generate_series(1, 2000) n`,
  )
  const share = async (seed: string) =>
    (await world.who({ ...leaf('random', 'percent', 30), seed })).split(' ').length / 2004
  const [spring, summer] = [await share('spring'), await share('summer')]
  t.true(Math.abs(spring - 0.3) < 0.05 && Math.abs(summer - 0.3) < 0.05)
  t.not(spring, summer)
})

test('relative dates and whole days are those of the organization', async (t) => {
  const world = await World.make('Pacific/Auckland')
  const day = (offset: number, zone = 'Pacific/Auckland') =>
    new Intl.DateTimeFormat('en-CA', { timeZone: zone }).format(Date.now() + offset * 86_400_000)
  await world.field('renewal', 'date', { ann: day(0), bob: day(7), cleo: day(-7), dan: 'not a date' })
  const renewal = (operator: FilterOperator, amount: number) =>
    world.who(leaf('customFields.renewal', operator, { amount, unit: 'DAYS' }))
  t.is(await renewal('within_next', 7), 'ann bob')
  t.is(await renewal('within_last', 7), 'ann cleo')
  t.is(await renewal('within_last', 6), 'ann')
  t.is(await renewal('more_than_ago', 6), 'cleo')
  t.is(await renewal('more_than_ago', 7), '')
  t.is(await world.who(leaf('customFields.renewal', 'equals', day(0))), 'ann')
  t.is(await world.who(leaf('customFields.renewal', 'between', [day(0), day(7)])), 'ann bob')
  t.is(await world.who({ not: leaf('customFields.renewal', 'gte', day(0)) }), 'cleo dan')
  await execute(
    em,
    sql`update subscriber set created_at = ('2025-03-01 23:30'::timestamp at time zone 'Pacific/Auckland')
      where organization_id = ${world.organizationId} and name = 'ann'`,
  )
  t.is(await world.who(leaf('createdAt', 'equals', '2025-03-01')), 'ann')
  t.is(await world.who(leaf('createdAt', 'equals', '2025-03-01T10:30:00Z')), 'ann')
  t.is(await world.who(leaf('createdAt', 'lte', '2025-02-28')), '')
})

test('an anniversary comes round each year, the 29th of February on the 28th', async (t) => {
  const world = await World.make('UTC')
  // Leap years, so that each has a 29 February.
  const on = (offset: number, year: 1976 | 1984 | 1992 | 2000) =>
    `${year}-${new Date(Date.now() + offset * 86_400_000).toISOString().slice(5, 10)}`
  await world.field('born', 'date', {
    ann: on(0, 1992),
    bob: on(3, 1984),
    cleo: on(-1, 2000),
    dan: on(200, 1976),
  })
  const within = (amount: number) =>
    world.who(leaf('customFields.born', 'anniversary_in', { amount, unit: 'DAYS' }))
  t.is(await within(0), 'ann')
  t.is(await within(3), 'ann bob')
  t.is(await within(360), 'ann bob dan')
  t.is(await within(366), 'ann bob cleo dan')
})

test('what a run was started with is compared in place', async (t) => {
  const world = await World.make()
  const entry = { order: { total: 42, items: [{ sku: "A'1" }], paid: true, at: '2025-03-01' }, note: null }
  const holds = (path: string, operator: FilterOperator, value?: Leaf['value']) =>
    world.inRun('ann', { entry }, leaf(`entry.${path}`, operator, value))
  t.true(await holds('order.total', 'gte', 42))
  t.true(await holds('order.total', 'equals', 42))
  t.false(await holds('order.total', 'equals', '42'))
  t.true(await holds('order.items.0.sku', 'equals', "A'1"))
  t.true(await holds('order.items.0.sku', 'starts_with', "a'"))
  t.true(await holds('order.paid', 'equals', true))
  t.true(await holds('order.at', 'before', '2025-03-02'))
  t.false(await holds('note', 'is_set'))
  t.true(await holds('missing.path', 'not_equals', 1))
  t.false(await world.inRun('ann', {}, leaf('entry.order.total', 'gt', 1)))
})

test('the first branch that matches is found in one query', async (t) => {
  const world = await World.make()
  await world.tag('vip', 'ann')
  const branches = [
    { id: 'vip', filters: [leaf('tags', 'has_any', ['vip'])] },
    { id: 'b', filters: [leaf('name', 'starts_with', 'b'), leaf('phone', 'is_not_set')] },
    { id: 'never', filters: [leaf('phone', 'equals', '1')] },
  ]
  const first = (name: string) => firstMatching(em, world.scope, world.id(name), branches)
  t.deepEqual([await first('ann'), await first('bob'), await first('cleo')], ['vip', 'b', null])
  t.is(await firstMatching(em, world.scope, newId(), branches), null)
})

test("an event's data is judged as events in filters are", async (t) => {
  async function holds(data: unknown, where: readonly Where[], zone = 'UTC'): Promise<boolean> {
    const condition = compileWhere(json(data), where, zone)
    const [found] = await rows<{ holds: boolean }>(em, sql`select coalesce(${condition}, false) as holds`)
    return found?.holds ?? false
  }
  const data = { amount: 10, metadata: { plan: 'pro' } }
  t.true(await holds(data, [{ path: 'amount', operator: 'between', value: [5, 10] }]))
  t.false(await holds(data, [{ path: 'metadata.plan', operator: 'in', value: ['free'] }]))
  t.true(await holds({ null: { NULL: 1 } }, [{ path: 'null.NULL', operator: 'equals', value: 1 }]))
  t.false(await holds(null, [{ path: 'amount', operator: 'gt', value: 0 }]))
  // In Paris, this half hour occurs twice that night, and one in March not at all.
  for (const day of ['2025-10-26', '2025-03-30', '2025-06-01']) {
    const around: [string, string] = [`${day}T02:15`, `${day}T02:45`]
    const where: Where[] = [{ path: 'at', operator: 'between', value: around }]
    t.true(await holds({ at: `${day}T02:30` }, where, 'Europe/Paris'), day)
    t.false(await holds({ at: `${day}T02:50` }, where, 'Europe/Paris'), day)
  }
  t.true(await holds(null, []))
})

test('references that do not exist are refused when filters are saved, all at once', async (t) => {
  const world = await World.make()
  const other = await World.make()
  const strange = (prefix: IdPrefix) => encodeId(prefix, newId())
  await world.tag('vip')
  await world.field('plan', 'string', {})
  const foreign = encodeId('cmp', await other.campaign())
  const filters: Filter[] = [
    leaf('tags', 'has_any', ['vip', 'nope']),
    { any: [leaf('segment', 'has_any', [strange('seg')]), leaf('campaign', 'opened', foreign)] },
    leaf('workflow', 'completed', strange('wf')),
    leaf('customFields.plam', 'is_set'),
    { not: leaf('customFields.plan', 'gt', 3) },
  ]
  const refused = await t.throwsAsync(checkFilters(em, world.scope, filters, 'filters'), {
    instanceOf: Failure,
  })
  t.is(refused?.code, 'INVALID_INPUT')
  t.deepEqual(pathsOf(refused), [
    'filters[0].value',
    'filters[1].any[0].value',
    'filters[1].any[1].value',
    'filters[2].value',
    'filters[3].field',
    'filters[4].not.operator',
  ])
  await checkFilters(em, world.scope, filters.slice(0, 1), 'filters', { tagsOnDemand: true })
  t.deepEqual(await checkFilters(em, world.scope, [leaf('tags', 'has_any', ['VIP'])], 'filters'), [
    leaf('tags', 'has_any', ['VIP']),
  ])
  const mixed = await t.throwsAsync(
    checkFilters(
      em,
      world.scope,
      [{ field: 'nmae', operator: 'is_set' }, leaf('tags', 'has_any', ['nope'])],
      'filters',
    ),
    { instanceOf: Failure },
  )
  t.deepEqual(pathsOf(mixed), ['filters[0].field', 'filters[1].value'])
})

test('a reference that is deleted later stops the filter and never matches everybody', async (t) => {
  const world = await World.make()
  const code = async (...filters: Filter[]) =>
    (await t.throwsAsync(audiencePredicate(em, world.scope, filters), { instanceOf: Failure }))?.code
  t.is(await code(leaf('tags', 'has_none', ['gone'])), 'FILTER_REFERENCE_MISSING')
  t.is(await code(leaf('segment', 'has_none', [encodeId('seg', newId())])), 'FILTER_REFERENCE_MISSING')
  t.is(await code(leaf('campaign', 'not_opened', encodeId('cmp', newId()))), 'FILTER_REFERENCE_MISSING')
  t.is(
    await code({ not: leaf('workflow', 'completed', encodeId('wf', newId())) }),
    'FILTER_REFERENCE_MISSING',
  )
  t.is(await code(leaf('customFields.gone', 'is_not_set')), 'FILTER_REFERENCE_MISSING')
  const segment = await world.segment([leaf('tags', 'has_none', ['gone'])])
  t.is(await code(leaf('segment', 'has_any', [segment])), 'FILTER_REFERENCE_MISSING')
})

test('segments that lead back to themselves are refused', async (t) => {
  const world = await World.make()
  const [a, b] = [newId(), newId()]
  await world.segment([leaf('segment', 'has_any', [encodeId('seg', b)])], a)
  await world.segment([leaf('name', 'is_set')], b)
  const back = [leaf('segment', 'has_none', [encodeId('seg', a)])]
  const refused = await t.throwsAsync(checkFilters(em, world.scope, back, 'filters', { segmentId: b }), {
    instanceOf: Failure,
    message: /lead back to themselves/,
  })
  t.deepEqual(pathsOf(refused), ['filters[0].value'])
  await checkFilters(em, world.scope, back, 'filters', { segmentId: newId() })
  // Two concurrent edits can still create a cycle; the audience is then refused.
  await execute(em, sql`update segment set filters = ${JSON.stringify(back)}::jsonb where id = ${b}`)
  const stopped = await t.throwsAsync(audiencePredicate(em, world.scope, back), { instanceOf: Failure })
  t.is(stopped?.code, 'WRONG_STATE')
})

function pathsOf(failure: Failure | undefined): string[] {
  const details = failure?.details
  return Array.isArray(details) ? details.map(({ path }: { path: string }) => path) : []
}
