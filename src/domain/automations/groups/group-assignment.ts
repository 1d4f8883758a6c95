import { sql } from 'kysely'

import type { WorkflowGroup } from '../../../../schema/workflow-group.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { execute, row } from '../../../database.ts'
import { decodeId, encodeId, missing } from '../../../ids.ts'
import { IS_ACTIVE } from '../runs/active.ts'
import { endEventWaits } from '../runs/runs.ts'
import { beginUngrouped } from './group-queue.ts'
import { getGroup, lockGroup } from './groups.ts'

type Assignable = { id: string; groupId: string | null }

/**
 * Moves a workflow with its active runs into a group, or out of its group if `groupId` is null; its queued runs then
 * begin. Throws `WRONG_STATE` if a subscriber has an active run in it and another one in the group that it joins or
 * leaves, or two in the workflow itself while it joins a group. The locks on the automation and the groups prevent
 * entries into the workflow and into any workflow of these groups.
 */
export async function assignGroup(
  call: Call,
  workflowId: string,
  groupId: string | null,
): Promise<{ workflowId: string; group: WorkflowGroup | null }> {
  const { em, organization } = call
  const automation = await row<Assignable>(
    em,
    sql`select id, group_id as "groupId" from automation
      where organization_id = ${organization.id} and id = ${decodeId('wf', workflowId)} for update`,
  )
  if (!automation) missing('wf', workflowId)
  const before = automation.groupId === null ? null : encodeId('grp', automation.groupId)
  // Lock in a fixed order, so that two workflows that swap their groups do not deadlock.
  const concerned = [before, groupId].filter((id) => id !== null)
  for (const id of [...new Set(concerned)].toSorted()) await lockGroup(call, id)
  if (before !== groupId) {
    await refuseOverlap(call, automation, groupId)
    await move(call, automation, groupId)
    if (groupId === null) await endEventWaits(call, await beginUngrouped(call, automation.id))
  }
  return { workflowId, group: groupId === null ? null : await getGroup(call, groupId) }
}

async function move(call: Call, { id, groupId: before }: Assignable, groupId: string | null): Promise<void> {
  const { em, organization, actor } = call
  const after = groupId === null ? null : decodeId('grp', groupId)
  await execute(
    em,
    sql`update automation set group_id = ${after}, updated_by = ${actor.name}
      where organization_id = ${organization.id} and id = ${id}`,
  )
  await execute(
    em,
    sql`update automation_run set group_id = ${after}
      where organization_id = ${organization.id} and automation_id = ${id} and ${IS_ACTIVE}`,
  )
  // A group includes the list of its workflows, so this must change its `updatedAt`.
  await execute(
    em,
    sql`update automation_group set name = name
      where organization_id = ${organization.id} and id in (${before}, ${after})`,
  )
}

async function refuseOverlap(
  { em, organization }: Call,
  { id, groupId: before }: Assignable,
  groupId: string | null,
): Promise<void> {
  const after = groupId === null ? null : decodeId('grp', groupId)
  const found = await row<{ subscribers: number }>(
    em,
    sql`select count(distinct run.subscriber_id)::int as subscribers from automation_run run
      join automation_run other on other.organization_id = run.organization_id
        and other.subscriber_id = run.subscriber_id and other.id <> run.id and other.${IS_ACTIVE}
        and (other.group_id in (${before}, ${after})
          or (${after}::uuid is not null and other.automation_id = run.automation_id))
      where run.organization_id = ${organization.id} and run.automation_id = ${id} and run.${IS_ACTIVE}`,
  )
  const count = found?.subscribers ?? 0
  if (count === 0) return
  const people = `${count} subscriber${count === 1 ? ' has' : 's have'}`
  throw new Failure(
    'WRONG_STATE',
    `${people} more than one active run in this workflow and the workflows of the group; wait for these runs to end, or ` +
      'end them with remove_subscriber_from_workflow, and assign it then.',
    { details: { subscribers: count } },
  )
}
