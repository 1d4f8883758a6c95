import test from 'ava'
import { sql } from 'kysely'

import type { Simulation } from '../schema/simulation.ts'
import { row } from '../src/database.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { edges, step } from './helpers/automation.ts'
import { publishWorkflow } from './helpers/workflow.ts'

let api: TestApi
let organization: TestOrganization

test.before(async () => {
  api = await startApi()
  organization = await api.organization()
  await organization.data('add_subscriber', { email: 'due@reader.example', fields: { due: '2027-01-15' } })
})
test.after.always(() => api?.close())

const START = step('start', 'TRIGGER', { type: 'MANUAL' })
const email = (id: string, subject = 'Hello {{name}}') =>
  step(id, 'EMAIL', { subject, content: 'Hello', transactional: false })

/** A send window that is open once a week. */
const HOURS = { days: ['TUE'], start: '09:00', end: '10:00' }

type Definition = { steps: unknown[]; edges: unknown[]; settings?: object; successGoals?: object[] }

async function simulated(
  definition: Definition,
  sample: object = {},
  from = '2027-01-04T09:00:00Z',
): Promise<Simulation> {
  return await organization.data('simulate_workflow', { definition, sample, from })
}

/** Returns a way as "step RESULT→port" per visit. */
function trail({ ways }: Simulation, number = 1): string[] {
  const way = ways[number - 1]
  return (way?.timeline ?? []).map(
    ({ stepId, result, port }) => `${stepId} ${result}${port === null ? '' : `→${port}`}`,
  )
}

test('walks what happens by itself, and from there what would happen elsewhere', async (t) => {
  const answer = await simulated(
    {
      steps: [
        START,
        email('welcome', "Welcome, {{name | 'friend'}} of {{plan}}"),
        step('days', 'WAIT', { amount: 3, unit: 'DAYS' }),
        step('fork', 'BRANCH', {
          paths: [
            {
              id: 'clicked',
              filters: [{ field: 'campaign', operator: 'clicked', value: { stepId: 'welcome' } }],
            },
            {
              id: 'got',
              filters: [{ field: 'campaign', operator: 'received', value: { stepId: 'welcome' } }],
            },
          ],
        }),
        step('tag', 'ADD_TAG', { tagNames: ['warm'] }),
        step('exit', 'EXIT', { reason: 'done' }),
      ],
      edges: edges(['start', 'welcome', 'days', 'fork'], ['fork', 'got', 'tag'], ['fork', 'else', 'exit']),
    },
    { name: 'Ann', customFields: { plan: 'pro' } },
  )
  t.deepEqual(trail(answer), [
    'start ENTERED→next',
    'welcome SENT→next',
    'days ELAPSED→next',
    'fork DECIDED→got',
    'tag DONE→next',
  ])
  const [likely, clicked, other] = answer.ways
  t.like(likely?.timeline[1]?.email, {
    subject: 'Welcome, Ann of pro',
    from: `hello@${organization.domain}`,
  })
  t.is(likely?.timeline[2]?.until, '2027-01-07T09:00:00.000Z')
  t.like(likely?.end, { status: 'COMPLETED', exitReason: 'END', at: '2027-01-07T09:00:00.000Z' })
  t.deepEqual(clicked?.branchOf, { way: 1, visit: 3 })
  t.is(clicked?.timeline[0]?.assumed, 'The path clicked takes them.')
  t.like(other?.end, { status: 'COMPLETED', exitReason: 'EXIT_STEP' })
  t.deepEqual(
    answer.deadEnds.map(({ stepId, port, code }) => [stepId, port, code]),
    [['fork', 'clicked', 'NOT_CONNECTED']],
  )
})

test('what a way changes is seen by the filters after it, at the time that it has come to', async (t) => {
  const ask = (id: string, filters: object[]) =>
    step(id, 'BRANCH', { paths: [{ id: 'yes', filters } as never] })
  const answer = await simulated(
    {
      steps: [
        START,
        step('tag', 'ADD_TAG', { tagNames: ['Warm'] }),
        step('set', 'UPDATE_FIELD', { set: { level: 'gold' }, increment: { points: 3 } }),
        step('paid', 'CREATE_EVENT', { eventType: 'SUBSCRIBER_PAYMENT', amount: 20 }),
        email('mail'),
        step('weeks', 'WAIT', { amount: 6, unit: 'WEEKS' }),
        ask('tagged', [{ field: 'tags', operator: 'has_all', value: ['warm'] }]),
        ask('spent', [{ field: 'revenue', operator: 'gte', value: 20 }]),
        ask('long', [
          { field: 'createdAt', operator: 'more_than_ago', value: { amount: 1, unit: 'MONTHS' } },
        ]),
        ask('lately', [
          {
            field: 'event',
            operator: 'performed',
            event: 'SUBSCRIBER_PAYMENT',
            within: { amount: 30, unit: 'DAYS' },
          },
        ]),
        ask('mailed', [{ field: 'emailCount', operator: 'equals', value: 1 }]),
        ask('ever', [{ field: 'event', operator: 'performed', event: 'SUBSCRIBER_PAYMENT' }]),
        ask('started', [{ field: 'entry.source', operator: 'equals', value: 'ad' }]),
      ],
      edges: edges(
        ['start', 'tag', 'set', 'paid', 'mail', 'weeks', 'tagged'],
        ['tagged', 'yes', 'spent'],
        ['spent', 'yes', 'long'],
        ['long', 'yes', 'lately'],
        ['lately', 'else', 'mailed'],
        ['mailed', 'yes', 'ever'],
        ['ever', 'yes', 'started'],
      ),
    },
    { entry: { source: 'ad' } },
  )
  t.deepEqual(trail(answer).slice(6), [
    'tagged DECIDED→yes',
    'spent DECIDED→yes',
    'long DECIDED→yes',
    'lately DECIDED→else',
    'mailed DECIDED→yes',
    'ever DECIDED→yes',
    'started DECIDED→yes',
  ])
})

