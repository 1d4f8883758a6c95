import { sql } from 'kysely'

import type { ImportProgress } from '../../../temporal/contract.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { type Scope, unitOfWork } from '../../catalogue/unit-of-work.ts'
import { execute, row } from '../../database.ts'
import type { Services } from '../../services.ts'
import { customFieldTypes } from '../audience/references.ts'
import type { WorkControl } from '../work-control.ts'
import { cleanCell, type CsvRecord, readPages } from './csv-file.ts'
import { toRow, typesFor } from './csv-rows.ts'
import { importRows } from './import-rows.ts'
import type { ImportRow } from './read-rows.ts'
import { endImport, findImport, type ImportRecord, progressOf } from './records.ts'
import { keepRejections, type Rejection } from './rejections.ts'
import { CHUNK_BYTES } from './upload.ts'

/** Rows per transaction: enough to be fast, few enough to hold locks for only a fraction of a second. */
const PAGE_ROWS = 500
/** How long one activity attempt works, about, so that the workflow history shows progress. */
const SLICE_MS = 10_000

/**
 * Applies pages for up to `SLICE_MS`. Each page and its checkpoint are one transaction under the lock of the import, so
 * a crash neither repeats nor skips a row. An attempt stops when another one has moved the checkpoint.
 */
export async function applyImport(
  services: Services,
  { organizationId, importId }: { organizationId: string; importId: string },
  { report, isStopping }: WorkControl<ImportProgress>,
): Promise<ImportProgress> {
  const scope: Scope = { organizationId, actor: { kind: 'import', id: importId, name: 'import' } }
  const within = <Result>(work: (call: Call) => Promise<Result>) => unitOfWork(services, scope, work)
  let record = await within((call) => begin(call, importId))
  if (record.status !== 'RUNNING') return progressOf(record)
  scope.actor.name = `import by ${record.actor.name}`
  const until = Date.now() + SLICE_MS
  const { delimiter } = record.settings
  const pieces = chunksFrom(services, scope, record)
  try {
    for await (const page of readPages(pieces, { delimiter, from: record.nextByte, size: PAGE_ROWS })) {
      const before = record
      record = await within((call) => applyPage(call, importId, before, page))
      if (record.status !== 'RUNNING') return progressOf(record)
      report(progressOf(record))
      if (Date.now() > until || isStopping()) return progressOf(record)
    }
    return await within((call) => finish(call, importId, record.nextByte, null))
  } catch (error) {
    const now = await within((call) => findImport(call, importId))
    if (now.status !== 'RUNNING') return progressOf(now)
    if (!(error instanceof Failure) || error.code !== 'INVALID_INPUT') throw error
    return await within((call) => finish(call, importId, record.nextByte, error.message))
  }
}

async function begin(call: Call, importId: string): Promise<ImportRecord> {
  const record = await findImport(call, importId, { lock: true })
  if (record.status !== 'PENDING') return record
  await execute(
    call.em,
    sql`update subscriber_import set status = 'RUNNING', started_at = now()
      where organization_id = ${call.organization.id} and id = ${record.id}`,
  )
  return { ...record, status: 'RUNNING' }
}

async function finish(
  call: Call,
  importId: string,
  nextByte: number,
  error: string | null,
): Promise<ImportProgress> {
  const record = await findImport(call, importId, { lock: true })
  if (record.status === 'RUNNING') {
    checkPlace(record, nextByte)
    await endImport(call, record, error === null ? 'COMPLETED' : 'FAILED', error)
  }
  return progressOf(await findImport(call, importId))
}

async function applyPage(
  call: Call,
  importId: string,
  { nextByte }: ImportRecord,
  page: readonly CsvRecord[],
): Promise<ImportRecord> {
  const record = await findImport(call, importId, { lock: true })
  if (record.status !== 'RUNNING') return record
  checkPlace(record, nextByte)
  const { settings } = record
  const { status, tags, columns, resubscribe, triggerWorkflows } = settings
  const records = page.map(({ cells }) => cells.map(cleanCell))
  const known = await customFieldTypes(call.em, call.organization.id)
  const types = typesFor(records, columns, known, call.organization.timezone)
  const rejections: Rejection[] = []
  const given: { row: ImportRow; index: number }[] = []
  // The header is row 1.
  const reject = (index: number, error: string) =>
    rejections.push({ rowNumber: record.rows + index + 2, cells: records[index] ?? [], error })
  records.forEach((cells, index) => {
    const row = toRow(cells, columns, types, { status, tags })
    if ('error' in row) reject(index, row.error)
    else given.push({ row, index })
  })
  const outcome = await importRows(
    call,
    given.map((each) => each.row),
    { resubscribe, triggerWorkflows, types },
  )
  for (const { index, error } of outcome.errors) reject(given[index]?.index ?? 0, error)
  await keepRejections(call, record.id, rejections)
  return await moveOn(call, record, {
    nextByte: page.at(-1)?.end ?? nextByte,
    rows: page.length,
    imported: outcome.imported,
    updated: outcome.updated,
    failed: rejections.length,
  })
}

type Move = Pick<ImportRecord, 'nextByte' | 'rows' | 'imported' | 'updated' | 'failed'>

async function moveOn({ em, organization }: Call, record: ImportRecord, move: Move): Promise<ImportRecord> {
  const moved = {
    nextByte: move.nextByte,
    rows: record.rows + move.rows,
    imported: record.imported + move.imported,
    updated: record.updated + move.updated,
    failed: record.failed + move.failed,
  }
  await execute(
    em,
    sql`update subscriber_import set next_byte = ${moved.nextByte}, rows = ${moved.rows},
        imported = ${moved.imported}, updated = ${moved.updated}, failed = ${moved.failed}
      where organization_id = ${organization.id} and id = ${record.id}`,
  )
  return { ...record, ...moved }
}

/** Throws when another attempt has moved the checkpoint, so that only one attempt continues. */
function checkPlace({ nextByte }: ImportRecord, expected: number): void {
  if (nextByte !== expected) throw new Error('another attempt moved the import on')
}

/** Yields the file from the checkpoint on. */
async function* chunksFrom(
  services: Services,
  scope: Scope,
  { id, nextByte, bytes }: ImportRecord,
): AsyncGenerator<Buffer> {
  for (let at = nextByte; at < bytes;) {
    const firstByte = at - (at % CHUNK_BYTES)
    const found = await unitOfWork(
      services,
      scope,
      ({ em }) =>
        row<{ content: Buffer }>(
          em,
          sql`select content from import_chunk
            where organization_id = ${scope.organizationId} and import_id = ${id} and first_byte = ${firstByte}`,
        ),
      { readOnly: true },
    )
    if (!found) throw new Error('a piece of the file is gone: the import has ended meanwhile')
    yield found.content.subarray(at - firstByte)
    at = firstByte + CHUNK_BYTES
  }
}

/** Cancels the import because an operator canceled its workflow. */
export async function cancelByOperator(call: Call, importId: string): Promise<ImportProgress> {
  const record = await findImport(call, importId, { lock: true })
  if (record.status === 'PENDING' || record.status === 'RUNNING') await endImport(call, record, 'CANCELED')
  return progressOf(await findImport(call, importId))
}
