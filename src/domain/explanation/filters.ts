import { CUSTOM_FIELD_PREFIX, ENTRY_PREFIX, type Filter, type Leaf } from '../../../schema/audience.ts'
import type { Reason } from '../../../schema/explanation.ts'
import { Failure } from '../../catalogue/failure.ts'
import { joinPath } from '../../catalogue/schema-faults.ts'
import type { Call } from '../../catalogue/tool.ts'
import { eachHolds, type EntryContext } from '../audience/match.ts'
import { placesOf, zonedScope } from '../audience/references.ts'
import { validateFilters } from '../audience/validate.ts'
import { idsIn, namesOf } from './names.ts'
import type { Person } from './person.ts'
import { leafWords, valueWords } from './words.ts'

type Answers = ReadonlyMap<Leaf, boolean | Failure>
type Blamed = { leaf: Leaf; path: string; wanted: boolean }

/**
 * Returns how filters apply to a person now: a reason for each leaf that excludes them, with its path and their value,
 * or a single reason when all filters match.
 */
export async function filterReasons(
  call: Call,
  person: Person,
  filters: readonly Filter[],
  path: string,
  context: EntryContext & { inWorkflow?: boolean } = {},
): Promise<Reason[]> {
  if (filters.length === 0) return []
  const faults = validateFilters(filters, path, { entry: context.inWorkflow ?? false })
  if (faults.length > 0) {
    return faults.map((fault) =>
      against('FILTERS_NOT_VALID', `The filter at ${fault.path}: ${fault.message}.`, fault.path),
    )
  }
  const places = placesOf(filters, path)
  const { em, organization } = call
  const leaves = places.map(({ leaf }) => leaf)
  const held = await eachHolds(em, zonedScope(organization), person.id, leaves, context)
  const answers: Answers = new Map(leaves.map((leaf, index) => [leaf, held[index] ?? false]))
  const broken = places.flatMap(({ leaf, path: at }) => {
    const answer = answers.get(leaf)
    return answer instanceof Failure ? [against(answer.code, answer.message, at)] : []
  })
  const blamed = filters
    .flatMap((filter, index) => blame(filter, joinPath(path, index), true, answers))
    .filter(({ leaf }) => !(answers.get(leaf) instanceof Failure))
  const names = await namesOf(
    call,
    blamed.flatMap(({ leaf }) => idsIn(leaf)),
  )
  const reasons = [...broken, ...blamed.map((each) => blamedReason(person, each, names))]
  if (reasons.length > 0) return reasons
  const all = filters.length === 1 ? 'the filter' : `all ${filters.length} filters`
  return [{ at: null, outcome: 'FOR', code: 'FILTERS', message: `They fulfil ${all} at ${path}.`, path }]
}

function against(code: string, message: string, path: string): Reason {
  return { at: null, outcome: 'AGAINST', code, message, path }
}

function blamedReason(
  person: Person,
  { leaf, path, wanted }: Blamed,
  names: ReadonlyMap<string, string>,
): Reason {
  const asked = wanted
    ? `The filter at ${path} asks for ${leafWords(leaf, names)}`
    : `The filter at ${path} does not allow ${leafWords(leaf, names)}`
  if (leaf.field.startsWith(ENTRY_PREFIX)) {
    return {
      ...against('FILTER_ON_ENTRY', `${asked}, which only shows when it happens.`, path),
      outcome: 'NOTE',
    }
  }
  const value = valueOf(person, leaf.field)
  if (value === undefined) {
    return against(
      'FILTER',
      `${asked}, ${wanted ? 'which they do not fulfil' : 'which is so for them'}.`,
      path,
    )
  }
  return { ...against('FILTER', `${asked}; theirs is ${valueWords(value)}.`, path), value }
}

/** Returns the leaves that make a filter's result differ from the wanted one. */
function blame(filter: Filter, path: string, wanted: boolean, answers: Answers): Blamed[] {
  if (holds(filter, answers) === wanted) return []
  if ('not' in filter) return blame(filter.not, joinPath(path, 'not'), !wanted, answers)
  const key = 'all' in filter ? 'all' : 'any'
  const inner = 'all' in filter ? filter.all : 'any' in filter ? filter.any : null
  if (inner === null) return 'field' in filter ? [{ leaf: filter, path, wanted }] : []
  const within = joinPath(path, key)
  return inner.flatMap((each, index) => blame(each, joinPath(within, index), wanted, answers))
}

function holds(filter: Filter, answers: Answers): boolean {
  if ('all' in filter) return filter.all.every((each) => holds(each, answers))
  if ('any' in filter) return filter.any.some((each) => holds(each, answers))
  if ('not' in filter) return !holds(filter.not, answers)
  return answers.get(filter) === true
}

/** Returns a person's value of a field; undefined for fields without a value, such as segment membership. */
function valueOf({ record, lastOpenedAt, lastClickedAt }: Person, field: string): unknown {
  if (field.startsWith(CUSTOM_FIELD_PREFIX)) {
    const name = field.slice(CUSTOM_FIELD_PREFIX.length)
    return Object.hasOwn(record.customFields, name) ? record.customFields[name] : null
  }
  if (field === 'email.domain') return record.email.slice(record.email.lastIndexOf('@') + 1)
  const known: Record<string, unknown> = { ...record, lastOpenedAt, lastClickedAt }
  return Object.hasOwn(known, field) ? known[field] : undefined
}