test('a field that one way creates does not exist in another', async (t) => {
  const answer = await simulated({
    steps: [
      START,
      step('fork', 'BRANCH', {
        paths: [{ id: 'yes', filters: [{ field: 'tags', operator: 'has_any', value: ['warm'] }] }],
      }),
      step('text', 'UPDATE_FIELD', { set: { fresh: 'words' } }),
      step('sum', 'UPDATE_FIELD', { increment: { fresh: 1 } }),
    ],
    edges: edges(['start', 'fork'], ['fork', 'yes', 'sum'], ['fork', 'else', 'text']),
  })
  t.deepEqual(
    answer.ways.map(({ timeline }) => timeline.at(-1)?.result),
    ['DONE', 'DONE'],
  )
})

test('dates follow the calendar of their zone across both changes of daylight saving time', async (t) => {
  const daily = (timezone: string) => ({
    steps: [
      START,
      step('morning', 'WAIT', { amount: 1, unit: 'DAYS', at: '09:00' }),
      step('exact', 'WAIT', { amount: 1, unit: 'DAYS' }),
    ],
    edges: edges(['start', 'morning', 'exact']),
    settings: { timezone },
  })
  const locals = async (timezone: string, from: string) =>
    (await simulated(daily(timezone), {}, from)).ways[0]?.timeline.flatMap(
      ({ localUntil }) => localUntil ?? [],
    )
  t.deepEqual(await locals('Europe/Paris', '2027-03-27T10:00:00Z'), [
    '2027-03-28T09:00:00+02:00',
    '2027-03-29T09:00:00+02:00',
  ])
  t.deepEqual(await locals('Europe/Paris', '2027-10-29T22:30:00Z'), [
    '2027-10-31T09:00:00+01:00',
    '2027-11-01T09:00:00+01:00',
  ])
  t.deepEqual(await locals('America/New_York', '2027-03-12T20:00:00Z'), [
    '2027-03-13T09:00:00-05:00',
    '2027-03-14T10:00:00-04:00',
  ])
  t.deepEqual(await locals('America/New_York', '2027-11-05T20:00:00Z'), [
    '2027-11-06T09:00:00-04:00',
    '2027-11-07T08:00:00-05:00',
  ])
})

test('says who is skipped and why, when email goes out, and what ends a run', async (t) => {
  const settings = {
    timezone: 'Europe/Paris',
    sendWindow: { days: ['MON'], start: '09:00', end: '10:00' },
    exitRules: [
      { id: 'bought', on: 'BOUGHT', where: [{ path: 'metadata.plan', operator: 'equals', value: 'pro' }] },
    ],
  }
  const graph = (plan: string) => ({
    steps: [
      START,
      email('mail'),
      step(
        'vip',
        'NOTIFY',
        { to: 'a@b.example', subject: 'x', markdown: 'x' },
        {
          conditions: [{ field: 'country', operator: 'equals', value: 'FR' }],
        },
      ),
      step('buy', 'CREATE_EVENT', { eventType: 'BOUGHT', metadata: { plan } }),
      step('bye', 'SUBSCRIPTION', { action: 'UNSUBSCRIBE' }),
      email('never'),
    ],
    edges: edges(['start', 'mail', 'vip', 'buy', 'bye', 'never']),
    settings,
  })
  const ruled = await simulated(graph('pro'), {}, '2027-01-05T12:00:00Z')
  t.deepEqual(trail(ruled), ['start ENTERED→next', 'mail SENT→next', 'vip SKIPPED→next', 'buy DONE→next'])
  t.is(ruled.ways[0]?.timeline[1]?.localUntil, '2027-01-11T09:00:00+01:00')
  t.is(ruled.ways[0]?.timeline[2]?.reason, 'CONDITIONS')
  t.like(ruled.ways[0]?.end, { status: 'CANCELED', exitReason: 'EXIT_RULE' })
  const left = await simulated(graph('free'), { status: 'COMPLAINED' })
  t.like(left.ways[0]?.timeline[1], { result: 'SKIPPED', reason: 'COMPLAINED' })
  t.deepEqual(trail(left).at(-1), 'bye DONE→next')
  const gone = await simulated(graph('free'), { country: 'FR' })
  t.deepEqual(trail(gone).slice(2), ['vip DONE→next', 'buy DONE→next', 'bye DONE→next'])
  t.like(gone.ways[0]?.end, { status: 'CANCELED', exitReason: 'UNSUBSCRIBED' })
})

