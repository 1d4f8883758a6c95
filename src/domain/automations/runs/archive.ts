import { sql } from 'kysely'

import type { Actor, Call } from '../../../catalogue/tool.ts'
import { row } from '../../../database.ts'
import { encodeId, NIL_ID } from '../../../ids.ts'
import { IS_ACTIVE } from './active.ts'
import { cancelRuns, countActiveRuns, readPage } from './runs.ts'

/** So many runs of one transaction: as many as cost a second or so. */
const PAGE = 1_000

/** The runs of an archived automation that are still to be canceled: those after this one. Ids are uuids. */
export type ArchiveWork = { work: 'ARCHIVE'; automationId: string; after: string; by: Actor }

/**
 * Cancels the runs of an automation that has just been ARCHIVED: a page in this transaction, and each further one in its
 * own, by the outbox. Until their turn comes no run of them acts, because each asks for the status first. Answers how many
 * runs there are.
 */
export async function archiveRuns(call: Call, automationId: string): Promise<number> {
  const count = await countActiveRuns(call.em, call.organization.id, automationId)
  await cancelPage(call, { work: 'ARCHIVE', automationId, after: NIL_ID, by: call.actor })
  return count
}

/** One page, and what is left to do after it. Nothing where the automation has left the archive, which cancels the rest. */
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
