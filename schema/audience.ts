import Type from 'typebox'

import { SUBSCRIBER_EVENT_TYPES, SUBSCRIBER_STATUSES } from './values.ts'

/**
 * The filter language (decisions, section 3): the fields, the operators of each and the limits. Validation, the
 * compiler to SQL and the published description are all derived from the tables in this file.
 */
export const AUDIENCE_LIMITS = {
  depth: 5,
  leaves: 100,
  /** Conditions in a list of filters, including those of the segments it refers to, which are expanded in place. */
  conditions: 1_000,
  listValues: 500,
  names: 100,
  textLength: 1000,
  pathSegments: 8,
} as const

/**
 * The kind of value a field holds, which decides its operators. `any` is a JSON value whose type is not known in
 * advance; the comparison decides it.
 */
export type FieldKind =
  | 'id'
  | 'status'
  | 'string'
  | 'number'
  | 'boolean'
  | 'date'
  | 'any'
  | 'tags'
  | 'segment'
  | 'campaign'
  | 'workflow'
  | 'event'
  | 'random'

const PRESENCE = ['is_set', 'is_not_set'] as const
const SAME = ['equals', 'not_equals'] as const
const MEMBER = ['in', 'not_in'] as const
const TEXT = ['contains', 'not_contains', 'starts_with', 'ends_with'] as const
const ORDER = ['gt', 'gte', 'lt', 'lte', 'between'] as const
const CALENDAR = ['before', 'after', 'within_last', 'more_than_ago', 'within_next', 'anniversary_in'] as const
const SET = ['has_any', 'has_all', 'has_none'] as const

/** The operators of each kind of field, in the order in which they are published. */
export const OPERATORS = {
  id: [...SAME, ...MEMBER],
  status: [...SAME, ...MEMBER],
  string: [...SAME, ...TEXT, ...MEMBER, ...PRESENCE],
  number: ['equals', ...ORDER, ...PRESENCE],
  boolean: [...SAME, ...PRESENCE],
  date: ['equals', ...ORDER, ...CALENDAR, ...PRESENCE],
  any: [...SAME, ...TEXT, ...MEMBER, ...ORDER, ...CALENDAR, ...PRESENCE],
  tags: [...SET, ...PRESENCE],
  segment: [...SET],
  campaign: ['received', 'not_received', 'opened', 'not_opened', 'clicked', 'not_clicked', 'bounced'],
  workflow: ['active_in', 'completed', 'never_entered'],
  event: ['performed', 'not_performed'],
  random: ['percent'],
} as const satisfies Record<FieldKind, readonly string[]>
export type FilterOperator = (typeof OPERATORS)[FieldKind][number]

/** The operators that compare how often an event occurred. */
export const COUNT_OPERATORS = ['equals', 'gt', 'gte', 'lt', 'lte'] as const
export type CountOperator = (typeof COUNT_OPERATORS)[number]

export const PERIOD_UNITS = ['MINUTES', 'HOURS', 'DAYS', 'WEEKS', 'MONTHS'] as const
export type PeriodUnit = (typeof PERIOD_UNITS)[number]
/**
 * A length of time that ends or starts now. Days and longer units are calendar days in the organization's time zone.
 */
export type Period = { amount: number; unit: PeriodUnit }
/** A hundred years in each unit: no date of a subscriber is further away. */
export const PERIOD_MAXIMUM: Readonly<Record<PeriodUnit, number>> = {
  MINUTES: 52_560_000,
  HOURS: 876_000,
  DAYS: 36_500,
  WEEKS: 5200,
  MONTHS: 1200,
}

type FieldDefinition = {
  label: string
  kind: FieldKind
  values?: readonly string[]
  valuesFrom?: string
  example: Leaf
}

