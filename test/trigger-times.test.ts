import test from 'ava'
import fc from 'fast-check'
import { sql } from 'kysely'

import type { TriggerConfigs } from '../schema/automation-triggers.ts'
import { execute } from '../src/database.ts'
import { nextDue, type Timed } from '../src/domain/automations/triggers/due-people.ts'
import { dueStretch } from '../src/domain/automations/triggers/firing.ts'
import {
  cronFault,
  lastTime,
  looksOf,
  nextDate,
  nextLook,
  nextTime,
} from '../src/domain/automations/triggers/trigger-times.ts'
import { newId } from '../src/ids.ts'
import { indexGraph } from '../temporal/graph.ts'
import { makeTenant, step, type Tenant } from './helpers/automation.ts'
import { type TestServices, testServices } from './helpers/database.ts'

type DateConfig = TriggerConfigs['DATE_FIELD']

let services: TestServices
let tenant: Tenant

test.before(async () => {
  services = await testServices()
  tenant = await makeTenant(services)
})
test.after.always(() => services?.close())

const iso = (moment: number | null | undefined) => (moment == null ? null : new Date(moment).toISOString())
const at = (text: string) => Date.parse(text)
const date = (config: Partial<DateConfig> = {}): DateConfig => ({
  type: 'DATE_FIELD',
  field: 'day',
  direction: 'AFTER',
  anniversary: false,
  ...config,
})
const birthday = (config: Partial<DateConfig> = {}) => date({ anniversary: true, at: '09:00', ...config })

test('a date is due on its day at the hour, moved by its offset, on the clocks of the zone', (t) => {
  const due = (
    value: unknown,
    config: DateConfig,
    zone = 'Europe/Paris',
    after = at('2025-01-01T00:00:00Z'),
  ) => iso(nextDate(value, config, zone, after)?.due)
  t.is(due('2025-07-10', date()), '2025-07-09T22:00:00.000Z')
  t.is(due('2025-07-10', date({ at: '09:00' })), '2025-07-10T07:00:00.000Z')
  t.is(due('2025-07-10', date({ at: '09:00' }), 'Asia/Tokyo'), '2025-07-10T00:00:00.000Z')
  const before = { offset: { amount: 1, unit: 'WEEKS' }, direction: 'BEFORE' } as const
  t.is(due('2025-07-10', date({ at: '09:00', ...before })), '2025-07-03T07:00:00.000Z')
  // A point in time belongs to the day that it has in the time zone.
  t.is(due('2025-07-10T23:30:00Z', date({ at: '09:00' })), '2025-07-11T07:00:00.000Z')
  const hour = { offset: { amount: 90, unit: 'MINUTES' }, direction: 'BEFORE' } as const
  t.is(due('2025-07-10T15:00:00Z', date(hour)), '2025-07-10T13:30:00.000Z')
  t.is(due('2024-07-10', date()), null)
  for (const value of [null, undefined, 5, 'soon', '2025-02-30']) t.is(due(value, date()), null)
})

test('an anniversary comes every year from the date on, that of a 29 February on the 28th', (t) => {
  const next = (value: string, after: string, config = birthday()) => {
    const found = nextDate(value, config, 'UTC', at(after))
    return found && `${found.occasion} ${iso(found.due)}`
  }
  t.is(next('1990-05-01', '2026-04-30T00:00:00Z'), '2026-05-01 2026-05-01T09:00:00.000Z')
  t.is(next('1990-05-01', '2026-05-01T09:00:00Z'), '2027-05-01 2027-05-01T09:00:00.000Z')
  t.is(next('2028-05-01', '2026-04-30T00:00:00Z'), '2028-05-01 2028-05-01T09:00:00.000Z')
  t.is(next('1992-02-29', '2026-01-01T00:00:00Z'), '2026-02-28 2026-02-28T09:00:00.000Z')
  t.is(next('1992-02-29', '2028-01-01T00:00:00Z'), '2028-02-29 2028-02-29T09:00:00.000Z')
  const before = birthday({ offset: { amount: 3, unit: 'DAYS' }, direction: 'BEFORE' })
  t.is(next('1990-01-02', '2026-12-01T00:00:00Z', before), '2027-01-02 2026-12-30T09:00:00.000Z')
})