test('waits for events and conditions are walked both ways; time alone can fulfil a condition', async (t) => {
  const answer = await simulated({
    steps: [
      START,
      step('age', 'WAIT_UNTIL', {
        mode: 'CONDITION',
        filters: [{ field: 'createdAt', operator: 'more_than_ago', value: { amount: 10, unit: 'DAYS' } }],
        onTimeout: 'CONTINUE',
      }),
      step('click', 'WAIT_UNTIL', {
        mode: 'EVENT',
        eventType: 'EMAIL_CLICKED',
        scope: 'STEP',
        timeout: { amount: 2, unit: 'DAYS' },
        onTimeout: 'CONTINUE',
      }),
      step('ever', 'WAIT_UNTIL', {
        mode: 'EVENT',
        eventType: 'BOUGHT',
        scope: 'STEP',
        onTimeout: 'CONTINUE',
      }),
      email('thanks'),
      email('pity'),
    ],
    edges: edges(['start', 'age', 'click', 'ever', 'thanks'], ['click', 'timeout', 'pity']),
  })
  const [likely, clicked, bought] = answer.ways
  t.deepEqual(trail(answer), [
    'start ENTERED→next',
    'age CONDITION→next',
    'click TIMEOUT→timeout',
    'pity SENT→next',
  ])
  t.is(likely?.timeline[1]?.until, '2027-01-14T09:15:00.000Z')
  t.is(clicked?.timeline[0]?.assumed, 'The event EMAIL_CLICKED comes as soon as they wait for it.')
  t.is(clicked?.end.status, 'WAITS_FOREVER')
  t.deepEqual(
    bought?.timeline.map(({ stepId }) => stepId),
    ['ever', 'thanks'],
  )
  t.deepEqual(
    answer.deadEnds.map(({ stepId, code }) => [stepId, code]),
    [['ever', 'WAITS_FOREVER']],
  )
})

test('jumps, shares, throttles and requests show every port once', async (t) => {
  const answer = await simulated({
    steps: [
      START,
      step('ask', 'WAIT', { amount: 1, unit: 'HOURS' }),
      step('again', 'JUMP', { toStepId: 'ask', maxTimes: 2 }),
      step('share', 'SPLIT', {
        variants: [
          { id: 'a', weight: 3 },
          { id: 'b', weight: 1 },
          { id: 'none', weight: 0 },
        ],
        sticky: true,
      }),
      step('slow', 'THROTTLE', { limit: 1, per: { amount: 1, unit: 'DAYS' }, overflow: 'SKIP' }),
      step('call', 'WEBHOOK', { url: 'https://example.com', method: 'POST', timeoutSeconds: 10, retries: 3 }),
      step('end', 'EXIT', {}),
    ],
    edges: edges(
      ['start', 'ask', 'again', 'share'],
      ['share', 'a', 'slow'],
      ['share', 'b', 'end'],
      ['share', 'none', 'end'],
      ['slow', 'next', 'call'],
      ['slow', 'skipped', 'end'],
    ),
  })
  t.deepEqual(trail(answer), [
    'start ENTERED→next',
    'ask ELAPSED→next',
    'again JUMPED→jump',
    'ask ELAPSED→next',
    'again JUMPED→jump',
    'ask ELAPSED→next',
    'again EXHAUSTED→next',
    'share DECIDED→a',
    'slow PASSED→next',
    'call DONE→next',
  ])
  t.is(answer.ways[0]?.timeline[7]?.chance, 0.75)
  const ends = answer.ways.map((way) => [way.timeline[0]?.stepId, way.end.status, way.end.exitReason])
  t.true(ends.some(([stepId, status]) => stepId === 'call' && status === 'FAILED'))
  t.is(new Set(answer.ways.map((way) => JSON.stringify(way.timeline[0]))).size, answer.ways.length)
})

