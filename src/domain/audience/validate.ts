import {
  AUDIENCE_LIMITS,
  conditionsOf,
  COUNT_OPERATORS,
  CUSTOM_FIELD_NAME,
  CUSTOM_FIELD_PREFIX,
  ENTRY_PREFIX,
  EVENT_TYPE,
  FIELDS,
  type FieldKind,
  LEAF_MEMBERS,
  OPERATORS,
  PATH_SEGMENT,
} from '../../../schema/audience.ts'
import { isRecord } from '../../../schema/json.ts'
import type { FieldType } from '../../../schema/values.ts'
import type { Fault } from '../../catalogue/failure.ts'
import { didYouMean, joinPath, kindOf, nearest } from '../../catalogue/schema-faults.ts'
import { periodFault, type ValueRules, valueFault } from './values.ts'

/** The context of filters, which decides what they may refer to. */
export type FilterContext = {
  /** Inside workflow steps, where `entry.<path>` is allowed. */
  entry?: boolean
  /** The ids of the workflow's EMAIL steps, which `{stepId}` may name. */
  emailSteps?: ReadonlySet<string>
  /** Custom fields by name; without them, names and types are not checked. */
  customFields?: ReadonlyMap<string, FieldType>
}

type Walk = FilterContext & { faults: Fault[]; leaves: number }

const GROUPS = ['all', 'any', 'not']
const LEAF = ['field', 'operator', 'value']

/**
 * Returns all faults of a list of filters with their JSON paths below `path`. Without faults, the filters can be
 * compiled once their references are loaded. A pure function: referenceFaults finds what needs a look-up.
 */
export function validateFilters(filters: unknown, path: string, context: FilterContext = {}): Fault[] {
  const walk: Walk = { ...context, faults: [], leaves: 0 }
  checkList(walk, filters, path, 1)
  if (walk.leaves > AUDIENCE_LIMITS.leaves) {
    const message = `there are ${walk.leaves} conditions, at most ${AUDIENCE_LIMITS.leaves} are allowed`
    return [{ path, message }, ...walk.faults]
  }
  return walk.faults
}

/** Returns all faults of a list of conditions on an event's data. */
export function validateWhere(where: unknown, path: string): Fault[] {
  if (!Array.isArray(where)) return [{ path, message: `must be a list of conditions, not ${kindOf(where)}` }]
  if (where.length > AUDIENCE_LIMITS.leaves) {
    return [{ path, message: `must have at most ${AUDIENCE_LIMITS.leaves} conditions` }]
  }
  return where.flatMap((condition: unknown, index) => whereFaults(condition, joinPath(path, index)))
}

function checkList(walk: Walk, filters: unknown, path: string, depth: number): void {
  if (!Array.isArray(filters)) {
    walk.faults.push({ path, message: `must be a list of filters, not ${kindOf(filters)}` })
    return
  }
  if (filters.length > AUDIENCE_LIMITS.leaves) {
    // validateFilters refuses such a list, so its items are not read: a million of them would block the process.
    walk.leaves += filters.length
    return
  }
  filters.forEach((filter: unknown, index) => checkFilter(walk, filter, joinPath(path, index), depth))
}

function checkFilter(walk: Walk, filter: unknown, path: string, depth: number): void {
  if (!isRecord(filter)) {
    const message = `must be {field, operator, value}, {all}, {any} or {not}, not ${kindOf(filter)}`
    walk.faults.push({ path, message })
    return
  }
  const group = GROUPS.find((name) => Object.hasOwn(filter, name))
  if (group === undefined) {
    walk.leaves += conditionsOf(filter.where)
    walk.faults.push(...leafFaults(filter, path, walk))
    return
  }
  walk.faults.push(...unknownMembers(filter, [group], path))
  if (depth >= AUDIENCE_LIMITS.depth) {
    walk.faults.push({
      path,
      message: `filters nest at most ${AUDIENCE_LIMITS.depth} levels deep; flatten this one`,
    })
    return
  }
  const inner = joinPath(path, group)
  if (group === 'not') checkFilter(walk, filter.not, inner, depth + 1)
  else if (Array.isArray(filter[group]) && filter[group].length === 0) {
    walk.faults.push({ path: inner, message: `must not be empty; remove the group or give it a filter` })
  } else checkList(walk, filter[group], inner, depth + 1)
}

function leafFaults(leaf: Record<string, unknown>, path: string, context: FilterContext): Fault[] {
  const { field, operator } = leaf
  if (typeof field !== 'string') {
    const message = `must name a field, such as "tags", not ${kindOf(field)}; a group has all, any or not instead`
    return [...unknownMembers(leaf, [...LEAF, ...GROUPS], path), { path: joinPath(path, 'field'), message }]
  }
  const known = fieldKind(field, context)
  if (typeof known !== 'string') return [{ path: joinPath(path, 'field'), message: known.fault }]
  const members = ['field', 'operator', ...(LEAF_MEMBERS[known] ?? ['value'])]
  const faults = unknownMembers(leaf, members, path)
  const wrong = operatorFault(operator, OPERATORS[known], `the field "${field}"`)
  if (wrong !== null) return [...faults, { path: joinPath(path, 'operator'), message: wrong }]
  if (known === 'event') return [...faults, ...eventFaults(leaf, path)]
  const rules: ValueRules = { kind: known, operator: String(operator), emailSteps: context.emailSteps }
  const message = valueFault(rules, leaf.value)
  if (message !== null) faults.push({ path: joinPath(path, 'value'), message })
  if (known === 'random' && leaf.seed !== undefined) faults.push(...seedFaults(leaf.seed, path))
  return faults
}