test('what daylight saving skips moves forward, what happens twice is the first', (t) => {
  const due = (value: string, time: string, zone: string) =>
    iso(nextDate(value, date({ at: time }), zone, at('2020-01-01T00:00:00Z'))?.due)
  t.is(due('2025-03-30', '02:30', 'Europe/Berlin'), '2025-03-30T01:30:00.000Z')
  t.is(due('2025-10-26', '02:30', 'Europe/Berlin'), '2025-10-26T00:30:00.000Z')
  const clock = (cron: string, zone: string, after: string) => iso(nextTime(cron, zone, at(after)))
  t.is(clock('30 2 * * *', 'Europe/Berlin', '2025-03-29T12:00:00Z'), '2025-03-30T01:30:00.000Z')
  t.is(clock('30 2 * * *', 'Europe/Berlin', '2025-03-30T01:30:00Z'), '2025-03-31T00:30:00.000Z')
  t.is(clock('30 2 * * *', 'Europe/Berlin', '2025-10-25T12:00:00Z'), '2025-10-26T00:30:00.000Z')
  t.is(clock('30 2 * * *', 'Europe/Berlin', '2025-10-26T00:30:00Z'), '2025-10-27T01:30:00.000Z')
  // A time that is moved forward may come after a later wall-clock time.
  t.is(clock('15,30 2,3 * * *', 'Europe/Berlin', '2025-03-30T00:00:00Z'), '2025-03-30T01:15:00.000Z')
  t.is(clock('15,30 2,3 * * *', 'Europe/Berlin', '2025-03-30T01:15:00Z'), '2025-03-30T01:30:00.000Z')
  t.is(clock('0 9 * * *', 'Pacific/Apia', '2011-12-29T18:59:00Z'), '2011-12-29T19:00:00.000Z')
  t.is(clock('0 9 * * *', 'Pacific/Apia', '2011-12-29T19:00:00Z'), '2011-12-30T19:00:00.000Z')
})

test('a schedule is five fields that come some time, and says what is wrong with it', (t) => {
  for (const cron of ['0 9 * * *', '*/15 8-18 * * MON-FRI', '0 0 29 2 *', '30 6 1,15 * *', '0 9 * * 7']) {
    t.is(cronFault(cron), null, cron)
  }
  const wrong = (cron: string, pattern: RegExp) => t.regex(cronFault(cron) ?? '', pattern, cron)
  wrong('0 9 * *', /4 fields; write five/)
  wrong('@daily', /1 fields/)
  wrong('0 0 9 * * *', /6 fields/)
  wrong('0 9 L * *', /"L" in it/)
  wrong('0 9 * * MON#2', /in it/)
  wrong('0 9 1 * MON', /days of the month and days of the week/)
  wrong('61 * * * *', /minute: 61/)
  wrong('0 9 * * FOO', /write for example/)
  wrong('0 0 30 2 *', /never comes/)
})

test('a trigger is looked at when it may be due, and no more often', (t) => {
  t.deepEqual(looksOf(birthday()), { cron: '0 9 * * *' })
  t.deepEqual(looksOf(date()), { everyMinutes: 5 })
  t.deepEqual(looksOf(date({ at: '09:00', offset: { amount: 2, unit: 'HOURS' } })), { everyMinutes: 5 })
  const silence = (amount: number, unit: 'HOURS' | 'DAYS') =>
    looksOf({ type: 'INACTIVITY', eventType: 'SEEN', inactiveFor: { amount, unit } })
  t.deepEqual([silence(30, 'DAYS'), silence(2, 'HOURS')], [{ everyMinutes: 15 }, { everyMinutes: 1 }])
  const next = (config: Parameters<typeof nextLook>[0]) =>
    iso(nextLook(config, 'UTC', at('2026-01-05T09:00:00Z')))
  t.is(next(birthday()), '2026-01-06T09:00:00.000Z')
  t.is(next(date()), '2026-01-05T09:05:00.000Z')
  t.is(next({ type: 'SCHEDULE', cron: '0 9 * * MON' }), '2026-01-12T09:00:00.000Z')
  t.is(next({ type: 'SCHEDULE', cron: '0 9 * * SAT-SUN' }), '2026-01-10T09:00:00.000Z')
})

test('a schedule that was missed is made up for once, by its last time of a day', (t) => {
  const daily = { type: 'SCHEDULE', cron: '0 9 * * *' } as const
  const stretch = (from: string, to: string) =>
    iso(dueStretch(daily, 'UTC', { from: at(from), to: at(to) })?.to)
  t.is(stretch('2026-01-05T09:00:00Z', '2026-01-06T08:59:59Z'), null)
  t.is(stretch('2026-01-05T09:00:00Z', '2026-01-06T09:00:00Z'), '2026-01-06T09:00:00.000Z')
  t.is(stretch('2026-01-01T09:00:00Z', '2026-01-06T11:00:00Z'), '2026-01-06T09:00:00.000Z')
  t.is(iso(lastTime('0 9 1 * *', 'UTC', { from: at('2026-01-02'), to: at('2026-01-31') })), null)
  const hourly = { type: 'SCHEDULE', cron: '0 * * * *' } as const
  const many = dueStretch(hourly, 'UTC', { from: at('2026-01-05T09:00:00Z'), to: at('2026-01-05T17:30:00Z') })
  t.is(iso(many?.to), '2026-01-05T17:00:00.000Z')
})

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Asia/Kathmandu',
]
const DAYS = [
  [
    '1992-02-29',
    '2024-02-29',
    '2025-03-30',
    '2025-10-26',
    '2025-03-09',
    '2025-11-02',
    '2025-04-06',
    '2025-10-05',
  ],
  [
    '2025-01-01',
    '2024-12-31',
    '2025-06-15',
    '2025-06-15T14:20',
    '2025-10-26T00:30:00Z',
    '2025-10-26T01:30:00Z',
  ],
  ['2025-03-30T02:30:00', '2025-12-31T23:30:00-10:00', '2011-12-30', 'soon'],
].flat()