test('a way begins with what its trigger implies, and the entry says what of that is not so now', async (t) => {
  const ask = (id: string, ...filters: object[]) =>
    step(id, 'BRANCH', { paths: [{ id: 'yes', filters } as never] })
  const begun = async (config: object, filters: object[], sample: object = {}) => {
    const { entries, ways } = await simulated(
      {
        steps: [step('start', 'TRIGGER', { filters, ...config } as never), ask('ask', ...filters)],
        edges: edges(['start', 'ask']),
      },
      sample,
    )
    const [entry] = entries
    return [entry?.enters, ways[0]?.timeline[1]?.port, entry?.assumed]
  }
  const has = (operator: string, ...value: string[]) => ({ field: 'tags', operator, value })
  const added = { type: 'TAG_ADDED', tagNames: ['Trial', 'Beta'] }
  t.deepEqual(await begun(added, [has('has_any', 'trial'), has('has_none', 'beta')]), [
    true,
    'yes',
    'They have got the tag Trial, which they do not have now.',
  ])
  // One of the two tags is enough.
  t.deepEqual(await begun(added, [has('has_none', 'trial')], { tags: ['beta'] }), [true, 'yes', null])
  const named = { field: 'entry.tag', operator: 'equals', value: 'Trial' }
  const told = { field: 'event', operator: 'performed', event: 'TAG_ADDED' }
  t.deepEqual((await begun(added, [named, told])).slice(0, 2), [true, 'yes'])
  t.deepEqual(
    await begun({ type: 'TAG_REMOVED', tagNames: ['trial'] }, [has('has_none', 'trial')], {
      tags: ['trial'],
    }),
    [true, 'yes', 'They have lost the tag trial, which they have now.'],
  )
  const status = (value: string) => ({ field: 'status', operator: 'equals', value })
  t.deepEqual(await begun({ type: 'UNSUBSCRIBED' }, [status('UNSUBSCRIBED')]), [
    true,
    'yes',
    'They are UNSUBSCRIBED by then; now they are SUBSCRIBED.',
  ])
  t.deepEqual(
    await begun({ type: 'SUBSCRIBED' }, [status('SUBSCRIBED')], { status: 'PENDING_CONFIRMATION' }),
    [true, 'yes', 'They are SUBSCRIBED by then; now they are PENDING_CONFIRMATION.'],
  )
  const became = (field: string, to: unknown) => ({ type: 'FIELD_UPDATED', field, to })
  const gold = { field: 'customFields.due', operator: 'equals', value: '2027-05-01' }
  t.deepEqual(await begun(became('due', '2027-05-01'), [gold]), [
    true,
    'yes',
    'Their field due has become "2027-05-01".',
  ])
  const gone = { field: 'customFields.due', operator: 'is_not_set' }
  t.deepEqual(await begun(became('due', null), [gone], { customFields: { due: '2027-05-01' } }), [
    true,
    'yes',
    'Their field due has been cleared.',
  ])
  const french = { field: 'country', operator: 'equals', value: 'FR' }
  t.deepEqual(await begun(became('country', 'FR'), [french]), [
    true,
    'yes',
    'Their field country has become "FR".',
  ])
  t.deepEqual(await begun(became('country', 'FR'), [french], { country: 'FR' }), [true, 'yes', null])
  const paid = [
    {
      field: 'event',
      operator: 'performed',
      event: 'SUBSCRIBER_PAYMENT',
      where: [{ path: 'amount', operator: 'gte', value: 20 }],
    },
    { field: 'revenue', operator: 'equals', value: 25 },
  ]
  const payment = { type: 'EVENT', eventType: 'SUBSCRIBER_PAYMENT' }
  t.deepEqual(await begun(payment, paid, { entry: { amount: 25 } }), [true, 'yes', null])
  t.deepEqual(await begun({ type: 'MANUAL' }, [has('has_any', 'trial')]), [false, 'else', null])
})

test('a way that begins by a time has the data of such a run, and who has no key does not enter', async (t) => {
  const equals = (path: string, value: string) => ({ field: `entry.${path}`, operator: 'equals', value })
  const begun = async (config: object, filters: object[], keyPath: string, entry = {}) => {
    const { entries, ways } = await simulated(
      {
        steps: [
          step('start', 'TRIGGER', config as never),
          step('ask', 'BRANCH', { paths: [{ id: 'yes', filters } as never] }),
        ],
        edges: edges(['start', 'ask']),
        settings: { reEntry: { mode: 'PER_KEY', keyPath } },
      },
      { customFields: { due: '2027-01-15' }, entry },
    )
    return [entries[0]?.enters, entries[0]?.reason, ways[0]?.timeline[1]?.port]
  }
  const now = equals('dueAt', '2027-01-04T09:00:00.000Z')
  const date = { type: 'DATE_FIELD', field: 'due', direction: 'AFTER', anniversary: false }
  t.deepEqual(await begun(date, [equals('field', 'due'), equals('date', '2027-01-15'), now], 'date'), [
    true,
    null,
    'yes',
  ])
  t.deepEqual(await begun({ type: 'SCHEDULE', cron: '0 9 * * *' }, [now], 'dueAt'), [true, null, 'yes'])
  const silence = { type: 'INACTIVITY', eventType: 'BOUGHT', inactiveFor: { amount: 3, unit: 'DAYS' } }
  const since = equals('inactiveSince', '2027-01-01T09:00:00.000Z')
  t.deepEqual(await begun(silence, [since, equals('eventType', 'BOUGHT')], 'inactiveSince'), [
    true,
    null,
    'yes',
  ])
  const manual = { type: 'MANUAL' }
  t.deepEqual(await begun(manual, [equals('order', 'A')], 'order'), [false, 'NO_KEY', 'else'])
  t.deepEqual(await begun(manual, [equals('order', 'A')], 'order', { order: 'A' }), [true, null, 'yes'])
})

