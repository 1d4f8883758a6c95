import { type RawBuilder, sql } from 'kysely'

import {
  AUDIENCE_LIMITS,
  CUSTOM_FIELD_NAME,
  CUSTOM_FIELD_PREFIX,
  ENTRY_PREFIX,
  type Filter,
  type FilterValue,
  type Leaf,
} from '../../../schema/audience.ts'
import { isRecord } from '../../../schema/json.ts'
import { Failure } from '../../catalogue/failure.ts'
import { array } from '../../database.ts'
import { calendarOf, dateTest } from './dates.ts'
import { eventTest } from './occurrences.ts'
import { allOf, anyOf, never, type Predicate, signed, type Test, total } from './predicate.ts'
import { type References, sizeInPlace } from './references.ts'
import {
  campaignTest,
  hasAnyTag,
  idsOf,
  isTagged,
  jsonAt,
  positive,
  randomTest,
  statDateTest,
  statNumberTest,
  type Surroundings,
  workflowTest,
} from './related.ts'
import {
  customFieldTest,
  emailDomainTest,
  jsonTest,
  type TextExpression,
  textArray,
  textTest,
} from './scalars.ts'

/** The context that a compilation needs besides the filters. */
export type Compilation = {
  organizationId: string
  references: References
  /** The context that a run was started with, as a jsonb expression, for `entry.<path>`. */
  entry: RawBuilder<unknown>
  run?: { automationId: string; runId?: string | RawBuilder<string> }
  /** True when the condition is for few subscribers; see Surroundings. */
  single?: boolean
  /** The moment that relative dates count from; the default is now. */
  now?: RawBuilder<unknown>
}

/**
 * Compiles filters to a condition over `subscriber s`:
 * `select s.id from subscriber s where s.organization_id = … and ${predicate}`. Values are bound parameters. A null
 * result means that the subscriber does not match. An empty list matches everybody. Throws `FILTER_REFERENCE_MISSING`
 * for a reference that no longer exists.
 */
export function compileFilters(compilation: Compilation, filters: readonly Filter[]): Predicate {
  refuseLarge(filters, compilation.references)
  const around: Surroundings = {
    organizationId: compilation.organizationId,
    ...calendarOf(compilation.references.timezone),
    ...(compilation.now && { now: compilation.now }),
    single: compilation.single ?? false,
    ...(compilation.run ? { run: compilation.run } : {}),
  }
  return compileList({ ...compilation, around, depth: 0 }, filters, false)
}

/** Refuses filters that expand to too many conditions: shared segments can double the number at each level. */
function refuseLarge(filters: readonly Filter[], { segments }: References): void {
  if (segments.size === 0 || sizeInPlace(filters, segments) <= AUDIENCE_LIMITS.conditions) return
  throw new Failure(
    'WRONG_STATE',
    `The filters have more than ${AUDIENCE_LIMITS.conditions} conditions together with those of the segments they use; use fewer segments, or simplify them.`,
  )
}

/** `depth` is the number of segments around a filter. */
type Walk = Compilation & { around: Surroundings; depth: number }

/** Pushes negation down to the leaves, which know whether they can be null. */
function compileList(walk: Walk, filters: readonly Filter[], negated: boolean): Predicate {
  const parts = filters.map((filter) => compileFilter(walk, filter, negated))
  return negated ? anyOf(parts) : allOf(parts)
}

function compileFilter(walk: Walk, filter: Filter, negated: boolean): Predicate {
  if ('all' in filter) return compileList(walk, filter.all, negated)
  if ('not' in filter) return compileFilter(walk, filter.not, !negated)
  if ('any' in filter) {
    const parts = filter.any.map((each) => compileFilter(walk, each, negated))
    return negated ? allOf(parts) : anyOf(parts)
  }
  const { operator, negated: opposite } = positive(filter.operator)
  const leaf: Leaf = { ...filter, operator }
  if (leaf.field === 'segment') return compileSegments(walk, leaf, negated !== opposite)
  return signed(leafTest(walk, leaf), negated !== opposite)
}

