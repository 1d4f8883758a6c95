import Type, { type Static } from 'typebox'

import {
  AUDIENCE_LIMITS,
  COUNT_OPERATORS,
  EVENT_TYPE,
  type FieldKind,
  type FilterOperator,
  OPERATORS,
  PERIOD_MAXIMUM,
  PERIOD_UNITS,
} from './audience.ts'
import { closed, oneOf } from './define.ts'
import { SUBSCRIBER_STATUSES } from './values.ts'

// `Object.keys` is typed `string[]`; the keys of this const object are exactly the field kinds.
const FIELD_KINDS = Object.keys(OPERATORS) as FieldKind[]

/** A field that a filter can refer to. */
const FilterField = closed({
  key: Type.String({ description: 'The value of `field` in a filter.' }),
  label: Type.String(),
  type: oneOf(FIELD_KINDS),
  operators: Type.Array(Type.String()),
  values: Type.Optional(Type.Array(Type.String(), { description: 'All possible values.' })),
  valuesFrom: Type.Optional(
    closed({
      tool: Type.String({ description: 'The name of the tool that lists all values.' }),
      total: Type.Integer(),
      newest: Type.Array(closed({ value: Type.String(), label: Type.String() }), {
        description: 'Up to 100 of the newest values.',
      }),
    }),
  ),
  example: Type.Record(Type.String(), Type.Unknown(), { description: 'An example filter.' }),
})
export type FilterField = Static<typeof FilterField>

/** The answer of `get_available_filters`: everything a caller needs to write filters. */
export const AvailableFilters = closed({
  version: Type.Integer(),
  fields: Type.Array(FilterField),
  operators: Type.Array(
    closed({
      operator: Type.String(),
      types: Type.Array(Type.String(), { description: 'The types of fields that have this operator.' }),
      value: Type.String({ description: 'The kind of value that the operator takes for these types.' }),
    }),
  ),
  limits: Type.Record(Type.String(), Type.Integer()),
  jsonSchema: Type.Record(Type.String(), Type.Unknown(), {
    description: 'The JSON Schema of `filters` for the fields of this organization.',
  }),
})
export type AvailableFilters = Static<typeof AvailableFilters>

/** The version of the filter language. It increases when filters that were valid become invalid. */
export const FILTERS_VERSION = 1

/** The value an operator takes, in words and as JSON Schema. `schema` is null when the operator takes no value. */
type Shape = { value: string; schema: object | null }
/** The key of a field, as filters write it, and its kind. */
export type FieldKey = { key: string; kind: FieldKind }

