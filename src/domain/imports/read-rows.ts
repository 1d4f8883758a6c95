import type { ImportedStatus } from '../../../schema/import.ts'
import { SUBSCRIBER_LIMITS } from '../../../schema/subscriber.ts'
import type { FieldType } from '../../../schema/values.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { FaultyItem } from '../../catalogue/input.ts'
import type { Call } from '../../catalogue/tool.ts'
import { newId } from '../../ids.ts'
import { readCountry, readEmail, readPhone } from '../addresses.ts'
import type { SubscriberPatch } from '../subscribers/changes.ts'
import { resolveFieldsOf } from '../subscribers/fields.ts'
import { readTagNames } from '../subscribers/tags.ts'
import { oneLine } from '../text.ts'

/** A row of a list as given; absent members stay, an empty string clears. */
export type ImportRow = {
  email: string
  name?: string | undefined
  phone?: string | undefined
  country?: string | undefined
  tags?: readonly string[] | undefined
  fields?: Record<string, unknown> | undefined
  status?: ImportedStatus | undefined
}

/** The reason a row was rejected, with its index. */
export type ImportError = { index: number; email: string; error: string }

/** The merged rows of one address, where later rows win; `indexes` are their indexes. */
export type ImportedPerson = SubscriberPatch & {
  /** The uuid they get if they are new. */
  id: string
  email: string
  tags: Map<string, string>
  status: ImportedStatus | undefined
  indexes: number[]
}

/** Validates each row and merges the rows of one address. */
export async function readRows(
  call: Call,
  given: readonly (ImportRow | FaultyItem)[],
  types?: ReadonlyMap<string, FieldType>,
): Promise<{ people: ImportedPerson[]; errors: ImportError[] }> {
  const errors: ImportError[] = []
  const read: { index: number; row: ImportRow; columns: SubscriberPatch['columns']; tags: string[] }[] = []
  given.forEach((row, index) => {
    if ('faults' in row) return errors.push(shapeError(row, index))
    try {
      readEmail(row.email, 'email')
      read.push({ index, row, columns: readColumns(row), tags: readTags(row.tags) })
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      errors.push({ index, email: row.email, error: error.message })
    }
  })
  const resolved = await resolveFieldsOf(
    call,
    read.map(({ row }) => row.fields),
    types,
  )
  const people = new Map<string, ImportedPerson>()
  read.forEach(({ index, row, columns, tags }, position) => {
    const { patch: fields, faults = [] } = resolved[position] ?? {}
    if (!fields || faults.length > 0) {
      const error = faults.map(({ path, message }) => `${path} ${message}`).join('; ')
      return errors.push({ index, email: row.email, error: `${error}.` })
    }
    const key = row.email.toLowerCase()
    const person = people.get(key)
    if (person) return merge(person, { index, row, columns, tags, fields })
    people.set(key, {
      id: newId(),
      email: row.email,
      columns,
      fields,
      tags: new Map(tags.map((name) => [name.toLowerCase(), name])),
      status: row.status,
      indexes: [index],
    })
  })
  return { people: [...people.values()], errors }
}

/** How many reasons are given for an item of a list that is no row: a call may have 500 of them. */
const REASONS_SHOWN = 3

/** Returns why an item of a list is no row. */
function shapeError({ faults, item }: FaultyItem, index: number): ImportError {
  const email: unknown = Object(item).email
  const reasons = faults
    .slice(0, REASONS_SHOWN)
    .map(({ path, message }) => (path === '' ? `the row ${message}` : `${path.slice(0, 100)}: ${message}`))
  const more = faults.length - reasons.length
  if (more > 0) reasons.push(`and ${more} more`)
  return { index, email: typeof email === 'string' ? email : '', error: `${reasons.join('; ')}.` }
}

type Later = Pick<SubscriberPatch, 'columns' | 'fields'> & { index: number; row: ImportRow; tags: string[] }

function merge(person: ImportedPerson, { index, row, columns, tags, fields }: Later): void {
  Object.assign(person.columns, columns)
  const cleared = new Set(fields.clear)
  const kept = Object.entries(person.fields.set).filter(([name]) => !cleared.has(name))
  person.fields = {
    set: { ...Object.fromEntries(kept), ...fields.set },
    clear: [...person.fields.clear.filter((name) => !Object.hasOwn(fields.set, name)), ...fields.clear],
  }
  for (const name of tags) person.tags.set(name.toLowerCase(), name)
  person.status = row.status ?? person.status
  person.indexes.push(index)
}

function readColumns({ name, phone, country }: ImportRow): SubscriberPatch['columns'] {
  const columns: SubscriberPatch['columns'] = {}
  if (name !== undefined) columns.name = blankToNull(oneLine(name, 'name', SUBSCRIBER_LIMITS.name))
  if (phone !== undefined) columns.phone = blankToNull(readPhone(phone, 'phone'))
  if (country !== undefined) columns.country = country && readCountry(country, 'country')
  return columns
}

function readTags(tags: readonly string[] | undefined): string[] {
  if (tags === undefined || tags.length === 0) return []
  if (tags.length <= SUBSCRIBER_LIMITS.tags) return readTagNames(tags, 'tags')
  throw new Failure(
    'INVALID_INPUT',
    `tags has ${tags.length} names; a person gets at most ${SUBSCRIBER_LIMITS.tags} in one row.`,
  )
}

function blankToNull(text: string): string | null {
  return text.trim() === '' ? null : text
}
