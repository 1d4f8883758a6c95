import type { SubscriberStatus } from '../../../schema/values.ts'
import type { NewEvent } from '../event-rows.ts'
import type { FieldPatch, FieldScalar } from './fields.ts'
import type { SubscriberRow } from './records.ts'

const COLUMNS = ['email', 'name', 'phone', 'country', 'ipAddress'] as const
type Column = (typeof COLUMNS)[number]

/** A validated change: the given columns, where null or '' clears, and custom fields. */
export type SubscriberPatch = { columns: Partial<Record<Column, string | null>>; fields: FieldPatch }

/**
 * Compares a change with a locked row. Returns the row after the change and an event for each difference, or null
 * without any. A changed IP address has no event: it is evidence, and no automation waits for it.
 */
export function changeOf(
  before: SubscriberRow,
  { columns, fields }: SubscriberPatch,
  status: SubscriberStatus,
): { after: SubscriberRow; events: NewEvent[] } | null {
  const changed = COLUMNS.filter(
    (column) => column in columns && (columns[column] || null) !== before[column],
  )
  const moved = [
    ...Object.entries(fields.set).filter(([name, value]) => fieldOf(before, name) !== value),
    ...fields.clear.filter((name) => fieldOf(before, name) !== null).map((name) => [name, null] as const),
  ]
  if (changed.length === 0 && moved.length === 0 && status === before.status) return null
  const after = { ...before, status, fields: { ...before.fields, ...fields.set } }
  for (const column of changed) Object.assign(after, { [column]: columns[column] || null })
  for (const name of fields.clear) delete after.fields[name]
  const subscriberId = before.id
  const updates = [
    ...changed
      .filter((column) => column !== 'ipAddress')
      .map((field) => ({ field, custom: false, from: before[field], to: after[field] })),
    ...moved.map(([field, to]) => ({ field, custom: true, from: fieldOf(before, field), to })),
  ]
  return { after, events: updates.map((data) => ({ subscriberId, type: 'FIELD_UPDATED', data })) }
}

function fieldOf({ fields }: SubscriberRow, name: string): FieldScalar | null {
  return Object.hasOwn(fields, name) ? (fields[name] ?? null) : null
}
