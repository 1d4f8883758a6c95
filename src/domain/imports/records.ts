import { sql } from 'kysely'

import type { ImportedStatus, ImportStatus, SubscriberImport } from '../../../schema/import.ts'
import {
  importWorkflowId,
  type ImportProgress,
  type ImportRequest,
  SUBSCRIBER_IMPORT,
} from '../../../temporal/contract.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Actor, Call } from '../../catalogue/tool.ts'
import { execute, row, rows } from '../../database.ts'
import { decodeId, encodeId, missing } from '../../ids.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { timestamp, timestampOrNull } from '../text.ts'
import type { Target } from './columns.ts'

/** How a file is read and what every row gets; stored with the import. */
export type ImportSettings = {
  header: string[]
  columns: (Target | null)[]
  delimiter: string
  headerBytes: number
  resubscribe: boolean
  triggerWorkflows: boolean
  status?: ImportedStatus | undefined
  tags: string[]
}

/** An import as the database returns it; `id` is a uuid. */
export type ImportRecord = {
  id: string
  status: ImportStatus
  settings: ImportSettings
  actor: Actor
  bytes: number
  sha256: string
  nextByte: number
  rows: number
  imported: number
  updated: number
  failed: number
  error: string | null
  createdAt: string
  startedAt: string | null
  finishedAt: string | null
}

const COLUMNS = sql`id, status, settings, actor, bytes::float8 as bytes, sha256, next_byte::float8 as "nextByte", rows,
  imported, updated, failed, error, created_at as "createdAt", started_at as "startedAt", finished_at as "finishedAt"`

/** Returns an import by TypeID. Throws `NOT_FOUND` for an unknown or unfinished upload. `lock` locks the row. */
export async function findImport(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  importId: string,
  options: { lock?: boolean } = {},
): Promise<ImportRecord> {
  const found = await row<ImportRecord>(
    em,
    sql`select ${COLUMNS} from subscriber_import
      where organization_id = ${organization.id} and id = ${decodeId('imp', importId)} and status <> 'UPLOADING'
      ${options.lock ? sql`for update` : sql``}`,
  )
  return found ?? missing('imp', importId)
}

/** Turns a completely stored upload into an import and starts its workflow. */
export async function startImport(
  call: Call,
  { id, digest }: { id: string; digest: string },
): Promise<SubscriberImport> {
  const { em, organization } = call
  await execute(
    em,
    sql`update subscriber_import set status = 'PENDING', sha256 = ${digest}
      where organization_id = ${organization.id} and id = ${id} and status = 'UPLOADING'`,
  )
  const record = await findImport(call, encodeId('imp', id))
  startWorkflow(call, record)
  return presentImport(call, record)
}

/**
 * Starts the workflow of an import when the transaction has committed. `restart` starts it even if one has completed.
 */
export function startWorkflow(
  call: Call,
  { id, bytes }: Pick<ImportRecord, 'id' | 'bytes'>,
  { restart = false } = {},
): void {
  const importId = encodeId('imp', id)
  const input: ImportRequest = { organizationId: encodeId('org', call.organization.id), importId }
  const summary = `Import of ${(bytes / 1_000_000).toFixed(1)} MB · ${importId}`
  call.emit({
    kind: 'start',
    workflowId: importWorkflowId(importId),
    payload: { workflow: SUBSCRIBER_IMPORT, input, summary, restart },
  })
}

/** Lists imports by keyset, newest first. */
export async function browseImports(
  call: Call,
  asked: Walk,
): Promise<{ imports: SubscriberImport[]; hasMore: boolean }> {
  const { em, organization } = call
  const walk = readWalk('imp', asked)
  const found = await rows<ImportRecord>(
    em,
    sql`select ${COLUMNS} from subscriber_import where organization_id = ${organization.id}
      and status <> 'UPLOADING' ${walk.part(sql`id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { imports: page.map((record) => presentImport(call, record)), hasMore }
}

/** Cancels an import: applied rows stay, the rest of the file is deleted. */
export async function cancelImport(call: Call, importId: string): Promise<SubscriberImport> {
  const record = await findImport(call, importId, { lock: true })
  if (record.status !== 'PENDING' && record.status !== 'RUNNING') {
    throw new Failure(
      'WRONG_STATE',
      `The import is ${record.status}; only an import under way can be canceled.`,
    )
  }
  await endImport(call, record, 'CANCELED')
  return presentImport(call, await findImport(call, importId))
}

/** Ends a locked import and deletes its stored file. */
export async function endImport(
  { em, organization }: Call,
  { id }: ImportRecord,
  status: 'COMPLETED' | 'FAILED' | 'CANCELED',
  error: string | null = null,
): Promise<void> {
  await execute(
    em,
    sql`with forgotten as (
        delete from import_chunk where organization_id = ${organization.id} and import_id = ${id}
      )
      update subscriber_import set status = ${status}, error = ${error}, finished_at = now()
      where organization_id = ${organization.id} and id = ${id}`,
  )
}

/** Returns the progress of an import for its workflow. */
export function progressOf(record: ImportRecord): ImportProgress {
  const { status, rows: done, failed, error } = record
  return {
    state: status === 'PENDING' ? 'RUNNING' : status,
    rows: done,
    expectedRows: expectedRows(record),
    rejected: failed,
    error,
  }
}

/** Estimates the rows of the file from the average length of those read so far. */
function expectedRows({ status, rows: done, bytes, nextByte, settings }: ImportRecord): number {
  if (status === 'COMPLETED' || nextByte <= settings.headerBytes) return done
  return Math.round((done * (bytes - settings.headerBytes)) / (nextByte - settings.headerBytes))
}

/** Returns an import in its API form. */
export function presentImport({ services }: Pick<Call, 'services'>, record: ImportRecord): SubscriberImport {
  const { status, bytes, sha256, settings, imported, updated, failed, error } = record
  const id = encodeId('imp', record.id)
  return {
    id,
    status,
    bytes,
    sha256,
    mapping: Object.fromEntries(
      settings.header.map((name, index) => [name, settings.columns[index] ?? null]),
    ),
    rows: record.rows,
    expectedRows: expectedRows(record),
    imported,
    updated,
    failed,
    error,
    createdAt: timestamp(record.createdAt),
    startedAt: timestampOrNull(record.startedAt),
    finishedAt: timestampOrNull(record.finishedAt),
    temporalUrl: services.temporal.workflowUrl(importWorkflowId(id)),
  }
}
