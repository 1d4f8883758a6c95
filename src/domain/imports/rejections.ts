import { stringify } from 'csv-stringify/sync'
import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { column, execute, rows } from '../../database.ts'
import { REJECTED_COLUMNS } from './columns.ts'
import { findImport } from './records.ts'

/** A rejected row: its number in the file (the header is row 1), its cells and the reason. */
export type Rejection = { rowNumber: number; cells: readonly string[]; error: string }

const PAGE = 1_000

/** Stores rejected rows, in the transaction that skipped them. */
export async function keepRejections(
  { em, organization }: Call,
  importId: string,
  rejections: readonly Rejection[],
): Promise<void> {
  if (rejections.length === 0) return
  await execute(
    em,
    sql`insert into import_rejection (organization_id, import_id, row_number, cells, error)
      select ${organization.id}, ${importId}, row_number, cells, error from unnest(
        ${column(rejections, ({ rowNumber }) => rowNumber, 'int')},
        ${column(rejections, ({ cells }) => cells.map(withoutNul), 'jsonb')},
        ${column(rejections, ({ error }) => error, 'text')}
      ) as given (row_number, cells, error)`,
  )
}

/** PostgreSQL cannot store NUL. It is removed and not replaced, so that the row can be sent again as it was meant. */
function withoutNul(cell: string): string {
  return cell.replaceAll('\u0000', '')
}

/**
 * Returns a page of rejected rows as CSV: the columns of the file, then the row number and the error, then the cells
 * that the row has too many. A cell that a spreadsheet would run as a formula gets an apostrophe in front, which
 * another import removes.
 */
export async function rejectedAsCsv(
  call: Call,
  importId: string,
  after: number | undefined,
): Promise<{ csv: string; next: number | null }> {
  const { id, settings } = await findImport(call, importId)
  const found = await rows<Rejection>(
    call.em,
    sql`select row_number as "rowNumber", cells, error from import_rejection
      where organization_id = ${call.organization.id} and import_id = ${id} and row_number > ${after ?? 0}
      order by row_number limit ${PAGE}`,
  )
  const width = settings.header.length
  const lines = found.map(({ rowNumber, cells, error }) => [
    ...Array.from({ length: width }, (_, index) => cells[index] ?? ''),
    String(rowNumber),
    error,
    ...cells.slice(width),
  ])
  const head = after === undefined ? [[...settings.header, ...REJECTED_COLUMNS]] : []
  const csv = stringify([...head, ...lines], { escape_formulas: true, record_delimiter: 'windows' })
  return { csv, next: found.length === PAGE ? (found.at(-1)?.rowNumber ?? null) : null }
}
