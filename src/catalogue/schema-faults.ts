import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import type { TValidationError } from 'typebox/error'
import { Settings } from 'typebox/system'
import { Value } from 'typebox/value'

import type { Fault } from './failure.ts'

// TypeBox reports only 8 errors by default, and an unknown member takes up two of them.
Settings.Set({ maxErrors: 2000 })

const UNKNOWN = 'additionalProperties'

type Validator = ReturnType<typeof Compile>
const validators = new WeakMap<TSchema, Validator>()

/** `path` is where the value is. `unnamed` are its members that messages do not suggest. */
type Place = { path?: string; unnamed?: ReadonlySet<string> | undefined }

/**
 * Returns every fault of a value against a schema. Each has a JSON path below `path` and a message that says how to
 * repair it; for an unknown member, the message suggests the nearest known name.
 */
export function schemaFaults(schema: TSchema, value: unknown, place: Place = {}): Fault[] {
  const { path = '' } = place
  const validator = validators.get(schema) ?? Compile(schema)
  validators.set(schema, validator)
  if (validator.Check(value)) return []
  const errors = validator.Errors(value)
  const unions = errors
    .filter(({ keyword }) => keyword === 'anyOf')
    .map((error) => unionOf(schema, error, value))
  const faults = errors
    .filter((error) => unions.every((union) => tellsMost(union, error)))
    // A mistyped name explains a missing one, so unknown members come first.
    .sort((one, other) => Number(other.keyword === UNKNOWN) - Number(one.keyword === UNKNOWN))
    .flatMap((error) => faultsOf(schema, error, value, place))
  return faults.length > 0 ? faults : [{ path, message: 'is not valid' }]
}

/** Returns a copy of a valid value with the schema's defaults filled in. */
export function withDefaults(schema: TSchema, value: unknown): unknown {
  return Value.Default(schema, structuredClone(value))
}

/** Joins a path in the form used everywhere: `a.b[0].c`. */
export function joinPath(base: string, key: string | number): string {
  if (typeof key === 'number') return `${base}[${key}]`
  return base === '' ? key : `${base}.${key}`
}

/** Returns `did you mean "x"?` for the known word nearest to `word`, or else a list of all known words. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known)
  if (near !== undefined) return `did you mean "${near}"?`
  return known.length > 0 ? `known are ${known.join(', ')}` : 'none is known here'
}

/**
 * Returns the known word nearest to a mistyped one, within an edit distance of a third of its length; else undefined.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const typed = word.slice(0, 80).toLowerCase()
  let best: string | undefined
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const distance = editDistance(typed, candidate.toLowerCase())
    if (distance < least && distance <= Math.max(1, Math.ceil(candidate.length / 3))) {
      best = candidate
      least = distance
    }
  }
  return best
}

/**
 * Returns the id field that was probably meant: some tools call it `id`, others `campaignId` or similar. Returns `name`
 * itself if another known name is near.
 */
function idMeant(name: string, known: readonly string[]): string {
  if (nearest(name, known) !== undefined || !/^id$|Id$/.test(name)) return name
  return known.find((each) => (name === 'id' ? each.endsWith('Id') : each === 'id')) ?? name
}

/** Returns the kind of a value in words: `a list`, `null`, `text`. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  const kind = typeof value
  if (kind === 'object') return 'an object'
  return kind === 'string' ? 'text' : `a ${kind}`
}

/** A union that a value fails; `meant` is the only branch that is for values of its type, if there is one. */
type FailedUnion = { error: TValidationError; meant: string | undefined }

function unionOf(schema: TSchema, error: TValidationError, root: unknown): FailedUnion {
  const { schemaPath, instancePath } = error
  const value = valueAt(root, instancePath.split('/').slice(1).map(unescapePointer))
  const branches = member(schemaAt(schema, schemaPath), 'anyOf')
  const types: unknown[] = Array.isArray(branches) ? branches.map((branch) => member(branch, 'type')) : []
  const meant = types.flatMap((type, index) =>
    isOfType(value, type) ? [`${schemaPath}/anyOf/${index}`] : [],
  )
  return { error, meant: meant.length === 1 ? meant[0] : undefined }
}

/**
 * Whether an error adds something about a failed union: those in the branch that was meant do, and otherwise the
 * union's own, which names all branches.
 */
function tellsMost({ error: union, meant }: FailedUnion, error: TValidationError): boolean {
  if (error === union) return meant === undefined
  if (!isWithin(error.instancePath, union.instancePath)) return true
  if (!isWithin(error.schemaPath, `${union.schemaPath}/anyOf`)) return true
  return meant !== undefined && isWithin(error.schemaPath, meant)
}

function isWithin(path: string, outer: string): boolean {
  return path === outer || path.startsWith(`${outer}/`)
}

