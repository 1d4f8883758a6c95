import test from 'ava'
import fc from 'fast-check'

import type { Definition, Step } from '../schema/automation.ts'
import { filtersOf, tagNamesOf } from '../src/domain/audience/check.ts'
import { readDefinition, readSettings } from '../src/domain/automations/definition/validate.ts'
import { readGoals } from '../src/domain/automations/goals/goal-faults.ts'
import { dateDue, waitDue } from '../src/domain/automations/runs/schedule.ts'
import {
  entrySteps,
  indexGraph,
  manualEntry,
  nextStep,
  ports,
  reEntryOf,
  skipPort,
} from '../temporal/graph.ts'

const trigger = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
const exit = { id: 'end', type: 'EXIT', config: {} }
const email = {
  id: 'hello',
  type: 'EMAIL',
  config: { subject: 'Hello', content: 'Hi', contentType: 'MARKDOWN' },
}
const wait = (id: string, amount: number, unit = 'MINUTES') => ({
  id,
  type: 'WAIT',
  config: { amount, unit },
})
const tag = (id: string, type = 'ADD_TAG') => ({ id, type, config: { tagNames: ['vip'] } })
const chain = (...ids: string[]) => ids.slice(1).map((to, index) => ({ from: ids[index], to }))

function graph(steps: unknown[], edges: unknown[]) {
  return { steps: [trigger, ...steps], edges }
}

function faultsIn(...input: Parameters<typeof readDefinition>) {
  return readDefinition(...input).faults
}

function paths(raw: unknown, publishing = false): string[] {
  return faultsIn(raw, { publishing }).map(({ path }) => path)
}

/** Returns the definition of a valid graph; throws on faults. */
function read(raw: unknown): Definition {
  const { definition, faults } = readDefinition(raw)
  if (faults.length > 0) throw new Error(JSON.stringify(faults))
  return definition
}

const everyStep = graph(
  [
    {
      ...email,
      conditions: [{ field: 'tags', operator: 'has_none', value: ['quiet'] }],
      onError: 'CONTINUE',
    },
    {
      id: 'pause',
      type: 'WAIT',
      config: { amount: 3, unit: 'DAYS', at: '09:00', days: ['MON', 'TUE'], timezone: 'Europe/Paris' },
    },
    { id: 'date', type: 'WAIT_UNTIL', config: { mode: 'DATE', date: '2031-01-01' } },
    {
      id: 'paid',
      type: 'WAIT_UNTIL',
      config: {
        mode: 'EVENT',
        eventType: 'SUBSCRIBER_PAYMENT',
        where: [{ path: 'amount', operator: 'gte', value: 10 }],
        timeout: { amount: 2, unit: 'DAYS' },
      },
    },
    {
      id: 'fork',
      type: 'BRANCH',
      config: {
        paths: [
          {
            id: 'clicked',
            name: 'Clicked',
            filters: [{ field: 'campaign', operator: 'clicked', value: { stepId: 'hello' } }],
          },
        ],
      },
    },
    tag('add'),
    tag('remove', 'REMOVE_TAG'),
    exit,
  ],
  [
    ...chain('start', 'hello', 'pause', 'date', 'paid', 'fork'),
    { from: 'paid', to: 'remove', port: 'timeout' },
    { from: 'fork', to: 'add', port: 'clicked' },
    { from: 'fork', to: 'end', port: 'else' },
  ],
)

test('a graph of every kind of step is accepted and gets its defaults', (t) => {
  t.deepEqual(faultsIn(everyStep, { publishing: true }), [])
  const definition = read(everyStep)
  t.deepEqual(definition.edges[0], { from: 'start', to: 'hello', port: 'next' })
  t.deepEqual(definition.steps[1]?.config, { ...email.config, transactional: false })
  t.is(definition.steps[1]?.onError, 'CONTINUE')
  t.is(definition.steps[0]?.onError, 'FAIL')
  t.like(definition.steps[4]?.config, { scope: 'STEP', onTimeout: 'CONTINUE' })
})