/** Returns the kind of a field, or the fault of its name. */
function fieldKind(field: string, context: FilterContext): FieldKind | { fault: string } {
  if (field.startsWith(CUSTOM_FIELD_PREFIX)) {
    return customFieldKind(field.slice(CUSTOM_FIELD_PREFIX.length), context.customFields)
  }
  if (field.startsWith(ENTRY_PREFIX)) {
    if (!context.entry)
      return { fault: `"${field.slice(0, 80)}" can only be used in the steps of a workflow` }
    const fault = pathFault(field.slice(ENTRY_PREFIX.length))
    return fault === null ? 'any' : { fault }
  }
  const known = Object.hasOwn(FIELDS, field) && !field.includes('<') ? FIELDS[field] : undefined
  if (known) return known.kind
  const names = [...Object.keys(FIELDS), ...(context.entry ? ['entry.<path>'] : [])]
  return { fault: `there is no field ${JSON.stringify(field.slice(0, 80))}; ${didYouMean(field, names)}` }
}

function customFieldKind(
  name: string,
  customFields: ReadonlyMap<string, FieldType> | undefined,
): FieldKind | { fault: string } {
  if (!CUSTOM_FIELD_NAME.test(name)) {
    const fault = `${JSON.stringify(name.slice(0, 80))} is not the name of a custom field; names are letters, digits, _ and -, beginning with a letter`
    return { fault }
  }
  if (!customFields) return 'any'
  return (
    customFields.get(name) ?? {
      fault: `there is no custom field "${name}"; ${didYouMean(name, [...customFields.keys()])}`,
    }
  )
}

function eventFaults(leaf: Record<string, unknown>, path: string): Fault[] {
  const faults: Fault[] = []
  if (typeof leaf.event !== 'string' || !EVENT_TYPE.test(leaf.event)) {
    const message = `must be an event type in upper case, such as "SUBSCRIBER_PAYMENT", not ${shown(leaf.event)}`
    faults.push({ path: joinPath(path, 'event'), message })
  }
  if (leaf.where !== undefined) faults.push(...validateWhere(leaf.where, joinPath(path, 'where')))
  if (leaf.count !== undefined) faults.push(...countFaults(leaf.count, joinPath(path, 'count')))
  const within = leaf.within === undefined ? null : periodFault(leaf.within, 1)
  if (within !== null) faults.push({ path: joinPath(path, 'within'), message: within })
  return faults
}

function countFaults(count: unknown, path: string): Fault[] {
  if (!isRecord(count)) return [{ path, message: `must be {operator, value}, not ${kindOf(count)}` }]
  const faults = unknownMembers(count, ['operator', 'value'], path)
  const wrong = operatorFault(count.operator, COUNT_OPERATORS, 'a count')
  if (wrong !== null) faults.push({ path: joinPath(path, 'operator'), message: wrong })
  const { value } = count
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 1_000_000_000) {
    faults.push({
      path: joinPath(path, 'value'),
      message: `must be a whole number of times, not ${shown(value)}`,
    })
  }
  return faults
}

function seedFaults(seed: unknown, path: string): Fault[] {
  const message = valueFault({ kind: 'string', operator: 'equals' }, seed)
  return message === null ? [] : [{ path: joinPath(path, 'seed'), message }]
}

function whereFaults(condition: unknown, path: string): Fault[] {
  if (!isRecord(condition)) {
    return [{ path, message: `must be {path, operator, value}, not ${kindOf(condition)}` }]
  }
  const faults = unknownMembers(condition, ['path', 'operator', 'value'], path)
  const where =
    typeof condition.path === 'string'
      ? pathFault(condition.path)
      : `must be a path into the event's data, such as "amount", not ${kindOf(condition.path)}`
  if (where !== null) faults.push({ path: joinPath(path, 'path'), message: where })
  const wrong = operatorFault(condition.operator, OPERATORS.any, "an event's data")
  if (wrong !== null) return [...faults, { path: joinPath(path, 'operator'), message: wrong }]
  const message = valueFault({ kind: 'any', operator: String(condition.operator) }, condition.value)
  return message === null ? faults : [...faults, { path: joinPath(path, 'value'), message }]
}

/** Returns the fault of a path into JSON, which consists of names or list indexes joined by dots; null when valid. */
export function pathFault(path: string): string | null {
  const segments = path.split('.')
  if (segments.length <= AUDIENCE_LIMITS.pathSegments && segments.every((part) => PATH_SEGMENT.test(part)))
    return null
  const most = AUDIENCE_LIMITS.pathSegments
  return `${JSON.stringify(path.slice(0, 80))} is not a path; write names or list indexes joined by dots, at most ${most}, such as "metadata.plan"`
}

function operatorFault(operator: unknown, known: readonly string[], of: string): string | null {
  if (typeof operator !== 'string') {
    return `must be one of the operators of ${of} (${known.join(', ')}), not ${kindOf(operator)}`
  }
  if (known.includes(operator)) return null
  const near = nearest(operator, known)
  const hint = near === undefined ? 'the operators are' : `did you mean "${near}"? The operators are`
  return `${shown(operator)} is not an operator of ${of}; ${hint} ${known.join(', ')}`
}

function unknownMembers(value: object, known: readonly string[], path: string): Fault[] {
  return Object.keys(value)
    .filter((name) => !known.includes(name))
    .map((name) => ({
      path: joinPath(path, name.slice(0, 80)),
      message: `the field "${name.slice(0, 80)}" is not known here; ${didYouMean(name, known)}`,
    }))
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : kindOf(value)
}