test('who is in a segment is what its filters say: the entry tells that they are not yet', async (t) => {
  const { segment } = await organization.data('create_segment', {
    name: 'French',
    filters: [{ field: 'country', operator: 'equals', value: 'FR' }],
  })
  const assumed = async (type: string, sample: object) => {
    const steps = [step('start', 'TRIGGER', { type, segmentId: segment.id } as never)]
    return (await simulated({ steps, edges: [] }, sample)).entries[0]?.assumed
  }
  t.is(await assumed('SEGMENT_ENTERED', { country: 'FR' }), null)
  t.regex((await assumed('SEGMENT_ENTERED', {})) ?? '', /now, which is outside of it/)
  t.is(await assumed('SEGMENT_EXITED', {}), null)
  t.regex((await assumed('SEGMENT_EXITED', { country: 'FR' })) ?? '', /now, which is inside of it/)
})

test('what a run begins with is not what it waits for, nor what ends it', async (t) => {
  const eventType = 'ORDERED'
  const until = step('again', 'WAIT_UNTIL', {
    mode: 'EVENT',
    eventType,
    scope: 'RUN',
    timeout: { amount: 1, unit: 'DAYS' },
    onTimeout: 'CONTINUE',
  })
  const graph = {
    steps: [step('start', 'TRIGGER', { type: 'EVENT', eventType }), until],
    edges: edges(['start', 'again']),
    successGoals: [{ id: 'again', name: 'Again', event: eventType }],
    settings: { exitRules: [{ id: 'again', on: eventType }] },
  }
  const answer = await simulated(graph)
  t.deepEqual(trail(answer), ['start ENTERED→next', 'again TIMEOUT→timeout'])
  t.is(answer.ways[0]?.end.exitReason, 'END')
})

test('a sum that is no number any more is refused as the engine refuses it, and onError says what follows', async (t) => {
  const add = (onError: 'CONTINUE' | 'EXIT' | 'FAIL') =>
    simulated(
      {
        steps: [
          START,
          step('add', 'UPDATE_FIELD', { increment: { sum: 1.7e308 } }, { onError }),
          step('tag', 'ADD_TAG', { tagNames: ['added'] }),
        ],
        edges: edges(['start', 'add', 'tag']),
      },
      { customFields: { sum: 1.7e308 } },
    )
  t.deepEqual(trail(await add('CONTINUE')), ['start ENTERED→next', 'add FAILED→next', 'tag DONE→next'])
  t.like((await add('EXIT')).ways[0]?.end, { status: 'COMPLETED', exitReason: 'ERROR' })
  t.like((await add('FAIL')).ways[0]?.end, { status: 'FAILED', exitReason: 'ERROR' })
})

test('a real person in a real workflow: their fields and tags, re-entry, and nothing is written', async (t) => {
  // Other tests write at the same time.
  const own = await api.organization()
  const person = await own.data('add_subscriber', {
    email: 'real@reader.example',
    name: 'Rea',
    tags: ['known'],
    fields: { born: '1990-03-28' },
  })
  const subscriberId = person.subscriber?.id ?? person.id
  const { workflow } = await own.data('create_workflow', { name: 'Simulated' })
  const saved = await own.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    settings: { timezone: 'Europe/Paris' },
    steps: [
      step('tagged', 'TRIGGER', {
        type: 'TAG_ADDED',
        tagNames: ['other'],
        filters: [{ field: 'tags', operator: 'has_none', value: ['known'] }],
      }),
      START,
      step('birthday', 'WAIT_UNTIL', {
        mode: 'FIELD_DATE',
        field: 'born',
        direction: 'AFTER',
        anniversary: true,
        ifMissing: 'CONTINUE',
        ifPast: 'CONTINUE',
        onTimeout: 'CONTINUE',
      }),
      email('wish', 'Happy birthday, {{name}}'),
    ],
    edges: edges(['tagged', 'birthday', 'wish'], ['start', 'next', 'birthday']),
  })
  const counts = () =>
    row(
      api.services.orm.em.fork(),
      sql`select count(*) as all from (
          select organization_id from automation_run union all select organization_id from message
          union all select organization_id from decision union all select organization_id from subscriber_event
          union all select organization_id from tag union all select organization_id from outbox) written
        where organization_id = ${own.id}`,
    )
  const before = await counts()
  const answer: Simulation = await own.data('simulate_workflow', {
    workflowId: workflow.id,
    subscriberId,
    from: '2027-02-01',
  })
  t.deepEqual(await counts(), before)
  t.is(answer.timezone, 'Europe/Paris')
  t.deepEqual(
    answer.entries.map(({ stepId, enters, reason }) => [stepId, enters, reason]),
    [
      ['tagged', false, 'FILTERS'],
      ['start', true, null],
    ],
  )
  t.is(answer.ways[0]?.timeline[0]?.stepId, 'start')
  t.is(answer.ways[0]?.timeline[1]?.localUntil, '2027-03-28T00:00:00+01:00')
  t.is(answer.ways[0]?.timeline[2]?.email?.subject, 'Happy birthday, Rea')
  t.is(answer.ways[1]?.timeline[0]?.stepId, 'tagged')
  t.is(saved.workflow.status, 'DRAFT')
  const stranger = await api.organization()
  t.is((await stranger.call('simulate_workflow', { workflowId: workflow.id, sample: {} })).status, 404)
  t.is(
    (await stranger.call('simulate_workflow', { definition: { steps: [START], edges: [] }, subscriberId }))
      .status,
    404,
  )
})

