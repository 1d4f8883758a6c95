import { type RawBuilder, sql } from 'kysely'

import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { rows } from '../../database.ts'
import { encodeId, type IdPrefix } from '../../ids.ts'
import { BY_FILTERS } from '../automations/goals/goals.ts'
import { IS_ACTIVE } from '../automations/runs/active.ts'

/** A record that refers to a tag or a segment. `id` is a uuid. */
export type Use = { kind: 'campaign' | 'workflow' | 'segment'; id: string; name: string }

const PREFIXES = { campaign: 'cmp', workflow: 'wf', segment: 'seg' } as const satisfies Record<
  Use['kind'],
  IdPrefix
>
const NAMED = 20

/**
 * Returns up to 20 records with a `document` (filters, steps or goals) for which the condition holds. Searches
 * segments, workflow drafts and all that can still send or run: unfinished campaigns, published versions of workflows
 * that are not archived, older versions with active runs, and the goals of ended runs that still count. The emails of
 * versions are left out: they hold no filters, and take far longer to search than the rest.
 */
export async function usesWhere({ em, organization }: Call, condition: RawBuilder<unknown>): Promise<Use[]> {
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
        select 'workflow', automation.id, automation.name, version.definition - 'emails'
        from automation_version version join automation
          on automation.organization_id = version.organization_id and automation.id = version.automation_id
        where version.organization_id = ${organization.id} and (
          (automation.status <> 'ARCHIVED' and automation.published_version_id = version.id)
          or exists (select from automation_run run where run.organization_id = version.organization_id
            and run.automation_id = automation.id and run.version_id = version.id and run.${IS_ACTIVE}))
        union all
        select 'workflow', automation.id, automation.name, version.definition -> 'successGoals'
        from automation_version version join automation
          on automation.organization_id = version.organization_id and automation.id = version.automation_id
        where version.organization_id = ${organization.id} and version.id in (
          select run.version_id from goal_watch watch join automation_run run
            on run.organization_id = watch.organization_id and run.id = watch.run_id
          where watch.organization_id = ${organization.id} and watch.event_type = ${BY_FILTERS}
            and coalesce(watch.expires_at > now(), true))
        union all
        select 'segment', id, name, filters from segment where organization_id = ${organization.id}
      ) as used where ${condition} order by kind, name, id limit ${NAMED}`,
  )
}

/**
 * Throws `WRONG_STATE` that names each use, if there are any. `refusal` says what cannot be done, such as "The tag "a"
 * cannot be renamed"; `repair` says what to do first.
 */
export function refuseInUse(uses: readonly Use[], refusal: string, repair: string): void {
  if (uses.length === 0) return
  const usedBy = uses.map(({ kind, id, name }) => ({ type: kind, id: encodeId(PREFIXES[kind], id), name }))
  const named = usedBy.map(({ type, id, name }) => `the ${type} "${name}" (${id})`).join(', ')
  throw new Failure('WRONG_STATE', `${refusal} while it is used by ${named}; ${repair}.`, {
    details: { usedBy },
  })
}
