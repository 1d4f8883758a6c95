import test from 'ava'

import { FIELDS, OPERATORS } from '../schema/audience.ts'
import { readMoment } from '../src/domain/audience/moment.ts'
import { type FilterContext, validateFilters, validateWhere } from '../src/domain/audience/validate.ts'
import { encodeId, newId } from '../src/ids.ts'

const campaignId = encodeId('cmp', newId())

function faults(filters: unknown, context?: FilterContext) {
  return validateFilters(filters, 'filters', context)
}

/** Returns the only fault of a leaf as `path: message`, or all faults as JSON if there is not exactly one. */
function fault(leaf: unknown, context?: FilterContext): string {
  const found = faults([leaf], context)
  return found.length === 1 ? `${found[0]?.path}: ${found[0]?.message}` : JSON.stringify(found)
}

test('the example of every field is accepted', (t) => {
  for (const [key, { example }] of Object.entries(FIELDS)) t.deepEqual(faults([example]), [], key)
})

test('groups combine filters', (t) => {
  const leaf = { field: 'name', operator: 'is_set' }
  t.deepEqual(faults([{ all: [leaf, { any: [leaf, { not: leaf }] }] }]), [])
  t.regex(fault({ any: [] }), /^filters\[0\]\.any: must not be empty/)
  t.regex(fault({ all: [leaf], any: [leaf] }), /^filters\[0\]\.any: the field "any" is not known/)
  t.regex(fault({ not: [leaf] }), /^filters\[0\]\.not: must be \{field/)
  t.regex(fault('all'), /not text/)
  t.regex(JSON.stringify(faults({ all: [] })), /must be a list of filters, not an object/)
})

test('nesting ends at five levels and a list at a hundred conditions', (t) => {
  const leaf = { field: 'name', operator: 'is_set' }
  const nested = (levels: number): unknown => (levels === 1 ? leaf : { not: nested(levels - 1) })
  t.deepEqual(faults([nested(5)]), [])
  t.regex(fault(nested(6)), /^filters\[0\]\.not\.not\.not\.not: filters nest at most 5 levels/)
  t.deepEqual(faults(Array.from({ length: 100 }, () => leaf)), [])
  t.regex(faults(Array.from({ length: 101 }, () => leaf))[0]?.message ?? '', /101 conditions, at most 100/)
  const event = (count: number) => ({
    field: 'event',
    operator: 'performed',
    event: 'ORDERED',
    where: Array.from({ length: count }, () => ({ path: 'a', operator: 'is_set' })),
  })
  t.deepEqual(faults([event(100)]), [])
  t.regex(faults([event(50), event(51)])[0]?.message ?? '', /101 conditions, at most 100/)
})

test('an unknown field, operator or member names the nearest known one', (t) => {
  t.regex(
    fault({ field: 'emial', operator: 'equals', value: 'x' }),
    /^filters\[0\]\.field: .*did you mean "email"/,
  )
  t.regex(
    fault({ field: 'name', operator: 'equal', value: 'x' }),
    /^filters\[0\]\.operator: .*"equal" is not an operator.*did you mean "equals"/,
  )
  t.regex(
    fault({ field: 'name', operator: 'gt', value: 1 }),
    /the operators are equals, not_equals, contains/,
  )
  t.regex(
    fault({ field: 'name', operator: 'equals', valeu: 'x', value: 'x' }),
    /^filters\[0\]\.valeu: .*did you mean "value"/,
  )
  t.regex(fault({ field: 'customFields.<name>', operator: 'is_set' }), /is not the name of a custom field/)
  t.regex(fault({ field: 'constructor', operator: 'is_set' }), /there is no field "constructor"/)
  t.regex(fault({ field: "customFields.a'b", operator: 'is_set' }), /is not the name of a custom field/)
  const [first, second] = faults([{ feild: 'name', operator: 'is_set' }])
  t.regex(`${first?.path} ${first?.message}`, /^filters\[0\]\.feild .*did you mean "field"/)
  t.is(second?.path, 'filters[0].field')
})

test('every fault comes out at once with its JSON path', (t) => {
  const found = faults([
    { field: 'name', operator: 'equals', value: 3 },
    {
      any: [
        { field: 'tags', operator: 'has_any', value: 'vip' },
        { not: { field: 'createdAt', operator: 'before', value: 'soon' } },
      ],
    },
    {
      field: 'event',
      operator: 'performed',
      event: 'paid',
      count: { operator: 'many', value: -1 },
      within: { amount: 1, unit: 'DAY' },
    },
  ])
  t.deepEqual(
    found.map(({ path }) => path),
    [
      'filters[0].value',
      'filters[1].any[0].value',
      'filters[1].any[1].not.value',
      'filters[2].event',
      'filters[2].count.operator',
      'filters[2].count.value',
      'filters[2].within',
    ],
  )
})

test('a value has the type its field and operator ask for', (t) => {
  const wrong: [string, string, unknown][] = [
    ['name', 'equals', 1],
    ['name', 'contains', ''],
    ['name', 'in', []],
    ['name', 'in', ['a', 2]],
    ['name', 'in', 'a'],
    ['name', 'is_set', true],
    ['name', 'equals', 'a\u0000b'],
    ['name', 'equals', 'a\nb'],
    ['name', 'equals', '\ud800'],
    ['name', 'equals', 'x'.repeat(1001)],
    ['status', 'equals', 'ACTIVE'],
    ['status', 'in', ['SUBSCRIBED', 'subscribed']],
    ['id', 'equals', campaignId],
    ['revenue', 'gt', '1'],
    ['revenue', 'between', [2, 1]],
    ['revenue', 'between', [1]],
    ['createdAt', 'equals', '2025-02-30'],
    ['createdAt', 'between', ['2025-03-02', '2025-03-01']],
    ['createdAt', 'within_last', { amount: 0, unit: 'DAYS' }],
    ['createdAt', 'within_last', { amount: 1.5, unit: 'DAYS' }],
    ['createdAt', 'within_last', { amount: 1, unit: 'SECONDS' }],
    ['createdAt', 'within_last', { amount: 1, unit: 'DAYS', zone: 'UTC' }],
    ['tags', 'has_all', ['']],
    ['segment', 'has_any', [campaignId]],
    ['campaign', 'opened', 'cmp_1'],
    ['campaign', 'opened', []],
    ['workflow', 'completed', 3],
    ['random', 'percent', 101],
    ['customFields.plan', 'equals', null],
    ['customFields.plan', 'gt', 'high'],
    ['customFields.plan', 'between', [1, '2025-01-01']],
  ]
  for (const [field, operator, value] of wrong) {
    t.regex(
      fault({ field, operator, value }),
      /^filters\[0\]\.value: /,
      JSON.stringify([field, operator, value]),
    )
  }
  const right: [string, string, unknown][] = [
    ['name', 'equals', ''],
    ['name', 'in', ['%', '😀']],
    ['createdAt', 'between', ['2025-03-01', '2025-03-01T12:00:00+02:00']],
    ['createdAt', 'anniversary_in', { amount: 0, unit: 'DAYS' }],
    ['campaign', 'opened', undefined],
    ['campaign', 'not_opened', [campaignId]],
    ['workflow', 'never_entered', undefined],
    ['random', 'percent', 0.5],
    ['customFields.plan', 'equals', false],
    ['customFields.plan', 'lte', '2025-03-01'],
    ['customFields.plan', 'is_not_set', undefined],
  ]
  for (const [field, operator, value] of right) {
    t.deepEqual(faults([{ field, operator, ...(value === undefined ? {} : { value }) }]), [], field)
  }
})

test('a custom field has the operators of its type once the types are known', (t) => {
  const customFields = new Map([
    ['plan', 'string'],
    ['score', 'number'],
    ['trial', 'boolean'],
    ['renewal', 'date'],
  ] as const)
  const of = (field: string, operator: string, value?: unknown) =>
    fault(
      { field: `customFields.${field}`, operator, ...(value === undefined ? {} : { value }) },
      { customFields },
    )
  t.is(of('plan', 'starts_with', 'pro'), '[]')
  t.is(of('renewal', 'within_next', { amount: 7, unit: 'DAYS' }), '[]')
  t.is(of('trial', 'equals', true), '[]')
  t.regex(of('plan', 'gt', 1), /is not an operator/)
  t.regex(of('score', 'equals', '1'), /must be a number/)
  t.regex(of('renewal', 'equals', 'soon'), /must be an ISO date/)
  t.regex(of('plann', 'is_set'), /there is no custom field "plann"; did you mean "plan"/)
})

test('entry and stepId belong to the steps of a workflow', (t) => {
  const entry = { field: 'entry.order.total', operator: 'gt', value: 5 }
  t.regex(fault(entry), /can only be used in the steps of a workflow/)
  t.is(fault(entry, { entry: true }), '[]')
  t.regex(fault({ ...entry, field: 'entry.a..b' }, { entry: true }), /is not a path/)
  const clicked = { field: 'campaign', operator: 'clicked', value: { stepId: 'welcom' } }
  t.regex(fault(clicked), /can only be used in the steps of a workflow/)
  t.regex(
    fault(clicked, { emailSteps: new Set(['welcome']) }),
    /there is no EMAIL step "welcom"; did you mean "welcome"/,
  )
  t.is(fault({ ...clicked, value: { stepId: 'welcome' } }, { emailSteps: new Set(['welcome']) }), '[]')
})

test("conditions on an event's data are checked alike", (t) => {
  t.deepEqual(
    validateWhere([{ path: 'metadata.items.0.sku', operator: 'starts_with', value: 'A' }], 'where'),
    [],
  )
  const paths = validateWhere(
    [
      { path: "a'b", operator: 'equals', value: 1 },
      { operator: 'like' },
      4,
      { path: 'a', operator: 'gt', value: true, to: 1 },
    ],
    'where',
  ).map(({ path }) => path)
  t.deepEqual(paths, [
    'where[0].path',
    'where[1].path',
    'where[1].operator',
    'where[2]',
    'where[3].to',
    'where[3].value',
  ])
})

test('an empty object, null and strange keys are refused, not crashed on', (t) => {
  for (const strange of [
    {},
    null,
    [],
    7,
    { field: {} },
    { field: 'name' },
    { field: 'name', operator: {} },
    { not: null },
  ]) {
    t.true(faults([strange]).length > 0, JSON.stringify(strange))
  }
})

test('every operator is asked of at least one kind of field', (t) => {
  t.true(Object.values(OPERATORS).every((operators) => operators.length > 0))
})

test('moments are days or instants; impossible ones are none', (t) => {
  const day = readMoment('2025-03-30', 'Europe/Paris')
  t.is(day && day.end !== null ? (day.end - day.start) / 3_600_000 : 0, 23)
  t.is(readMoment('2025-03-30T02:30', 'Europe/Paris')?.start, Date.parse('2025-03-30T01:30:00Z'))
  t.is(readMoment('2025-10-26T02:30', 'Europe/Paris')?.start, Date.parse('2025-10-26T00:30:00Z'))
  t.deepEqual(readMoment('2025-03-30T10:00:00.5+02:00', 'UTC'), {
    start: Date.parse('2025-03-30T08:00:00.500Z'),
    end: null,
  })
  for (const wrong of [
    '2025-02-29',
    '2025-13-01',
    '2025-01-01T25:00',
    '2025-01-01Z',
    '25-01-01',
    'now',
    '',
    '2025-01-01 10:00',
    '0000-01-01',
    '9999-12-31T23:59:59-12:00',
    '1000-01-01T00:00:00+14:00',
  ]) {
    t.is(readMoment(wrong, 'UTC'), null, wrong)
  }
})