// Runs before the other tests, one of which counts written rows.
test.serial(
  're-entry is asked for the moment of entry, and triggers by time take subscribed people only',
  async (t) => {
    const email = 'again@reader.example'
    const { subscriber } = await organization.data('add_subscriber', { email, fields: { due: '2027-03-01' } })
    const trigger = step('due', 'TRIGGER', {
      type: 'DATE_FIELD',
      field: 'due',
      direction: 'AFTER',
      anniversary: true,
    })
    const settings = { reEntry: { mode: 'EVERY_TIME', cooldown: { amount: 30, unit: 'DAYS' } } }
    const steps = [trigger, START, step('days', 'WAIT', { amount: 1, unit: 'DAYS' })]
    const workflowId = await publishWorkflow(organization, steps, {
      settings,
      edges: edges(['due', 'days'], ['start', 'next', 'days']),
    })
    await organization.data('add_subscriber_to_workflow', { workflowId, email })
    const reasons = async (input: object) => {
      const answer: Simulation = await organization.data('simulate_workflow', { workflowId, ...input })
      return answer.entries.map(({ reason }) => reason)
    }
    const person = { subscriberId: subscriber.id }
    const later = (days: number) => ({ from: new Date(Date.now() + days * 86_400_000).toISOString() })
    t.deepEqual(await reasons({ ...person, ...later(29) }), ['COOLDOWN', 'COOLDOWN'])
    t.deepEqual(await reasons({ ...person, ...later(31) }), [null, null])
    t.deepEqual(await reasons({ sample: { status: 'UNSUBSCRIBED' } }), ['NOT_SUBSCRIBED', null])
  },
)

test('goals end a way at its start, by a change or with an email; what was reached stays reached', async (t) => {
  const tagged = (name: string) => [{ field: 'tags', operator: 'has_any', value: [name] }]
  const goal = (id: string, means: object, more: object = {}) => ({ id, name: id, ...means, ...more })
  const add = (name: string) => step(`add-${name}`, 'ADD_TAG', { tagNames: [name] })
  const walk = async (steps: { id: string }[], successGoals: object[], sample: object = {}) => {
    const graph = { steps: [START, ...steps], edges: edges(['start', ...steps.map(({ id }) => id)]) }
    const answer = await simulated({ ...graph, successGoals }, sample)
    return [...trail(answer), answer.ways[0]?.end.exitReason]
  }
  const vip = goal('vip', { filters: tagged('vip') })
  t.deepEqual(await walk([add('vip')], [vip], { tags: ['vip'] }), ['GOAL'])
  t.deepEqual(await walk([add('vip'), add('more')], [vip]), [
    'start ENTERED→next',
    'add-vip DONE→next',
    'GOAL',
  ])
  const mailed = goal(
    'mailed',
    { filters: [{ field: 'emailCount', operator: 'gte', value: 1 }] },
    { countFrom: 'FIRST_EMAIL' },
  )
  t.deepEqual(await walk([email('mail'), add('more')], [mailed]), ['start ENTERED→next', 'mail SENT', 'GOAL'])
  const stays = { exitOnReach: false }
  const taken = step('less', 'REMOVE_TAG', { tagNames: ['vip'] })
  const asks = step('asks', 'GOAL', { goalId: 'vip', ifUnmet: 'EXIT' })
  t.deepEqual(await walk([add('vip'), taken, asks], [{ ...vip, ...stays }]), [
    'start ENTERED→next',
    'add-vip DONE→next',
    'less DONE→next',
    'asks REACHED→next',
    'END',
  ])
  // Events before the first email do not count in a window that begins with it.
  const early = goal('early', { event: 'BOUGHT' }, { countFrom: 'FIRST_EMAIL' })
  const bought = step('buy', 'CREATE_EVENT', { eventType: 'BOUGHT' })
  t.is((await walk([bought, email('mail')], [early])).at(-1), 'END')
  t.is((await walk([email('mail'), bought, add('more')], [early])).at(-2), 'buy DONE→next')
})

