import { IMPORTED_STATUSES, type ImportedStatus } from '../../../schema/import.ts'
import type { FieldType } from '../../../schema/values.ts'
import { readMoment } from '../audience/moment.ts'
import type { FieldScalar } from '../subscribers/fields.ts'
import { readTagCell } from '../subscribers/tag-cell.ts'
import type { Target } from './columns.ts'
import type { ImportRow } from './read-rows.ts'

/** Values that every row gets in addition to its cells. */
export type RowDefaults = { status: ImportedStatus | undefined; tags: readonly string[] }

const FIELDS = 'fields.'
const YES = new Set(['true', 'yes', '1'])
const NO = new Set(['false', 'no', '0'])

/**
 * Returns the types of custom fields: known fields keep theirs, new ones get the strictest type that fits all cells.
 */
export function typesFor(
  records: readonly (readonly string[])[],
  columns: readonly (Target | null)[],
  known: ReadonlyMap<string, FieldType>,
  timeZone: string,
): Map<string, FieldType> {
  const types = new Map(known)
  columns.forEach((target, index) => {
    if (!target?.startsWith(FIELDS)) return
    const name = target.slice(FIELDS.length)
    if (types.has(name)) return
    const cells = records.map((cells) => cells[index] ?? '').filter((cell) => cell !== '')
    if (cells.length > 0) types.set(name, typeOf(cells, timeZone))
  })
  return types
}

/** Returns the type of cells. Text such as "007" or "+1" is no number, because it would not read back the same. */
function typeOf(cells: readonly string[], timeZone: string): FieldType {
  if (cells.every((cell) => String(Number(cell)) === cell && Number.isFinite(Number(cell)))) return 'number'
  if (cells.every((cell) => /^(?:true|false)$/i.test(cell))) return 'boolean'
  if (cells.every((cell) => readMoment(cell, timeZone))) return 'date'
  return 'string'
}

/** Converts a record to a row, or returns why it is invalid. Empty cells change nothing. */
export function toRow(
  cells: readonly string[],
  columns: readonly (Target | null)[],
  types: ReadonlyMap<string, FieldType>,
  { status, tags }: RowDefaults,
): ImportRow | { error: string } {
  if (cells.length > columns.length && cells.slice(columns.length).some((cell) => cell !== '')) {
    const error = `has ${cells.length} cells, and the file ${columns.length} columns; put cells that hold the delimiter in quotes.`
    return { error: `The row ${error}` }
  }
  const row: ImportRow = { email: '', status }
  const fields: Record<string, FieldScalar> = {}
  const names: string[] = []
  const labels = [...tags]
  for (const [index, target] of columns.entries()) {
    const cell = cells[index] ?? ''
    if (target === null || cell === '') continue
    if (target === 'name') names.push(cell)
    else if (target === 'tags') labels.push(...readTagCell(cell))
    else if (target === 'country') row.country = cell.toUpperCase()
    else if (target === 'status') {
      const found = IMPORTED_STATUSES.find((each) => each === cell.toUpperCase())
      if (!found)
        return { error: `status is ${JSON.stringify(cell.slice(0, 40))}; use SUBSCRIBED or UNSUBSCRIBED.` }
      row.status = found
    } else if (target === 'email' || target === 'phone') row[target] = cell
    else {
      const name = target.slice(FIELDS.length)
      fields[name] = toScalar(cell, types.get(name))
    }
  }
  if (names.length > 0) row.name = names.join(' ')
  if (labels.length > 0) row.tags = labels
  return { ...row, fields }
}

/** Converts a cell to its type. A cell of another type stays text, so that validation can report it. */
function toScalar(cell: string, type: FieldType | undefined): FieldScalar {
  if (type === 'number' && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(cell)) return Number(cell)
  if (type !== 'boolean') return cell
  const word = cell.toLowerCase()
  return YES.has(word) || (NO.has(word) ? false : cell)
}
