import { sql } from 'kysely'

import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { json, rows } from '../../database.ts'
import { encodeId, type IdPrefix } from '../../ids.ts'
import { IS_ACTIVE } from '../automations/runs/active.ts'

/** A record that refers to a segment and would not work without it. */
type Use = { kind: 'campaign' | 'workflow' | 'segment'; id: string; name: string }

const PREFIXES = { campaign: 'cmp', workflow: 'wf', segment: 'seg' } as const satisfies Record<
  Use['kind'],
  IdPrefix
>
const NAMED = 20

/** Throws `WRONG_STATE` when an unfinished campaign, a workflow or another segment uses the segment, naming each. */
export async function refuseUsedSegment(call: Call, segment: { id: string; name: string }): Promise<void> {
  const uses = await usesOf(call, segment.id)
  if (uses.length === 0) return
  const named = uses.map(({ kind, id, name }) => `the ${kind} "${name}" (${encodeId(PREFIXES[kind], id)})`)
  throw new Failure(
    'WRONG_STATE',
    `The segment "${segment.name}" cannot be deleted while it is used by ${named.join(', ')}; remove it there first.`,
    {
      details: {
        usedBy: uses.map(({ kind, id, name }) => ({ type: kind, id: encodeId(PREFIXES[kind], id), name })),
      },
    },
  )
}

/** Finds uses in drafts and in versions that can be entered or still have runs, but not in sent or archived records. */
async function usesOf({ em, organization }: Call, id: string): Promise<Use[]> {
  return await rows<Use>(
    em,
    sql`select distinct kind, id, name from (
        select 'campaign' as kind, id, name, recipient_filters as document from campaign
        where organization_id = ${organization.id} and kind = 'BROADCAST'
          and status in ('DRAFT', 'SCHEDULED', 'SENDING')
        union all
        select 'workflow', id, name, jsonb_build_array(draft, success_goals) from automation
        where organization_id = ${organization.id} and status <> 'ARCHIVED'
        union all
        select 'workflow', automation.id, automation.name, version.definition
        from automation_version version join automation
          on automation.organization_id = version.organization_id and automation.id = version.automation_id
        where version.organization_id = ${organization.id} and (
          (automation.status <> 'ARCHIVED' and automation.published_version_id = version.id)
          or exists (select from automation_run run where run.organization_id = version.organization_id
            and run.automation_id = automation.id and run.version_id = version.id and run.${IS_ACTIVE}))
        union all
        select 'segment', id, name, filters from segment
        where organization_id = ${organization.id} and id <> ${id}
      ) as used
      where jsonb_path_exists(document,
        '$.** ? ((@.field == "segment" && @.value[*] == $id) || @.segmentId == $id)',
        ${json({ id: encodeId('seg', id) })})
      order by kind, name, id limit ${NAMED}`,
  )
}