test('a goal that counts from the first email counts from the split for who goes without', async (t) => {
  const walk = async (holdout: object, means: object, sample: object = {}) => {
    const variants = [
      { id: 'without', weight: 2 },
      { id: 'with', weight: 1 },
    ]
    const steps = [
      START,
      step('bought', 'CREATE_EVENT', { eventType: 'BOUGHT' }),
      step('share', 'SPLIT', { variants, sticky: true, ...holdout }),
      step('buy', 'CREATE_EVENT', { eventType: 'BOUGHT' }),
      email('mail'),
    ]
    const links = edges(['start', 'bought', 'share'], ['share', 'without', 'buy'], ['share', 'with', 'mail'])
    const goal = { id: 'goal', name: 'goal', countFrom: 'FIRST_EMAIL', ...means }
    const answer = await simulated({ steps, edges: links, successGoals: [goal] }, sample)
    return [...trail(answer).slice(2), answer.ways[0]?.end.exitReason]
  }
  const holdout = { holdoutVariantId: 'without' }
  const bought = { event: 'BOUGHT' }
  t.deepEqual(await walk({}, bought), ['share DECIDED→without', 'buy DONE→next', 'END'])
  t.deepEqual(await walk(holdout, bought), ['share DECIDED→without', 'buy DONE→next', 'GOAL'])
  // As in the engine, filters that already match reach the goal as soon as the window opens.
  const vip = { filters: [{ field: 'tags', operator: 'has_any', value: ['vip'] }] }
  t.deepEqual(await walk({}, vip, { tags: ['vip'] }), ['share DECIDED→without', 'buy DONE→next', 'END'])
  t.deepEqual(await walk(holdout, vip, { tags: ['vip'] }), ['share DECIDED', 'GOAL'])
})

test('what time makes true ends a wait as it does in the engine, at the next quarter of an hour', async (t) => {
  const within = (amount: number, unit: string) => [
    { field: 'customFields.due', operator: 'within_next', value: { amount, unit } },
  ]
  const goal = (more: object = {}) => ({ id: 'near', name: 'near', filters: within(2, 'HOURS'), ...more })
  const sample = { customFields: { due: '2027-01-15T12:20:00Z' } }
  const walk = async (waits: { id: string }[], successGoals: object[]) => {
    const steps = [START, ...waits, email('after')]
    const chain = edges(steps.map(({ id }) => id))
    const { ways } = await simulated({ steps, edges: chain, successGoals }, sample)
    const timeline = ways[0]?.timeline.slice(1) ?? []
    return [
      ...timeline.map(({ stepId, result, until }) => [stepId, result, until?.slice(5, 16)]),
      ways[0]?.end.exitReason,
    ]
  }
  const near = '01-15T10:30'
  const open = { onTimeout: 'CONTINUE' } as const
  const waits = [
    step('wait', 'WAIT', { amount: 30, unit: 'DAYS' }),
    step('wait', 'WAIT_UNTIL', { mode: 'EVENT', eventType: 'NEVER', scope: 'STEP', ...open }),
    step('wait', 'GOAL', { goalId: 'near', ifUnmet: 'WAIT' }),
  ]
  // Both ways are shown: the wait ends when the window closes, and when the goal is reached.
  const far = { ...goal(), filters: [{ field: 'country', operator: 'equals', value: 'XX' }] }
  const graph = { steps: [START, waits[2]], edges: edges(['start', 'wait']), successGoals: [far] }
  const ends = (await simulated(graph, sample)).ways.map(({ end }) => end)
  t.deepEqual(
    ends.map(({ exitReason }) => exitReason),
    ['EXPIRED', 'GOAL'],
  )
  t.regex(ends[0]?.message ?? '', /the window of a goal is over/)
  t.regex(ends[1]?.message ?? '', /^A goal is reached/)
  for (const wait of waits) t.deepEqual(await walk([wait], [goal()]), [['wait', 'CANCELED', near], 'GOAL'])
  const mail = { ...email('mail'), config: { subject: 'x', content: 'x', sendWindow: HOURS } }
  const week = step('week', 'WAIT', { amount: 8, unit: 'DAYS' })
  t.deepEqual((await walk([week, mail], [goal()])).slice(1), [['mail', 'CANCELED', near], 'GOAL'])
  // Even two hours per year are found. A goal that does not end the run stays reached afterwards.
  const condition = step('wait', 'WAIT_UNTIL', {
    mode: 'CONDITION',
    filters: within(2, 'HOURS') as never,
    ...open,
  })
  t.deepEqual((await walk([condition], []))[0], ['wait', 'CONDITION', near])
  const stays = goal({ exitOnReach: false })
  const asks = step('asks', 'GOAL', { goalId: 'near', ifUnmet: 'EXIT' })
  t.deepEqual((await walk([step('wait', 'WAIT', { amount: 30, unit: 'DAYS' }), asks], [stays])).slice(0, 2), [
    ['wait', 'ELAPSED', '02-03T09:00'],
    ['asks', 'REACHED', undefined],
  ])
  t.deepEqual((await walk([step('asks', 'GOAL', { goalId: 'near', ifUnmet: 'WAIT' })], [stays]))[0], [
    'asks',
    'REACHED',
    near,
  ])
  // Nothing is reached after the window, and a wait that ends earlier is not changed.
  const short = goal({ windowDays: 11 })
  t.is((await walk([step('wait', 'WAIT', { amount: 30, unit: 'DAYS' })], [short])).at(-1), 'END')
  t.is((await walk([step('wait', 'WAIT', { amount: 11, unit: 'DAYS' })], [goal()])).at(-1), 'END')
})

