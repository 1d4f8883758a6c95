import { sql } from 'kysely'

import { type CustomField, SUBSCRIBER_LIMITS } from '../../../schema/subscriber.ts'
import type { FieldType } from '../../../schema/values.ts'
import { type Fault, refuseFaults } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { BUILT_IN_VARIABLES, CONFIRM_VARIABLE } from '../../content/variables.ts'
import { array, execute, row, rows } from '../../database.ts'
import { encodeId, newId } from '../../ids.ts'
import { readMoment } from '../audience/moment.ts'
import { characters, timestamp } from '../text.ts'

/** The stored value of a custom field. */
export type FieldScalar = string | number | boolean

/** The custom field changes of a request: values to set, in stored form, and names to clear. */
export type FieldPatch = { set: Record<string, FieldScalar>; clear: string[] }

/** The custom fields of the organization that a request names, and those that it makes. */
type Known = {
  types: Map<string, FieldType>
  /** How many more fields the organization may have. */
  room: number
  made: [string, FieldType][]
}

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const CONTROL = /\p{Cc}/u
// Custom fields and content variables share one namespace.
const TAKEN = new Map(
  [...BUILT_IN_VARIABLES.map(({ name }) => name), CONFIRM_VARIABLE].map((name) => [name.toLowerCase(), name]),
)
const FIELD_LOCK = 7_305_101

/**
 * Validates the `fields` of a request, creates missing definitions with the type of their value, and returns the patch
 * in stored form. Throws `INVALID_INPUT` with all faults.
 */
export async function resolveFields(
  call: Call,
  fields: Record<string, unknown> | undefined,
): Promise<FieldPatch> {
  const [resolved] = await resolveFieldsOf(call, [fields])
  if (!resolved) throw new Error('a request has one set of fields')
  if (resolved.faults.length > 0) refuseFaults(resolved.faults)
  return resolved.patch
}

/**
 * Does the same as `resolveFields` for many people in a few statements, and returns faults instead of throwing. New
 * fields get their type from `types`, or from their first value among people without faults.
 */
export async function resolveFieldsOf(
  call: Call,
  people: readonly (Record<string, unknown> | undefined)[],
  types: ReadonlyMap<string, FieldType> = new Map(),
): Promise<{ patch: FieldPatch; faults: Fault[] }[]> {
  const given = people.map((fields) => {
    const entries = Object.entries(fields ?? {})
    return { entries, faults: shapeFaults(entries) }
  })
  const sound = given.filter(({ faults }) => faults.length === 0).flatMap(({ entries }) => entries)
  const known = await readKnown(
    call,
    new Set(sound.filter(([, value]) => isScalar(value)).map(([name]) => name)),
  )
  const resolved = given.map(({ entries, faults }) =>
    faults.length > 0 ? { patch: { set: {}, clear: [] }, faults } : toPatch(call, entries, known, types),
  )
  await makeFields(call, known.made)
  return resolved
}

/** Returns the patch of one person. Without faults, the fields that it would make become known. */
function toPatch(
  { organization: { timezone } }: Call,
  entries: readonly [string, unknown][],
  known: Known,
  hints: ReadonlyMap<string, FieldType>,
): { patch: FieldPatch; faults: Fault[] } {
  const faults: Fault[] = []
  const patch: FieldPatch = { set: {}, clear: [] }
  const fresh: [string, FieldType][] = []
  for (const [name, value] of entries) {
    if (!isScalar(value)) {
      patch.clear.push(name)
      continue
    }
    const type = known.types.get(name) ?? hints.get(name) ?? typeOf(value, timezone)
    if (!known.types.has(name)) fresh.push([name, type])
    const stored = storedValue(value, type, timezone)
    if (stored === null) faults.push(typeFault(name, value, type))
    else patch.set[name] = stored
  }
  faults.push(...fresh.slice(known.room).map(([name]) => tooManyFault(name)))
  if (faults.length > 0) return { patch, faults }
  for (const [name, type] of fresh) known.types.set(name, type)
  known.room -= fresh.length
  known.made.push(...fresh)
  return { patch, faults }
}

/** Lists the organization's custom fields by name. */
export async function listFields({ em, organization }: Call): Promise<CustomField[]> {
  const found = await rows<CustomField>(
    em,
    sql`select id, name, type, created_at as "createdAt" from custom_field
      where organization_id = ${organization.id} order by name`,
  )
  return found.map((field) => ({
    ...field,
    id: encodeId('fld', field.id),
    createdAt: timestamp(field.createdAt),
  }))
}

/** Whether the name is allowed for a custom field. */
export function isFieldName(name: string): boolean {
  return NAME.test(name) && !TAKEN.has(name.toLowerCase())
}