const TEXT = { type: 'string', maxLength: AUDIENCE_LIMITS.textLength }
const FILLED = { ...TEXT, minLength: 1 }
const NUMBER = { type: 'number' }
const DATE = { type: 'string', pattern: '^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}' }
const STATUS = { enum: [...SUBSCRIBER_STATUSES] }
const id = (prefix: string) => ({ type: 'string', pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$` })
const list = (items: object, maxItems: number) => ({ type: 'array', items, minItems: 1, maxItems })
const oneOrMore = (items: object) => ({ anyOf: [items, list(items, AUDIENCE_LIMITS.names)] })

const SCALARS: Readonly<Partial<Record<FieldKind, Shape>>> = {
  id: { value: 'an id', schema: id('sub') },
  status: { value: 'a status', schema: STATUS },
  string: { value: 'text', schema: TEXT },
  number: { value: 'a number', schema: NUMBER },
  boolean: { value: 'true or false', schema: { type: 'boolean' } },
  date: { value: 'an ISO 8601 date, or date and time', schema: DATE },
  any: { value: 'text, a number, true or false', schema: { anyOf: [TEXT, NUMBER, { type: 'boolean' }] } },
}

/** Returns the shape of the value that `operator` takes for fields of `kind`. */
function valueShape(kind: FieldKind, operator: FilterOperator): Shape {
  switch (operator) {
    case 'is_set':
    case 'is_not_set':
      return { value: 'no value', schema: null }
    case 'within_last':
    case 'more_than_ago':
    case 'within_next':
      return { value: '{amount, unit}', schema: period(1) }
    case 'anniversary_in':
      return { value: '{amount, unit}', schema: period(0) }
    case 'between':
      return { value: 'a list of two values, the lower first', schema: pair(kind) }
    case 'in':
    case 'not_in':
      return { value: 'a list of values', schema: list(listItem(kind), AUDIENCE_LIMITS.listValues) }
    case 'contains':
    case 'not_contains':
    case 'starts_with':
    case 'ends_with':
      return { value: 'text', schema: FILLED }
    case 'before':
    case 'after':
      return { value: 'an ISO 8601 date, or date and time', schema: DATE }
    case 'has_any':
    case 'has_all':
    case 'has_none':
      return kind === 'segment'
        ? { value: 'a list of ids', schema: list(id('seg'), AUDIENCE_LIMITS.names) }
        : { value: 'a list of names', schema: list(FILLED, AUDIENCE_LIMITS.names) }
    case 'percent':
      return { value: 'a percentage from 0 to 100', schema: { type: 'number', minimum: 0, maximum: 100 } }
    case 'performed':
    case 'not_performed':
      return { value: 'no value; instead the members event, where, count and within', schema: null }
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      if (kind !== 'any') break
      return { value: 'a number or an ISO 8601 date', schema: { anyOf: [NUMBER, DATE] } }
    default:
  }
  if (kind === 'campaign')
    return { value: 'an id, a list of ids, or no value for any', schema: oneOrMore(id('cmp')) }
  if (kind === 'workflow')
    return { value: 'an id, a list of ids, or no value for any', schema: oneOrMore(id('wf')) }
  return SCALARS[kind] ?? { value: 'text', schema: TEXT }
}

/** Returns each operator with its value, listing together the field types for which the value has the same shape. */
export function describeOperators(): AvailableFilters['operators'] {
  const described = new Map<string, AvailableFilters['operators'][number]>()
  for (const kind of FIELD_KINDS) {
    for (const operator of OPERATORS[kind]) {
      const { value } = valueShape(kind, operator)
      const same = described.get(`${operator} ${value}`) ?? { operator, types: [], value }
      same.types.push(kind)
      described.set(`${operator} ${value}`, same)
    }
  }
  return [...described.values()]
}

/** Returns the JSON Schema (2020-12) of a list of filters over `fields`. */
export function filtersJsonSchema(fields: readonly FieldKey[]): Record<string, unknown> {
  const kinds = [...new Set(fields.map(({ kind }) => kind))]
  const leaves = kinds.flatMap((kind) => {
    const keys = fields.filter((field) => field.kind === kind).map(({ key }) => key)
    return leafSchemas(kind, keys)
  })
  const filter = { $ref: '#/$defs/Filter' }
  const group = (name: string, member: object) => object({ [name]: member }, [name])
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'array',
    items: filter,
    maxItems: AUDIENCE_LIMITS.leaves,
    $defs: {
      Filter: {
        anyOf: [
          ...leaves,
          group('all', list(filter, AUDIENCE_LIMITS.leaves)),
          group('any', list(filter, AUDIENCE_LIMITS.leaves)),
          group('not', filter),
        ],
      },
    },
  }
}

/** Returns one schema for each group of operators of `kind` that take the same shape of value. */
function leafSchemas(kind: FieldKind, keys: readonly string[]): object[] {
  const byShape = new Map<string, { operators: string[]; schema: object | null }>()
  for (const operator of OPERATORS[kind]) {
    const { schema } = valueShape(kind, operator)
    const same = byShape.get(JSON.stringify(schema)) ?? { operators: [], schema }
    same.operators.push(operator)
    byShape.set(JSON.stringify(schema), same)
  }
  return [...byShape.values()].map(({ operators, schema }) => {
    const named = { field: { enum: [...keys] }, operator: { enum: operators } }
    if (kind === 'event') return object({ ...named, ...EVENT_MEMBERS }, ['field', 'operator', 'event'])
    if (schema === null) return object(named, ['field', 'operator'])
    const isOptional = kind === 'campaign' || kind === 'workflow'
    return object(
      { ...named, value: schema, ...(kind === 'random' && { seed: TEXT }) },
      isOptional ? ['field', 'operator'] : ['field', 'operator', 'value'],
    )
  })
}

const EVENT_MEMBERS = {
  event: { type: 'string', pattern: EVENT_TYPE.source },
  where: {
    type: 'array',
    maxItems: AUDIENCE_LIMITS.leaves,
    items: object({ path: { type: 'string' }, operator: { enum: [...OPERATORS.any] }, value: {} }, [
      'path',
      'operator',
    ]),
  },
  count: object(
    {
      operator: { enum: [...COUNT_OPERATORS] },
      value: { type: 'integer', minimum: 0, maximum: 1_000_000_000 },
    },
    ['operator', 'value'],
  ),
  within: period(1),
}

function object(properties: object, required: readonly string[]): object {
  return { type: 'object', properties, required: [...required], additionalProperties: false }
}

function period(minimum: number): object {
  return {
    anyOf: PERIOD_UNITS.map((unit) =>
      object({ amount: { type: 'integer', minimum, maximum: PERIOD_MAXIMUM[unit] }, unit: { const: unit } }, [
        'amount',
        'unit',
      ]),
    ),
  }
}

function pair(kind: FieldKind): object {
  const item = kind === 'date' ? DATE : kind === 'number' ? NUMBER : { anyOf: [NUMBER, DATE] }
  return list(item, 2)
}

function listItem(kind: FieldKind): object {
  if (kind === 'id') return id('sub')
  return kind === 'status' ? STATUS : TEXT
}