test('goals and exit rules answer to what email, tags and requests make happen, with the data of the engine', async (t) => {
  const walk = async (steps: { id: string }[], means: { rule?: object; goal?: object }) => {
    const graph = { steps: [START, ...steps], edges: edges(['start', ...steps.map(({ id }) => id)]) }
    const { rule, goal } = means
    const answer = await simulated({
      ...graph,
      ...(rule && { settings: { exitRules: [{ id: 'rule', ...rule }] } }),
      ...(goal && { successGoals: [{ id: 'goal', name: 'goal', ...goal }] }),
    })
    const { status, exitReason } = answer.ways[0]?.end ?? {}
    return [...trail(answer).slice(1), `${status} ${exitReason}`]
  }
  const tag = step('tag', 'ADD_TAG', { tagNames: ['vip'] })
  const vip = { filters: [{ field: 'tags', operator: 'has_any', value: ['vip'] }] }
  const at = (path: string, value: string | boolean) => [{ path, operator: 'equals', value }]
  const sent = { on: 'EMAIL_SENT' }
  t.deepEqual(await walk([email('mail'), tag], { rule: sent }), ['mail SENT', 'CANCELED EXIT_RULE'])
  t.deepEqual(await walk([email('mail'), tag], { goal: { event: 'EMAIL_SENT' } }), [
    'mail SENT',
    'COMPLETED GOAL',
  ])
  for (const where of [at('stepId', 'mail'), at('subject', 'Hello there')]) {
    const rule = { ...sent, where }
    t.deepEqual((await walk([email('mail', 'Hello there'), tag], { rule })).at(-1), 'CANCELED EXIT_RULE')
    t.is((await walk([email('other', 'Hello here'), tag], { rule })).at(-1), 'COMPLETED END')
  }
  // An exit rule comes before a goal by filters, and after a goal by the same event.
  const tagged = { on: 'TAG_ADDED', where: at('tag', 'vip') }
  t.deepEqual(await walk([tag], { rule: tagged, goal: vip }), ['tag DONE→next', 'CANCELED EXIT_RULE'])
  t.deepEqual(await walk([tag], { rule: tagged, goal: { event: 'TAG_ADDED' } }), [
    'tag DONE→next',
    'COMPLETED GOAL',
  ])
  // The event has the stored name of the tag, not the spelling in the step.
  await organization.data('create_tag', { name: 'Member' })
  const spelled = step('tag', 'ADD_TAG', { tagNames: ['MEMBER'] })
  for (const [name, end] of [
    ['Member', 'CANCELED EXIT_RULE'],
    ['MEMBER', 'COMPLETED END'],
  ] as const) {
    t.is((await walk([spelled], { rule: { on: 'TAG_ADDED', where: at('tag', name) } })).at(-1), end)
  }
  const call = step('call', 'WEBHOOK', {
    url: 'https://example.com',
    method: 'PUT',
    timeoutSeconds: 10,
    retries: 0,
  })
  const asked = { on: 'WEBHOOK_EXECUTED', where: at('method', 'PUT') }
  t.deepEqual(await walk([call], { rule: asked }), ['call DONE', 'CANCELED EXIT_RULE'])
  t.deepEqual(await walk([call], { rule: { ...asked, where: at('succeeded', false) } }), [
    'call DONE→next',
    'COMPLETED END',
  ])
})

test('refuses what it cannot simulate, each fault with its place', async (t) => {
  const refused = async (input: object) => {
    const answer = await organization.call('simulate_workflow', input)
    return [answer.status, answer.body.details?.map(({ path }: { path: string }) => path)]
  }
  const definition = { steps: [START], edges: [] }
  t.deepEqual(await refused({ sample: {} }), [400, ['workflowId']])
  t.deepEqual(await refused({ definition, workflowId: 'wf_x', sample: {} }), [400, ['workflowId']])
  t.deepEqual(await refused({ definition }), [400, ['subscriberId']])
  t.deepEqual(await refused({ definition, sample: {}, from: 'soon' }), [400, ['from']])
  t.deepEqual(await refused({ definition, sample: { timezone: 'Mars' } }), [400, ['sample.timezone']])
  t.deepEqual(
    await refused({
      definition: { steps: [], edges: [{ from: 'a', to: 'b' }], settings: { timezone: 'X' } },
      sample: {},
    }),
    [
      400,
      [
        'definition.edges[0].from',
        'definition.edges[0].to',
        'definition.steps',
        'definition.settings.timezone',
      ],
    ],
  )
})