/** Every built-in field by its key. Custom fields are `customFields.<name>` and, in automations, `entry.<path>`. */
export const FIELDS: Readonly<Record<string, FieldDefinition>> = {
  id: {
    label: 'Id',
    kind: 'id',
    example: { field: 'id', operator: 'in', value: ['sub_01hzy3k8v5e0qs2r7m4n6p8t9w'] },
  },
  email: {
    label: 'Email',
    kind: 'string',
    example: { field: 'email', operator: 'ends_with', value: '.example' },
  },
  'email.domain': {
    label: 'Email domain',
    kind: 'string',
    example: { field: 'email.domain', operator: 'equals', value: 'example.com' },
  },
  name: { label: 'Name', kind: 'string', example: { field: 'name', operator: 'is_set' } },
  phone: {
    label: 'Phone',
    kind: 'string',
    example: { field: 'phone', operator: 'starts_with', value: '+33' },
  },
  status: {
    label: 'Status',
    kind: 'status',
    values: SUBSCRIBER_STATUSES,
    example: { field: 'status', operator: 'in', value: ['SUBSCRIBED', 'TRANSACTIONAL'] },
  },
  country: {
    label: 'Country',
    kind: 'string',
    example: { field: 'country', operator: 'in', value: ['FR', 'BE'] },
  },
  createdAt: {
    label: 'Created',
    kind: 'date',
    example: { field: 'createdAt', operator: 'within_last', value: { amount: 30, unit: 'DAYS' } },
  },
  updatedAt: {
    label: 'Updated',
    kind: 'date',
    example: { field: 'updatedAt', operator: 'after', value: '2025-01-31' },
  },
  tags: {
    label: 'Tags',
    kind: 'tags',
    valuesFrom: 'list_tags',
    example: { field: 'tags', operator: 'has_any', value: ['vip', 'beta'] },
  },
  'customFields.<name>': {
    label: 'Custom field',
    kind: 'any',
    valuesFrom: 'get_custom_fields',
    example: { field: 'customFields.plan', operator: 'equals', value: 'pro' },
  },
  revenue: {
    label: 'Revenue',
    kind: 'number',
    example: { field: 'revenue', operator: 'between', value: [100, 500] },
  },
  emailCount: {
    label: 'Emails sent',
    kind: 'number',
    example: { field: 'emailCount', operator: 'gte', value: 3 },
  },
  openCount: {
    label: 'Opens',
    kind: 'number',
    example: { field: 'openCount', operator: 'equals', value: 0 },
  },
  clickCount: { label: 'Clicks', kind: 'number', example: { field: 'clickCount', operator: 'gt', value: 0 } },
  lastOpenedAt: {
    label: 'Last open',
    kind: 'date',
    example: { field: 'lastOpenedAt', operator: 'more_than_ago', value: { amount: 3, unit: 'MONTHS' } },
  },
  lastClickedAt: {
    label: 'Last click',
    kind: 'date',
    example: { field: 'lastClickedAt', operator: 'is_not_set' },
  },
  segment: {
    label: 'Segment',
    kind: 'segment',
    valuesFrom: 'list_segments',
    example: { field: 'segment', operator: 'has_none', value: ['seg_01hzy3k8v5e0qs2r7m4n6p8t9w'] },
  },
  campaign: {
    label: 'Campaign',
    kind: 'campaign',
    valuesFrom: 'list_campaigns',
    example: { field: 'campaign', operator: 'clicked', value: 'cmp_01hzy3k8v5e0qs2r7m4n6p8t9w' },
  },
  workflow: {
    label: 'Workflow',
    kind: 'workflow',
    valuesFrom: 'list_workflows',
    example: { field: 'workflow', operator: 'never_entered', value: 'wf_01hzy3k8v5e0qs2r7m4n6p8t9w' },
  },
  event: {
    label: 'Event',
    kind: 'event',
    values: [...SUBSCRIBER_EVENT_TYPES, 'SEGMENT_ENTERED', 'SEGMENT_EXITED'],
    example: {
      field: 'event',
      operator: 'performed',
      event: 'SUBSCRIBER_PAYMENT',
      where: [{ path: 'amount', operator: 'gte', value: 50 }],
      count: { operator: 'gte', value: 2 },
      within: { amount: 90, unit: 'DAYS' },
    },
  },
  random: {
    label: 'Random share',
    kind: 'random',
    example: { field: 'random', operator: 'percent', value: 10, seed: 'spring' },
  },
}

/** The prefix of `customFields.<name>`; the rest of the key is the name of a custom field. */
export const CUSTOM_FIELD_PREFIX = 'customFields.'
/** The prefix of `entry.<path>`; the rest of the key is a path into the context a run was started with. */
export const ENTRY_PREFIX = 'entry.'
/** Names of custom fields (decisions, section 1). SQL uses them as literals, which these characters make safe. */
export const CUSTOM_FIELD_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
/** One segment of a path into JSON: a key or an array index. */
export const PATH_SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/
/** Event types, built-in or custom (decisions, section 7). */
export const EVENT_TYPE = /^[A-Z][A-Z0-9_]{1,63}$/

/** A comparison of one value inside an event's data or a run's context. */
export type Where = { path: string; operator: FilterOperator; value?: FilterValue }
export type Scalar = string | number | boolean
/** `{stepId}` refers to the email of a step in the same automation. */
export type FilterValue = Scalar | string[] | [Scalar, Scalar] | number[] | Period | { stepId: string }

export type Leaf = {
  field: string
  operator: FilterOperator
  value?: FilterValue
  /** For `random`: another seed selects another sample. */
  seed?: string
  /** For `event`: its type, conditions on its data, how often it occurred, and in which period. */
  event?: string
  where?: Where[]
  count?: { operator: CountOperator; value: number }
  within?: Period
}
export type Filter = Leaf | { all: Filter[] } | { any: Filter[] } | { not: Filter }

/** Counts the conditions of a leaf: one, or as many as are in its `where`. */
export function conditionsOf(where: unknown): number {
  return Array.isArray(where) ? Math.max(1, where.length) : 1
}

/** The members that a leaf of each kind takes besides `field` and `operator`. */
export const LEAF_MEMBERS: Readonly<Partial<Record<FieldKind, readonly string[]>>> = {
  event: ['event', 'where', 'count', 'within'],
  random: ['value', 'seed'],
}

/**
 * Filters on the wire. The published schema is deliberately open: `validateFilters` checks the members and the rules
 * between them. It knows the field and the operator, so it can say how to repair each fault.
 */
export const Filters = Type.Unsafe<Filter[]>({
  type: 'array',
  description:
    'Filters, all of which must match. Each is {field, operator, value}, {all: […]}, {any: […]} or {not: …}. `get_available_filters` lists the fields and operators.',
})

/** The `where` conditions of events on the wire; checked by `validateWhere`. */
export const WhereList = Type.Unsafe<Where[]>({
  type: 'array',
  description:
    'Conditions on the data of the event, all of which must match. Each is {path, operator, value}.',
})
