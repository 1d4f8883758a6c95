import { sql } from 'kysely'

import type { VersionComparison, WorkflowVersion } from '../../../../schema/workflow-version.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { row, rows } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import { decodeCursor, encodeCursor } from '../../cursor.ts'
import { keyset } from '../../keyset.ts'
import { timestamp } from '../../text.ts'
import { IS_ACTIVE } from '../runs/active.ts'
import { compareDefinitions } from './compare.ts'
import { freezeEmails } from './publish-emails.ts'
import { type Automation, findAutomation } from './records.ts'
import type { PublishedDefinition } from './versions.ts'

type VersionRow = Omit<WorkflowVersion, 'id'> & { id: string }

/** Lists the versions of a workflow, newest first, with keyset pagination. */
export async function listVersions(
  call: Call,
  { workflowId, limit, cursor }: { workflowId: string; limit: number; cursor?: string | undefined },
): Promise<{ versions: WorkflowVersion[]; nextCursor: string | null; hasMore: boolean }> {
  const automation = await findAutomation(call, workflowId, { lock: false })
  const asked = [automation.id]
  const page = keyset(cursor === undefined ? null : decodeCursor(asked, 'wfv', cursor), limit)
  const { em, organization } = call
  const found = await rows<VersionRow>(
    em,
    sql`select version.id, version.number, version.created_at as "publishedAt", version.created_by as "publishedBy",
        version.id is not distinct from ${automation.publishedVersionId}::uuid as "isCurrent",
        jsonb_array_length(version.definition -> 'steps') as steps, coalesce(active.runs, 0) as "activeRuns"
      from automation_version version
      left join (select version_id, count(*)::int as runs from automation_run
        where organization_id = ${organization.id} and automation_id = ${automation.id} and ${IS_ACTIVE}
        group by version_id) as active on active.version_id = version.id
      where version.organization_id = ${organization.id} and version.automation_id = ${automation.id}
      ${page.part(sql`version.id`)}`,
  )
  const shown = page.page(found)
  const versions = shown.page.map(({ id, publishedAt, ...version }) => ({
    ...version,
    id: encodeId('wfv', id),
    publishedAt: timestamp(publishedAt),
  }))
  const last = shown.hasMore ? versions.at(-1) : undefined
  return { versions, nextCursor: last ? encodeCursor(asked, last.id) : null, hasMore: shown.hasMore }
}

/**
 * Compares a version with another one, or with the draft as publishing would freeze it now if `toVersion` is left out.
 */
export async function compareVersions(
  call: Call,
  {
    workflowId,
    fromVersion,
    toVersion,
  }: { workflowId: string; fromVersion: number; toVersion?: number | undefined },
): Promise<VersionComparison> {
  const automation = await findAutomation(call, workflowId, { lock: false })
  const from = await readVersion(call, automation, fromVersion)
  const to =
    toVersion === undefined ? await draftOf(call, automation) : await readVersion(call, automation, toVersion)
  return { from: { number: fromVersion }, to: { number: toVersion ?? null }, ...compareDefinitions(from, to) }
}

async function readVersion(
  { em, organization }: Call,
  { id }: Automation,
  number: number,
): Promise<PublishedDefinition> {
  const found = await row<{ definition: PublishedDefinition }>(
    em,
    sql`select definition from automation_version where organization_id = ${organization.id}
      and automation_id = ${id} and number = ${number}`,
  )
  if (found) return found.definition
  throw new Failure(
    'NOT_FOUND',
    `The workflow has no version ${number}; list_workflow_versions shows the existing ones.`,
  )
}

async function draftOf(
  call: Call,
  { id, draft, settings, successGoals }: Automation,
): Promise<PublishedDefinition> {
  const { emails } = await freezeEmails(call, id, draft)
  return { ...draft, settings, successGoals, emails }
}
