import { sql } from 'kysely'

import { type CustomField, SUBSCRIBER_LIMITS } from '../../../schema/subscriber.ts'
import type { FieldType } from '../../../schema/values.ts'
import { type Fault, refuseFaults } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { BUILT_IN_VARIABLES, CONFIRM_VARIABLE } from '../../content/variables.ts'
import { array, execute, rows } from '../../database.ts'
import { encodeId, newId } from '../../ids.ts'
import { readMoment } from '../audience/moment.ts'
import { characters, timestamp } from '../text.ts'

/** The stored value of a custom field. */
export type FieldScalar = string | number | boolean

/** The custom field changes of a request: values to set, in stored form, and names to clear. */
export type FieldPatch = { set: Record<string, FieldScalar>; clear: string[] }

type Definitions = Map<string, FieldType>

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
 * fields get their type from `types`, or from their first value.
 */
export async function resolveFieldsOf(
  call: Call,
  people: readonly (Record<string, unknown> | undefined)[],
  types: ReadonlyMap<string, FieldType> = new Map(),
): Promise<{ patch: FieldPatch; faults: Fault[] }[]> {
  const entriesOf = people.map((fields) => Object.entries(fields ?? {}))
  const shapes = entriesOf.map((entries) => shapeFaults(entries))
  const samples = new Map<string, FieldScalar>()
  entriesOf.forEach((entries, index) => {
    if (shapes[index]?.length) return
    for (const [name, value] of entries) {
      if (isScalar(value) && !samples.has(name)) samples.set(name, value)
    }
  })
  const definitions = await definitionsFor(call, [...samples], types)
  return entriesOf.map((entries, index) => {
    const faults = shapes[index] ?? []
    return faults.length > 0
      ? { patch: { set: {}, clear: [] }, faults }
      : toPatch(entries, definitions, call.organization.timezone)
  })
}

function toPatch(
  entries: readonly [string, unknown][],
  definitions: Definitions,
  timeZone: string,
): { patch: FieldPatch; faults: Fault[] } {
  const faults: Fault[] = []
  const patch: FieldPatch = { set: {}, clear: [] }
  for (const [name, value] of entries) {
    if (!isScalar(value)) {
      patch.clear.push(name)
      continue
    }
    const type = definitions.get(name)
    const stored = storedValue(value, type, timeZone)
    if (stored === null) faults.push(type ? typeFault(name, value, type) : tooManyFault(name))
    else patch.set[name] = stored
  }
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

/** Returns the types of the given fields. Creates missing definitions up to the organization's limit. */
async function definitionsFor(
  call: Call,
  given: readonly [string, FieldScalar][],
  hints: ReadonlyMap<string, FieldType>,
): Promise<Definitions> {
  if (given.length === 0) return new Map()
  const known = await readDefinitions(call, given)
  const missing = given.filter(([name]) => !known.has(name))
  if (missing.length === 0) return known
  // The lock lets one transaction at a time add definitions, so that they stay within the limit.
  await execute(call.em, sql`select pg_advisory_xact_lock(${FIELD_LOCK}, hashtext(${call.organization.id}))`)
  return await createDefinitions(call, given, missing, hints)
}

async function readDefinitions(
  { em, organization }: Call,
  given: readonly [string, FieldScalar][],
): Promise<Definitions> {
  const names = given.map(([name]) => name)
  const found = await rows<{ name: string; type: FieldType }>(
    em,
    sql`select name, type from custom_field
      where organization_id = ${organization.id} and name = any(${array(names, 'text')})`,
  )
  return new Map(found.map(({ name, type }) => [name, type]))
}

async function createDefinitions(
  call: Call,
  given: readonly [string, FieldScalar][],
  missing: readonly [string, FieldScalar][],
  hints: ReadonlyMap<string, FieldType>,
): Promise<Definitions> {
  const { em, organization } = call
  const most = SUBSCRIBER_LIMITS.fieldDefinitions
  const ids = missing.map(() => newId())
  const names = missing.map(([name]) => name)
  const types = missing.map(([name, value]) => hints.get(name) ?? typeOf(value, organization.timezone))
  await execute(
    em,
    sql`insert into custom_field (id, organization_id, name, type)
      select wanted.id, ${organization.id}, wanted.name, wanted.type
      from unnest(${array(ids, 'uuid')}, ${array(names, 'text')}, ${array(types, 'text')})
        with ordinality as wanted (id, name, type, position)
      where not exists (select from custom_field known
        where known.organization_id = ${organization.id} and known.name = wanted.name)
      order by wanted.position
      limit greatest(0, ${most} - (select count(*) from custom_field where organization_id = ${organization.id}))
      on conflict (organization_id, name) do nothing`,
  )
  return await readDefinitions(call, given)
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
function storedValue(value: FieldScalar, type: FieldType | undefined, timeZone: string): FieldScalar | null {
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
