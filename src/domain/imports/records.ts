import { sql } from 'kysely'

import type { ImportStatus } from '../../../schema/import.ts'
import type { ImportProgress } from '../../../temporal/contract.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { decodeId, missing } from '../../ids.ts'

type ProgressRow = {
  status: ImportStatus
  bytes: number
  nextByte: number
  rows: number
  failed: number
  error: string | null
}

/** How far an import is, for its workflow. */
export async function readProgress(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  importId: string,
): Promise<ImportProgress> {
  const found = await row<ProgressRow>(
    em,
    sql`select status, bytes::float8 as bytes, next_byte::float8 as "nextByte", rows, failed, error
      from subscriber_import
      where organization_id = ${organization.id} and id = ${decodeId('imp', importId)} and status <> 'UPLOADING'`,
  )
  if (!found) missing('imp', importId)
  const { status, bytes, nextByte, rows, failed, error } = found
  return {
    state: status === 'PENDING' ? 'RUNNING' : status,
    rows,
    expectedRows: nextByte === 0 ? 0 : Math.round((rows * bytes) / nextByte),
    rejected: failed,
    error,
  }
}