test('every fault comes out at once, with its step and its path', (t) => {
  const raw = graph(
    [
      { id: 'w', type: 'WAIT', config: { amount: 0, unit: 'DAY', amont: 3 } },
      { id: 'e', type: 'EMAIL', config: { content: 'Hi' } },
      {
        id: 'b',
        type: 'BRANCH',
        config: { paths: [{ id: 'p', filters: [{ field: 'name', operator: 'equal', value: 'x' }] }] },
      },
      { id: 'x', type: 'EXIT', config: {}, onEror: 'FAIL' },
    ],
    [
      ...chain('start', 'w', 'e', 'b', 'nowhere'),
      { from: 'b', to: 'x', port: 'p' },
      { from: 'ghost', to: 'x' },
    ],
  )
  const faults = faultsIn(raw, { publishing: true })
  t.deepEqual(
    faults.map(({ stepId, path }) => [stepId, path]),
    [
      ['w', 'steps[1].config.amont'],
      ['w', 'steps[1].config.amount'],
      ['w', 'steps[1].config.unit'],
      ['b', 'steps[3].config.paths[0].filters[0].operator'],
      ['x', 'steps[4].onEror'],
      ['b', 'edges[3].to'],
      [undefined, 'edges[5].from'],
      ['e', 'steps[2].config.subject'],
    ],
  )
  const messages = faults.map(({ message }) => message).join('\n')
  t.regex(messages, /did you mean "amount"/)
  t.regex(messages, /did you mean "DAYS"/)
  t.regex(messages, /did you mean "equals"/)
  t.regex(messages, /did you mean "onError"/)
})

test('a word that is none is refused, with the one it may mean', (t) => {
  const refused = (step: unknown) => faultsIn(graph([step], chain('start', 'x')))[0]?.message ?? ''
  t.regex(refused({ id: 'x', type: 'SPILT', config: {} }), /there is no step type "SPILT"/)
})

test('settings are checked member by member', (t) => {
  const faults = (settings: unknown) => readSettings(settings).faults.map(({ path }) => path)
  t.deepEqual(faults({ timezone: 'Mars/Olympus', priority: 101, reEntry: { mode: 'PER_KEY' } }), [
    'settings.priority',
    'settings.timezone',
    'settings.reEntry.keyPath',
  ])
  t.deepEqual(
    faults({ timezone: 'PST' }),
    ['settings.timezone'],
    'times cannot be computed with an abbreviation',
  )
  t.deepEqual(faults({ reEntry: { mode: 'ONCE', keyPath: 'orderId' } }), ['settings.reEntry.keyPath'])
  t.deepEqual(faults({ reEntry: { mode: 'PER_KEY', keyPath: 'a..b' } }), ['settings.reEntry.keyPath'])
  t.deepEqual(faults('none'), ['settings'])
  t.deepEqual(
    faults({ reEntry: { mode: 'AFTER_EXIT', cooldown: { amount: 1, unit: 'DAYS' }, maxEntries: 3 } }),
    [],
  )
})

test('edges lead from a port that exists to a step that is no trigger', (t) => {
  t.deepEqual(paths(graph([exit, tag('a')], [...chain('start', 'a', 'end'), { from: 'end', to: 'a' }])), [
    'edges[2].port',
  ])
  t.deepEqual(paths(graph([tag('a')], [...chain('start', 'a'), { from: 'a', to: 'start' }])).toSorted(), [
    'edges[1].to',
    'steps[0]',
  ])
  t.deepEqual(paths(graph([tag('a'), tag('b')], [...chain('start', 'a'), { from: 'start', to: 'b' }])), [
    'edges[1]',
  ])
  t.deepEqual(paths(graph([tag('a')], [{ from: 'start', to: 'a', port: 'timeout' }])), ['edges[0].port'])
  t.deepEqual(paths(graph([tag('a')], [{ from: 'start', too: 'a' }])), ['edges[0].too', 'edges[0].to'])
})

test('ids are unique, steps are reachable, a trigger exists', (t) => {
  t.deepEqual(paths(graph([tag('a'), tag('a')], chain('start', 'a'))), ['steps[2].id'])
  t.deepEqual(paths(graph([tag('a')], [])), ['steps[1]'])
  t.deepEqual(paths({ steps: [tag('a')], edges: [] }), ['steps'])
  t.deepEqual(paths({ steps: [], edges: [] }), ['steps'])
  t.deepEqual(paths({ stepz: [], edges: 4 }), ['stepz', 'steps', 'edges', 'steps'])
  t.deepEqual(
    paths(
      graph(
        [
          { ...tag('a'), id: 'x'.repeat(65) },
          { ...tag('b'), id: ' b' },
        ],
        [],
      ),
    ).slice(0, 2),
    ['steps[1].id', 'steps[2].id'],
  )
})

