import { sql } from 'kysely'

import { importWorkflowId } from '../../../temporal/contract.ts'
import type { Call } from '../../catalogue/tool.ts'
import { type EntityManager, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import type { WorkflowState } from '../automations/runs/overdue.ts'
import { endImport, findImport, startWorkflow } from './records.ts'

/** An import that is not over and has not moved for a while. Ids are UUIDs. */
export type StrandedImport = { id: string; organizationId: string }

/**
 * Finds imports of all organizations that did nothing for over `lateSeconds`, in random order so that a broken one does
 * not block the others. Leaves out imports whose workflow has a pending outbox entry.
 */
export async function findStrandedImports(
  em: EntityManager,
  lateSeconds: number,
  limit: number,
): Promise<StrandedImport[]> {
  return await rows<StrandedImport>(
    em,
    sql`select id, organization_id as "organizationId" from subscriber_import list
      where status in ('PENDING', 'RUNNING') and updated_at < now() - make_interval(secs => ${lateSeconds})
        and not exists (select from outbox o where o.workflow_id = 'import/' || type_id('imp', list.id))
      order by random() limit ${limit}`,
  )
}

/** Returns the id of an import's workflow. */
export function importWorkflowOf({ id }: StrandedImport): string {
  return importWorkflowId(encodeId('imp', id))
}

/**
 * Repairs an import whose workflow is not running. If the workflow is missing, or had completed what the database has
 * lost since, it is started again and continues after the last page. If it ended otherwise, the import becomes FAILED:
 * whoever terminated it wanted it to stop.
 */
export async function repairImport(
  call: Call,
  { id }: StrandedImport,
  { state }: WorkflowState,
): Promise<void> {
  const record = await findImport(call, encodeId('imp', id), { lock: true })
  if (record.status !== 'PENDING' && record.status !== 'RUNNING') return
  if (state === 'MISSING' || state === 'COMPLETED') return startWorkflow(call, record, { restart: true })
  const error = `Its workflow in Temporal is ${state}, so the rest of the file is not imported. Rows that were imported stay; send the file again for the others.`
  await endImport(call, record, 'FAILED', error)
}