/** Whether a value is of a type of JSON Schema, apart from fractions, which are meant as whole numbers. */
function isOfType(value: unknown, type: unknown): boolean {
  if (value === null || typeof value !== 'object') {
    return (
      type === (value === null ? 'null' : typeof value) || (type === 'integer' && typeof value === 'number')
    )
  }
  return type === (Array.isArray(value) ? 'array' : 'object')
}

function faultsOf(
  schema: TSchema,
  error: TValidationError,
  value: unknown,
  { path: base = '', unnamed }: Place,
): Fault[] {
  const keys = error.instancePath.split('/').slice(1).map(unescapePointer)
  const path = pathOf(base, keys, value)
  switch (error.keyword) {
    case 'boolean':
      return []
    case UNKNOWN: {
      const all = Object.keys(membersOf(schemaAt(schema, error.schemaPath)))
      const known = error.instancePath === '' ? all.filter((name) => !unnamed?.has(name)) : all
      return error.params.additionalProperties.map((name) => ({
        path: joinPath(path, name),
        message: `the field "${name.slice(0, 80)}" is not known here; ${didYouMean(idMeant(name, known), known)}`,
      }))
    }
    case 'required':
      return error.params.requiredProperties.map((name) => ({
        path: joinPath(path, name),
        message: `"${name}" is missing`,
      }))
    default:
      return [{ path, message: sentence(schemaAt(schema, error.schemaPath), error, valueAt(value, keys)) }]
  }
}

function sentence(schema: unknown, error: TValidationError, value: unknown): string {
  switch (error.keyword) {
    case 'type':
      return `must be ${typeName(error.params.type)}, not ${kindOf(value)}`
    case 'enum':
      return oneOfSentence(error.params.allowedValues, value)
    case 'const':
      return oneOfSentence([error.params.allowedValue], value)
    case 'anyOf':
      return `must be ${alternatives(schema)}, not ${kindOf(value)}`
    case 'minimum':
      return `must be at least ${error.params.limit}`
    case 'maximum':
      return `must be at most ${error.params.limit}`
    case 'minLength':
      return error.params.limit === 1
        ? 'must not be empty'
        : `must have at least ${error.params.limit} characters`
    case 'maxLength':
      return `must have at most ${error.params.limit} characters`
    case 'minItems':
      return error.params.limit === 1 ? 'must not be empty' : `must have at least ${error.params.limit} items`
    case 'maxItems':
      return `must have at most ${error.params.limit} items`
    case 'uniqueItems':
      return 'must not hold the same item twice'
    case 'pattern':
      return `does not have the right form; ${text(member(schema, 'description')) ?? `expected ${error.params.pattern}`}`
    default:
      return `is not valid (${error.keyword})`
  }
}

function oneOfSentence(allowed: readonly unknown[], value: unknown): string {
  const list = allowed.map((item) => JSON.stringify(item)).join(', ')
  const must = `must be ${allowed.length === 1 ? list : `one of ${list}`}`
  if (typeof value !== 'string') return `${must}, not ${kindOf(value)}`
  const near = nearest(
    value,
    allowed.filter((item) => typeof item === 'string'),
  )
  return near === undefined ? must : `${must}; did you mean "${near}"?`
}

function typeName(type: string | readonly string[]): string {
  if (typeof type !== 'string') return type.map(typeName).join(' or ')
  const names: Record<string, string> = {
    string: 'text',
    integer: 'a whole number',
    array: 'a list',
    object: 'an object',
    null: 'null',
  }
  return names[type] ?? `a ${type}`
}

function alternatives(schema: unknown): string {
  const branches = member(schema, 'anyOf')
  if (!Array.isArray(branches)) return 'of another type'
  const names = branches.map((branch: unknown) => {
    const values = member(branch, 'enum')
    if (Array.isArray(values)) return values.map((item) => JSON.stringify(item)).join(', ')
    const only = member(branch, 'const')
    return only === undefined ? typeName(text(member(branch, 'type')) ?? 'value') : JSON.stringify(only)
  })
  return [...new Set(names)].join(' or ')
}

function schemaAt(schema: unknown, schemaPath: string): unknown {
  return schemaPath.split('/').slice(1).map(unescapePointer).reduce(member, schema)
}

function membersOf(schema: unknown): object {
  const properties = member(schema, 'properties')
  return typeof properties === 'object' && properties !== null ? properties : {}
}

function valueAt(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce(member, value)
}

function member(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  // `hasOwn` has confirmed that the key exists.
  return (value as Record<string, unknown>)[key]
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function pathOf(base: string, keys: readonly string[], value: unknown): string {
  let path = base
  let at = value
  for (const key of keys) {
    path = joinPath(path, Array.isArray(at) ? Number(key) : key)
    at = member(at, key)
  }
  return path
}

function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}

function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const next = [i]
    for (let j = 1; j <= right.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[right.length] ?? 0
}