test('no id is a name that every object has', (t) => {
  const message = (id: string) => `"${id}" is a name that every object has; choose another id`
  for (const id of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    t.deepEqual(faultsIn(graph([{ ...email, id }], chain('start', id))), [
      { stepId: id, path: 'steps[1].id', message: message(id) },
    ])
    const goal = { id, name: 'Bought', event: 'BOUGHT', windowDays: 1, countFrom: 'ENTRY' }
    t.deepEqual(readGoals([goal]).faults, [{ path: 'successGoals[0].id', message: message(id) }])
  }
  t.deepEqual(faultsIn(graph([{ ...email, id: 'proto' }], chain('start', 'proto'))), [])
})

test('a cycle needs a wait of a minute that nothing can skip', (t) => {
  const loop = (...between: unknown[]) =>
    faultsIn(
      graph([tag('a'), ...between, tag('z')], [...chain('start', 'a', 'w', 'z'), { from: 'z', to: 'a' }]),
    )
  t.deepEqual(loop(wait('w', 1)), [])
  t.deepEqual(loop(wait('w', 60, 'SECONDS')), [])
  const [fault] = loop(wait('w', 59, 'SECONDS'))
  t.is(fault?.path, 'steps[1]')
  t.regex(fault?.message ?? '', /a → w → z → a/)
  t.is(loop({ ...wait('w', 5), conditions: [{ field: 'name', operator: 'is_set' }] }).length, 1)
  t.is(loop(tag('w')).length, 1)
  t.deepEqual(paths(graph([tag('a')], [...chain('start', 'a'), { from: 'a', to: 'a' }])), ['steps[1]'])
})

test('the ports of BRANCH are its paths and else', (t) => {
  const fork = (...ids: string[]) => ({
    id: 'f',
    type: 'BRANCH',
    config: { paths: ids.map((id) => ({ id, filters: [] })) },
  })
  t.deepEqual(paths(graph([fork('p', 'p', 'else')], chain('start', 'f'))), [
    'steps[1].config.paths[1].id',
    'steps[1].config.paths[2].id',
  ])
  t.deepEqual(paths(graph([fork('p')], chain('start', 'f')), true), ['steps[1].config.paths[0].filters'])
  t.deepEqual(paths(graph([fork('p'), tag('a')], [...chain('start', 'f'), { from: 'f', to: 'a' }])), [
    'edges[1].port',
  ])
})

test('more than 200 steps are refused without walking them', (t) => {
  const steps = Array.from({ length: 5000 }, (_, index) => tag(`s${index}`))
  t.deepEqual(paths(graph(steps, [])), ['steps'])
  t.deepEqual(
    paths(graph(steps.slice(0, 199), chain('start', ...steps.slice(0, 199).map(({ id }) => id)))),
    [],
  )
})

test('waits have a length, dates and zones that exist', (t) => {
  const faults = (config: unknown, type = 'WAIT') =>
    paths(graph([{ id: 'w', type, config }], chain('start', 'w')))
  t.deepEqual(faults({ amount: 1.5, unit: 'DAYS' }), ['steps[1].config.amount'])
  t.deepEqual(faults({ amount: 262, unit: 'WEEKS' }), ['steps[1].config.amount'])
  t.deepEqual(faults({ amount: 1, unit: 'DAYS', at: '24:00', days: ['MONDAY'], timezone: 'Paris' }), [
    'steps[1].config.at',
    'steps[1].config.days[0]',
    'steps[1].config.timezone',
  ])
  for (const date of ['2025-02-29', '9999-12-31T23:59:59-12:00']) {
    t.deepEqual(faults({ mode: 'DATE', date }, 'WAIT_UNTIL'), ['steps[1].config.date'])
  }
  t.deepEqual(faults({ mode: 'EVENT', eventType: 'paid' }, 'WAIT_UNTIL'), ['steps[1].config.eventType'])
})