function leafTest(walk: Walk, leaf: Leaf): Test {
  const { field, operator, value } = leaf
  const { around } = walk
  if (field.startsWith(CUSTOM_FIELD_PREFIX)) return customFieldLeaf(walk, leaf)
  if (field.startsWith(ENTRY_PREFIX)) {
    const at = jsonAt(walk.entry, field.slice(ENTRY_PREFIX.length))
    return jsonTest(at, 'any', operator, value, around)
  }
  switch (field) {
    case 'id':
      return idTest(value)
    case 'email.domain':
      return emailDomainTest(operator, value)
    case 'email':
    case 'name':
    case 'phone':
    case 'country':
      return textTest(TEXT_COLUMNS[field], operator, value)
    case 'status':
      return total(sql<boolean>`s.status = any(${textArray(value)})`)
    case 'createdAt':
    case 'updatedAt': {
      if (operator === 'is_set') return total(sql<boolean>`true`)
      const at = sql.raw(field === 'createdAt' ? 's.created_at' : 's.updated_at')
      return dateTest({ at, isDay: null }, operator, value, around)
    }
    case 'revenue':
    case 'emailCount':
    case 'openCount':
    case 'clickCount':
      return statNumberTest(around, STAT_COLUMNS[field], operator, value)
    case 'lastOpenedAt':
    case 'lastClickedAt':
      return statDateTest(around, STAT_COLUMNS[field], operator, value)
    case 'tags':
      return tagTest(walk, leaf)
    case 'campaign':
      expectAll(walk.references.campaigns, idsIn(value, 'cmp'), 'a campaign')
      return campaignTest(around, operator, value)
    case 'workflow':
      expectAll(walk.references.workflows, idsIn(value, 'wf'), 'a workflow')
      return workflowTest(around, operator, value)
    case 'event':
      return eventTest(around, leaf)
    case 'random':
      return randomTest(Number(value), leaf.seed ?? '')
    default:
      // Filters are validated before they are stored, so a later version wrote this one. Treating it as false would be
      // wrong: negated, it would match everybody.
      throw new Failure(
        'WRONG_STATE',
        `The filters name the field ${JSON.stringify(field)}, which is not known.`,
      )
  }
}

const TEXT_COLUMNS = {
  email: { exact: sql`s.email_key`, lower: true },
  name: { exact: sql`s.name` },
  phone: { exact: sql`s.phone` },
  country: { exact: sql`lower(s.country)`, lower: true },
} as const satisfies Record<string, TextExpression>

const STAT_COLUMNS = {
  revenue: 'revenue',
  emailCount: 'email_count',
  openCount: 'open_count',
  clickCount: 'click_count',
  lastOpenedAt: 'last_opened_at',
  lastClickedAt: 'last_clicked_at',
} as const

function idTest(value: FilterValue | undefined): Test {
  if (value === undefined) return never
  return total(sql<boolean>`s.id = any(${array(idsOf(value, 'sub'), 'uuid')})`)
}

function customFieldLeaf({ references, around }: Walk, { field, operator, value }: Leaf): Test {
  const name = field.slice(CUSTOM_FIELD_PREFIX.length)
  // The name becomes part of the SQL text, so it must consist of letters, digits, _ and - only.
  if (!CUSTOM_FIELD_NAME.test(name)) return never
  const kind = references.fields.get(name) ?? gone(`the custom field "${name}"`)
  return customFieldTest(name, kind, operator, value, around)
}

function tagTest({ references, around }: Walk, { operator, value }: Leaf): Test {
  if (operator === 'is_set') return total(isTagged(around))
  const names: readonly unknown[] = Array.isArray(value) ? value : []
  const ids = names.map(
    (name) => references.tags.get(String(name)) ?? gone(`the tag ${JSON.stringify(name)}`),
  )
  if (operator === 'has_any') return total(hasAnyTag(around, ids))
  return total(allOf([...new Set(ids)].map((id) => hasAnyTag(around, [id]))))
}

/** Compiles a segment to its filters. */
function compileSegments(walk: Walk, { operator, value }: Leaf, negated: boolean): Predicate {
  if (walk.depth >= AUDIENCE_LIMITS.depth) {
    const message = `Segments refer to each other more than ${AUDIENCE_LIMITS.depth} levels deep; flatten them.`
    throw new Failure('WRONG_STATE', message)
  }
  const parts = idsIn(value, 'seg').map((id) => {
    const filters = walk.references.segments.get(id) ?? gone('a segment')
    return compileList({ ...walk, depth: walk.depth + 1 }, filters, negated)
  })
  const all = operator === 'has_all'
  return all === negated ? anyOf(parts) : allOf(parts)
}

/** Returns the uuids in a value; none for "any" and for the email of a step. */
function idsIn(value: FilterValue | undefined, prefix: 'cmp' | 'wf' | 'seg'): string[] {
  return value === undefined || isRecord(value) ? [] : idsOf(value, prefix)
}

function expectAll(known: ReadonlySet<string>, ids: readonly string[], what: string): void {
  if (ids.some((id) => !known.has(id))) gone(what)
}

function gone(what: string): never {
  throw new Failure(
    'FILTER_REFERENCE_MISSING',
    `The filters refer to ${what}, which no longer exists; change or remove that filter.`,
  )
}
