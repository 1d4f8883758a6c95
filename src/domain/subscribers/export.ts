import { stringify } from 'csv-stringify/sync'
import { sql } from 'kysely'

import type { ExportedSubscriber } from '../../../schema/subscriber.ts'
import type { Call } from '../../catalogue/tool.ts'
import { rows } from '../../database.ts'
import type { FieldScalar } from './fields.ts'
import { writeTagCell } from './tag-cell.ts'

/**
 * Returns subscribers as CSV (RFC 4180) with a column per custom field. A cell that a spreadsheet would run as a
 * formula gets an apostrophe in front.
 */
export async function toCsv(call: Call, subscribers: readonly ExportedSubscriber[]): Promise<string> {
  const names = await fieldNames(call)
  const lines = subscribers.map(({ email, name, phone, status, tags, customFields, createdAt }) => [
    email,
    name,
    phone,
    status,
    writeTagCell(tags),
    // As text, because the CSV library does not escape numbers, which may begin with a minus.
    ...names.map((field) => (Object.hasOwn(customFields, field) ? text(customFields[field]) : '')),
    createdAt,
  ])
  const header = [
    'email',
    'name',
    'phone',
    'status',
    'tags',
    ...names.map((name) => `customFields.${name}`),
    'createdAt',
  ]
  return stringify([header, ...lines], {
    escape_formulas: true,
    record_delimiter: 'windows',
  })
}

function text(value: FieldScalar | undefined): string {
  return value === undefined ? '' : String(value)
}

/** Returns the names of all custom fields, so that every export of an organization has the same columns. */
async function fieldNames({ em, organization }: Call): Promise<string[]> {
  const found = await rows<{ name: string }>(
    em,
    sql`select name from custom_field where organization_id = ${organization.id} order by name`,
  )
  return found.map(({ name }) => name)
}