test.serial(
  'the database finds exactly those whom the rule finds, in any zone and over any change of a clock',
  async (t) => {
    const people = new Map<string, string>()
    for (const day of DAYS) people.set(await tenant.subscribe(undefined, { day }), day)
    const config = fc.record({
      type: fc.constant('DATE_FIELD' as const),
      field: fc.constant('day'),
      direction: fc.constantFrom('BEFORE' as const, 'AFTER' as const),
      anniversary: fc.boolean(),
      at: fc.constantFrom(undefined, '00:00', '01:45', '02:30', '09:00'),
      offset: fc.constantFrom(
        undefined,
        { amount: 1, unit: 'DAYS' as const },
        { amount: 3, unit: 'WEEKS' as const },
        { amount: 90, unit: 'MINUTES' as const },
        { amount: 30, unit: 'HOURS' as const },
      ),
    })
    const stretches = fc.record({
      day: fc.constantFrom(
        '2025-03-29',
        '2025-10-25',
        '2024-02-28',
        '2025-02-27',
        '2025-12-31',
        '2025-04-05',
        '2025-11-01',
      ),
      minutes: fc.integer({ min: 0, max: 2_880 }),
      hours: fc.constantFrom(1, 24, 24 * 30),
    })
    let due = 0
    await fc.assert(
      fc.asyncProperty(
        config,
        fc.constantFrom(...ZONES),
        stretches,
        async (raw, timezone, { day, minutes, hours }) => {
          // The JSON round trip removes members that are undefined.
          const trigger = JSON.parse(JSON.stringify(raw)) as DateConfig
          const from = at(day) + minutes * 60_000
          const stretch = { from, to: from + hours * 3_600_000 }
          const expected = [...people].flatMap(([id, value]) => {
            const next = nextDate(value, trigger, timezone, stretch.from)
            return next && next.due <= stretch.to ? [`${id} ${next.occasion} ${iso(next.due)}`] : []
          })
          const found = await tenant.within((call) =>
            nextDue(call, madeUp(trigger, timezone), stretch, {
              reached: '00000000-0000-0000-0000-000000000000',
              createdAt: '2999-01-01',
              size: 100,
            }),
          )
          t.deepEqual(
            found.people.map(
              ({ id, occasion, dueAt }) => `${id} ${occasion} ${new Date(dueAt).toISOString()}`,
            ),
            expected.toSorted(),
          )
          due += expected.length
        },
      ),
      { numRuns: 300 },
    )
    t.true(due > 50)
  },
)

function madeUp(config: DateConfig, timezone: string): Timed {
  const definition = {
    steps: [step('start', 'TRIGGER', config)],
    edges: [],
    settings: { timezone, exitOnUnsubscribe: true, priority: 50 },
    successGoals: [],
    emails: {},
  }
  const version = { id: newId(), automationId: newId(), number: 1, definition, graph: indexGraph(definition) }
  return { version, stepId: 'start', config }
}

test.serial('a silence begins with the last event of the type, or with the person', async (t) => {
  const em = services.orm.em.fork()
  const other = await makeTenant(services)
  const inactiveFor = { amount: 30, unit: 'MINUTES' } as const
  const now = Date.now()
  const minutes = (count: number) => now - count * 60_000
  async function person(added: number, events: readonly [string, number][]): Promise<string> {
    const id = await other.subscribe()
    await execute(
      em,
      sql`update subscriber set created_at = to_timestamp(${minutes(added) / 1000}::float8) where id = ${id}`,
    )
    for (const [type, ago] of events) {
      await execute(
        em,
        sql`insert into subscriber_event (id, organization_id, subscriber_id, type, created_at)
          select id_floor(moment), ${other.id}, ${id}, ${type}, moment
          from (select to_timestamp(${minutes(ago) / 1000 + Math.random()}::float8) as moment) as given`,
      )
    }
    return id
  }
  const silent = await person(500, [
    ['SEEN', 200],
    ['SEEN', 35],
    ['OTHER', 5],
  ])
  await person(500, [
    ['SEEN', 35],
    ['SEEN', 20],
  ])
  await person(500, [['SEEN', 90]])
  await person(500, [['OTHER', 35]])
  const fresh = await person(35, [['OTHER', 20]])
  const config = { type: 'INACTIVITY', eventType: 'SEEN', inactiveFor } as const
  const found = await other.within((call) =>
    nextDue(
      call,
      { ...madeUp(date(), 'UTC'), config },
      { from: minutes(10), to: now },
      {
        reached: '00000000-0000-0000-0000-000000000000',
        createdAt: '2999-01-01',
        size: 100,
      },
    ),
  )
  t.deepEqual(
    found.people.map(({ id }) => id),
    [silent, fresh],
  )
})