test('walking follows ports, and a time-out that leads nowhere goes on by next', (t) => {
  const definition = read(everyStep)
  const index = indexGraph(definition)
  const to = (from: string, port?: string) => nextStep(index, from, port)?.id
  t.is(to('start'), 'hello')
  t.is(to('paid', 'timeout'), 'remove')
  t.is(to('fork', 'clicked'), 'add')
  t.is(to('fork', 'next'), undefined)
  t.is(to('add'), undefined)
  const open = read(
    graph(
      [{ id: 'w', type: 'WAIT_UNTIL', config: { mode: 'EVENT', eventType: 'PAID' } }, exit],
      chain('start', 'w', 'end'),
    ),
  )
  t.is(nextStep(indexGraph(open), 'w', 'timeout')?.id, 'end')
  const filters = [{ field: 'name', operator: 'is_set' }]
  const choices = [
    { id: 'timeout', filters },
    { id: 'next', filters },
  ]
  const named = read(
    graph(
      [{ id: 'b', type: 'BRANCH', config: { paths: choices } }, exit],
      [...chain('start', 'b'), { from: 'b', to: 'end', port: 'next' }],
    ),
  )
  t.is(nextStep(indexGraph(named), 'b', 'timeout'), undefined, 'a path of that name is no time-out')
  const step = (id: string): Step => index.steps.get(id) ?? t.fail(id)
  t.deepEqual(ports(step('fork')), ['clicked', 'else'])
  t.deepEqual(ports(step('paid')), ['next', 'timeout'])
  t.deepEqual(ports(step('end')), [])
  t.is(skipPort(step('fork')), 'else')
  t.is(skipPort(step('hello')), 'next')
})

test('the filters and tags of a definition are found with their places', (t) => {
  const definition = read(
    graph(
      [
        {
          id: 'f',
          type: 'BRANCH',
          conditions: [{ field: 'tags', operator: 'has_any', value: ['old'] }],
          config: {
            paths: [
              { id: 'p', filters: [{ not: { field: 'tags', operator: 'has_any', value: ['vip', 'new'] } }] },
            ],
          },
        },
        tag('a'),
      ],
      [...chain('start', 'f'), { from: 'f', to: 'a', port: 'p' }],
    ),
  )
  t.deepEqual(
    filtersOf(definition).map(({ path, stepId }) => [path, stepId]),
    [
      ['steps[1].conditions[0]', 'f'],
      ['steps[1].config.paths[0].filters[0]', 'f'],
    ],
  )
  const goal = { id: 'g', name: 'G', windowDays: 1, countFrom: 'ENTRY' as const, exitOnReach: true }
  const goals = [{ ...goal, filters: [{ field: 'tags', operator: 'has_any' as const, value: ['buyer'] }] }]
  t.deepEqual(tagNamesOf(definition, goals).toSorted(), ['buyer', 'new', 'old', 'vip'])
})

test('re-entry is once for triggers on a state, after the exit for the rest', (t) => {
  const settings = readSettings({}).settings
  const of = (...configs: unknown[]) =>
    read({ steps: configs.map((config, index) => ({ id: `t${index}`, type: 'TRIGGER', config })), edges: [] })
  t.is(reEntryOf(of({ type: 'MANUAL' }), settings).mode, 'AFTER_EXIT')
  t.is(reEntryOf(of({ type: 'EVENT', eventType: 'PAID' }), settings).mode, 'AFTER_EXIT')
  t.is(reEntryOf(of({ type: 'SUBSCRIBED' }, { type: 'MANUAL' }), settings).mode, 'ONCE')
  t.is(
    reEntryOf(of({ type: 'SUBSCRIBED' }), { ...settings, reEntry: { mode: 'EVERY_TIME' } }).mode,
    'EVERY_TIME',
  )
  const both = of({ type: 'SUBSCRIBED' }, { type: 'MANUAL' })
  t.is(manualEntry(both)?.id, 't1')
  t.is(manualEntry(of({ type: 'SUBSCRIBED' }))?.id, 't0')
  t.is(entrySteps(both).length, 2)
})

const at = (iso: string) => Date.parse(iso)
const paris = (iso: string) => ({ now: at(iso), timezone: 'Europe/Paris' })
const iso = (epoch: number) => new Date(epoch).toISOString()

