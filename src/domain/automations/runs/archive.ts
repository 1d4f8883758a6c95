import { sql } from 'kysely'

import type { Actor, Call } from '../../../catalogue/tool.ts'
import { type EntityManager, row, rows } from '../../../database.ts'
import { encodeId, NIL_ID } from '../../../ids.ts'
import { IS_ACTIVE } from './active.ts'
import { cancelRuns, countActiveRuns, readPage } from './runs.ts'

/** How many runs one transaction cancels, which takes about a second. */
const PAGE = 1_000

/** The remaining work of archiving: cancel the automation's runs whose id is greater than `after`. Ids are UUIDs. */
export type ArchiveWork = { work: 'ARCHIVE'; automationId: string; after: string; by: Actor }

/**
 * Cancels the runs of an automation that has just been ARCHIVED: one page in this transaction, and further pages
 * through the outbox, each in a transaction of its own. The remaining runs do nothing until then, because they read the
 * status before each turn. Returns the number of all active runs.
 */
export async function archiveRuns(call: Call, automationId: string): Promise<number> {
  const count = await countActiveRuns(call.em, call.organization.id, automationId)
  await cancelPage(call, { work: 'ARCHIVE', automationId, after: NIL_ID, by: call.actor })
  return count
}

/** An ARCHIVED automation in which a run queues for its turn in a group. Ids are UUIDs. */
export type ArchivedQueue = { organizationId: string; automationId: string }

/**
 * Finds ARCHIVED automations of all organizations with queued runs: somebody entered while they were being archived.
 * Other such runs end at their first turn, but these never get one.
 */
export async function findArchivedQueues(em: EntityManager): Promise<ArchivedQueue[]> {
  return await rows<ArchivedQueue>(
    em,
    sql`select distinct run.organization_id as "organizationId", run.automation_id as "automationId"
      from automation_run run join automation
        on automation.organization_id = run.organization_id and automation.id = run.automation_id
      where run.status = 'QUEUED' and run.queued_at is not null and automation.status = 'ARCHIVED' limit ${PAGE}`,
  )
}

/** Cancels the runs that are left in an automation if it is still ARCHIVED. */
export async function cancelLeftRuns(call: Call, automationId: string): Promise<void> {
  await cancelPage(call, { work: 'ARCHIVE', automationId, after: NIL_ID, by: call.actor })
}

/**
 * Cancels one page of runs and emits the work for the next one. Does nothing if the automation has left the archive,
 * because that has canceled the remaining runs.
 */
export async function cancelPage(call: Call, { automationId, after, ...work }: ArchiveWork): Promise<void> {
  const { em, organization } = call
  const archived = await row(
    em,
    sql`select from automation where organization_id = ${organization.id} and id = ${automationId}
      and status = 'ARCHIVED' for share`,
  )
  if (!archived) return
  const found = await readPage(call, automationId, IS_ACTIVE, { after, most: PAGE + 1 })
  const ids = found.slice(0, PAGE)
  await cancelRuns(call, ids, 'ARCHIVED')
  const last = ids.at(-1)
  if (found.length <= PAGE || last === undefined) return
  const payload: ArchiveWork = { ...work, automationId, after: last }
  call.emit({ kind: 'work', workflowId: `work/archive/${encodeId('wf', automationId)}`, payload })
}