/** Returns faults of names and values that can be found without the definitions. */
export function shapeFaults(entries: readonly [string, unknown][], at = 'fields'): Fault[] {
  return entries.flatMap(([name, value]): Fault[] => {
    const path = `${at}.${name}`
    const taken = TAKEN.get(name.toLowerCase())
    if (!NAME.test(name)) {
      const message = 'is not a field name: begin with a letter, then up to 63 letters, digits, "_" or "-"'
      return [{ path: path.slice(0, 100), message }]
    }
    if (taken)
      return [{ path, message: `has the name of the built-in variable ${taken}; choose another name` }]
    const message = value === null ? null : scalarFault(value)
    return message === null ? [] : [{ path, message }]
  })
}

/** A type guard for values that passed `shapeFaults`, where only null is not a scalar. */
function isScalar(value: unknown): value is FieldScalar {
  return value !== null
}

function scalarFault(value: unknown): string | null {
  if (typeof value === 'boolean') return null
  if (typeof value === 'number') return Number.isFinite(value) ? null : 'must be a finite number'
  if (typeof value !== 'string') return 'must be text, a number, true, false or null'
  if (CONTROL.test(value) || !value.isWellFormed()) return 'holds a control character; send one line of text'
  const most = SUBSCRIBER_LIMITS.fieldText
  return characters(value) > most ? `is longer than ${most} characters; shorten it` : null
}

/** Reads the types of the named fields. If some are missing, others can make fields only after this transaction. */
async function readKnown(call: Call, names: ReadonlySet<string>): Promise<Known> {
  const types = await readTypes(call, names)
  if (types.size === names.size) return { types, room: 0, made: [] }
  const { em, organization } = call
  await execute(em, sql`select pg_advisory_xact_lock(${FIELD_LOCK}, hashtext(${organization.id}))`)
  const counted = await row<{ count: number }>(
    em,
    sql`select count(*)::int as count from custom_field where organization_id = ${organization.id}`,
  )
  const room = Math.max(0, SUBSCRIBER_LIMITS.fieldDefinitions - (counted?.count ?? 0))
  return { types: await readTypes(call, names), room, made: [] }
}

async function readTypes(
  { em, organization }: Call,
  names: ReadonlySet<string>,
): Promise<Map<string, FieldType>> {
  if (names.size === 0) return new Map()
  const found = await rows<{ name: string; type: FieldType }>(
    em,
    sql`select name, type from custom_field
      where organization_id = ${organization.id} and name = any(${array([...names], 'text')})`,
  )
  return new Map(found.map(({ name, type }) => [name, type]))
}

async function makeFields({ em, organization }: Call, fields: readonly [string, FieldType][]): Promise<void> {
  if (fields.length === 0) return
  const ids = fields.map(() => newId())
  const names = fields.map(([name]) => name)
  const types = fields.map(([, type]) => type)
  await execute(
    em,
    sql`insert into custom_field (id, organization_id, name, type)
      select id, ${organization.id}, name, type
      from unnest(${array(ids, 'uuid')}, ${array(names, 'text')}, ${array(types, 'text')}) as made (id, name, type)`,
  )
}

/** Returns the type that a new field gets from its first value. */
export function typeOf(value: FieldScalar, timeZone: string): FieldType {
  if (typeof value === 'number') return 'number'
  if (typeof value === 'boolean') return 'boolean'
  return readMoment(value, timeZone) ? 'date' : 'string'
}

/** Returns faults for values that do not fit the type of their field; unknown names accept any value. */
export function typeFaults(
  given: readonly [string, unknown][],
  types: ReadonlyMap<string, FieldType>,
  at: string,
): Fault[] {
  return given.flatMap(([name, value]) => {
    const type = types.get(name)
    if (!type || !isScalar(value) || storedValue(value, type, 'UTC') !== null) return []
    return [{ ...typeFault(name, value, type), path: `${at}.${name}` }]
  })
}

/** Returns why a field of this type never holds exactly this value, or null if it can. */
export function storedFault(value: FieldScalar, type: FieldType, timeZone: string): string | null {
  const stored = storedValue(value, type, timeZone)
  if (stored === null) return typeFault('', value, type).message
  return stored === value ? null : `is stored as ${JSON.stringify(stored)}; write that`
}

/** Returns the stored form, or null when the value has another type. A date with a time becomes an instant in UTC. */
function storedValue(value: FieldScalar, type: FieldType, timeZone: string): FieldScalar | null {
  if (type !== 'date') return typeof value === type ? value : null
  const moment = typeof value === 'string' ? readMoment(value, timeZone) : null
  if (!moment || typeof value !== 'string') return null
  return moment.end === null ? new Date(moment.start).toISOString() : value
}

function tooManyFault(name: string): Fault {
  const most = SUBSCRIBER_LIMITS.fieldDefinitions
  return {
    path: `fields.${name}`,
    message: `would be a new custom field, and an organization has at most ${most}; use existing ones (get_custom_fields lists them)`,
  }
}

function typeFault(name: string, value: FieldScalar, type: FieldType): Fault {
  const expected = type === 'date' ? 'an ISO 8601 date, such as "2027-03-01"' : `a ${type}`
  const sent = typeof value === 'string' ? 'text' : `a ${typeof value}`
  return {
    path: `fields.${name}`,
    message: `must be ${expected}, not ${sent}, because the field has the type ${type}`,
  }
}