test('a plain wait elapses; with at and days the calendar of the zone decides', (t) => {
  t.is(waitDue({ amount: 1, unit: 'DAYS' }, paris('2025-03-29T12:00:00Z')), at('2025-03-30T12:00:00Z'))
  // Monday 14:00 in Paris, plus three days, at 09:00.
  t.is(
    iso(waitDue({ amount: 3, unit: 'DAYS', at: '09:00' }, paris('2025-06-02T12:00:00Z'))),
    '2025-06-05T07:00:00.000Z',
  )
  t.is(
    iso(waitDue({ amount: 1, unit: 'HOURS', at: '09:00' }, paris('2025-06-02T12:00:00Z'))),
    '2025-06-03T07:00:00.000Z',
  )
  t.is(
    iso(waitDue({ amount: 1, unit: 'HOURS', at: '15:00' }, paris('2025-06-02T12:00:00Z'))),
    '2025-06-02T13:00:00.000Z',
  )
  // Friday plus one day, weekdays only: Monday at the same local time.
  t.is(
    iso(
      waitDue(
        { amount: 1, unit: 'DAYS', days: ['MON', 'TUE', 'WED', 'THU', 'FRI'] },
        paris('2025-06-06T12:30:00Z'),
      ),
    ),
    '2025-06-09T12:30:00.000Z',
  )
  t.is(
    iso(
      waitDue(
        { amount: 1, unit: 'WEEKS', at: '08:00', timezone: 'Asia/Tokyo' },
        paris('2025-06-06T12:30:00Z'),
      ),
    ),
    '2025-06-12T23:00:00.000Z',
  )
})

test('a local time that does not exist moves forward, an ambiguous one takes the first', (t) => {
  t.is(
    iso(waitDue({ amount: 1, unit: 'DAYS', at: '02:30' }, paris('2025-03-29T12:00:00Z'))),
    '2025-03-30T01:30:00.000Z',
  )
  t.is(
    iso(waitDue({ amount: 1, unit: 'DAYS', at: '02:30' }, paris('2025-10-25T12:00:00Z'))),
    '2025-10-26T00:30:00.000Z',
  )
  // On 26 October 2025, a Sunday, the clocks go back at 01:00 UTC, so 02:30 comes at 00:30 and at 01:30 UTC.
  t.is(
    iso(waitDue({ amount: 1, unit: 'HOURS', days: ['SUN'] }, paris('2025-10-26T00:30:00Z'))),
    '2025-10-26T01:30:00.000Z',
  )
  const due = (date: string, timezone?: string) =>
    iso(
      dateDue(
        { mode: 'DATE', date, onTimeout: 'CONTINUE', ...(timezone ? { timezone } : {}) },
        paris('2025-01-01T00:00:00Z'),
      ),
    )
  t.is(due('2025-07-01'), '2025-06-30T22:00:00.000Z')
  t.is(due('2025-07-01T09:00'), '2025-07-01T07:00:00.000Z')
  t.is(due('2025-07-01T09:00:00Z'), '2025-07-01T09:00:00.000Z')
  t.is(due('2025-07-01T09:00', 'America/New_York'), '2025-07-01T13:00:00.000Z')
})

test('whatever is sent in place of a graph is answered with faults, never a crash', (t) => {
  const word = fc.constantFrom(
    'start',
    'a',
    'TRIGGER',
    'EMAIL',
    'WAIT',
    'WAIT_UNTIL',
    'BRANCH',
    'DATE',
    'EVENT',
    'else',
    '',
    '__proto__',
  )
  const value: fc.Arbitrary<unknown> = fc.oneof(word, fc.jsonValue({ maxDepth: 2 }))
  const config = fc.dictionary(
    fc.constantFrom('type', 'mode', 'paths', 'amount', 'unit', 'filters', 'where', 'contentType', 'date'),
    value,
  )
  const step = fc.oneof(
    value,
    fc.record(
      { id: word, type: word, config: fc.oneof(config, value), conditions: value },
      { requiredKeys: [] },
    ),
  )
  const edge = fc.oneof(value, fc.record({ from: word, to: word, port: word }, { requiredKeys: [] }))
  const raw = fc.oneof(value, fc.record({ steps: fc.array(step), edges: fc.array(edge) }))
  fc.assert(
    fc.property(raw, (graphLike) =>
      faultsIn(graphLike, { publishing: true }).every(({ message }) => message !== ''),
    ),
    { numRuns: 2000, seed: 20_250_301 },
  )
  fc.assert(
    fc.property(fc.oneof(value, config), (settings) => Array.isArray(readSettings(settings).faults)),
    { numRuns: 300, seed: 20_250_301 },
  )
  t.pass()
})
