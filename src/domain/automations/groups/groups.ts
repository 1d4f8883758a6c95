import { sql } from 'kysely'

import type { Duration } from '../../../../schema/automation-parts.ts'
import { type ConflictStrategy, GROUP_LIMITS, type WorkflowGroup } from '../../../../schema/workflow-group.ts'
import { Failure, refuse, refuseFaults } from '../../../catalogue/failure.ts'
import type { Call, Impact } from '../../../catalogue/tool.ts'
import { execute, json, row, rows } from '../../../database.ts'
import { decodeId, encodeId, missing, newId } from '../../../ids.ts'
import { nameLine, timestamp } from '../../text.ts'
import { lengthFaults } from '../definition/read-step.ts'

type GroupRow = Omit<WorkflowGroup, 'workflows'> & { workflows: WorkflowGroup['workflows'] | null }

/** The first key of the advisory lock on the groups of an organization. */
const GROUPS_LOCK = 7_305_105

/** The changes of a group. A null `maxQueueAge` removes the limit of its queue. */
export type GroupChange = {
  name?: string | undefined
  conflictStrategy?: ConflictStrategy | undefined
  maxQueueAge?: Duration | null | undefined
}

/** Lists all groups with their workflows, ordered by name. */
export async function listGroups(call: Call): Promise<WorkflowGroup[]> {
  return await readGroups(call, null)
}

/** Reads a group by its TypeID. Throws `NOT_FOUND`. */
export async function getGroup(call: Call, groupId: string): Promise<WorkflowGroup> {
  const [group] = await readGroups(call, decodeId('grp', groupId))
  return group ?? missing('grp', groupId)
}

/**
 * Creates a group. Returns an existing group of the same name, strategy and queue limit as it is, so that a repeated
 * call is safe. Throws `ALREADY_EXISTS` if a group of this name differs, and `WRONG_STATE` if there are too many
 * groups.
 */
export async function createGroup(
  call: Call,
  input: { name: string; conflictStrategy: ConflictStrategy; maxQueueAge?: Duration | undefined },
): Promise<WorkflowGroup> {
  const name = readName(input.name)
  const { conflictStrategy, maxQueueAge = null } = input
  refuseQueueAge(conflictStrategy, maxQueueAge)
  await lockNames(call)
  const made = await row<{ id: string }>(
    call.em,
    sql`insert into automation_group (id, organization_id, name, conflict_strategy, max_queue_age)
      values (${newId()}, ${call.organization.id}, ${name}, ${conflictStrategy}, ${ageColumn(maxQueueAge)})
      on conflict (organization_id, name_key) do nothing returning id`,
  )
  if (made) {
    await refuseTooMany(call)
    return await getGroup(call, encodeId('grp', made.id))
  }
  const group = await findByName(call, name)
  if (group.conflictStrategy === conflictStrategy && isSameAge(group.maxQueueAge, input.maxQueueAge))
    return group
  refuseTaken(group)
}

/**
 * Changes the name, strategy or queue limit; members that are left out stay. Runs that are queued already keep their
 * turn and limit. Throws `ALREADY_EXISTS` if another group has the name.
 */
export async function updateGroup(call: Call, groupId: string, change: GroupChange): Promise<WorkflowGroup> {
  await lockNames(call)
  await lockGroup(call, groupId)
  const before = await getGroup(call, groupId)
  const name = change.name === undefined ? before.name : readName(change.name)
  const conflictStrategy = change.conflictStrategy ?? before.conflictStrategy
  const kept = conflictStrategy === 'QUEUE' ? before.maxQueueAge : null
  const maxQueueAge = change.maxQueueAge === undefined ? kept : change.maxQueueAge
  refuseQueueAge(conflictStrategy, maxQueueAge)
  const count = await execute(
    call.em,
    sql`update automation_group set name = ${name}, conflict_strategy = ${conflictStrategy},
        max_queue_age = ${ageColumn(maxQueueAge)}
      where organization_id = ${call.organization.id} and id = ${decodeId('grp', groupId)}
        and not exists (select from automation_group taken where taken.organization_id = ${call.organization.id}
          and taken.name_key = lower(${name}) and taken.id <> ${decodeId('grp', groupId)})`,
  )
  if (count === 0) refuseTaken(await findByName(call, name))
  return await getGroup(call, groupId)
}

/** Deletes a group. Throws `STALE_VERSION` if it changed since it was read, and `WRONG_STATE` if it has workflows. */
export async function deleteGroup(call: Call, groupId: string, expectedUpdatedAt: string): Promise<void> {
  await lockNames(call)
  await lockGroup(call, groupId)
  await findDeletable(call, groupId, expectedUpdatedAt)
  await execute(
    call.em,
    sql`delete from automation_group
      where organization_id = ${call.organization.id} and id = ${decodeId('grp', groupId)}`,
  )
}

/** Describes what deleting will do. Throws like `deleteGroup`. */
export async function summarizeGroupDeletion(
  call: Call,
  groupId: string,
  expectedUpdatedAt: string,
): Promise<Impact> {
  const group = await findDeletable(call, groupId, expectedUpdatedAt)
  return {
    target: titleOfGroup(group),
    effects: ['The group is deleted for good.', 'No workflow and no run is changed.'],
    warnings: [],
  }
}

/** Returns the name and id of a group for messages to people. */
function titleOfGroup({ id, name }: Pick<WorkflowGroup, 'id' | 'name'>): string {
  return `“${name}” (${id})`
}

/**
 * Locks a group until the end of the transaction: nobody enters its workflows, and nobody else changes it. Throws
 * `NOT_FOUND`.
 */
export async function lockGroup({ em, organization }: Call, groupId: string): Promise<void> {
  const found = await row(
    em,
    sql`select from automation_group
      where organization_id = ${organization.id} and id = ${decodeId('grp', groupId)} for update`,
  )
  if (!found) missing('grp', groupId)
}

async function readGroups({ em, organization }: Call, id: string | null): Promise<WorkflowGroup[]> {
  const found = await rows<GroupRow>(
    em,
    sql`select automation_group.id, automation_group.name, automation_group.conflict_strategy as "conflictStrategy",
        automation_group.max_queue_age as "maxQueueAge", automation_group.created_at as "createdAt",
        automation_group.updated_at as "updatedAt", assigned.workflows
      from automation_group cross join lateral (
        select json_agg(json_build_object('id', automation.id, 'name', automation.name, 'status', automation.status)
          order by automation.id) as workflows
        from automation where automation.organization_id = ${organization.id} and automation.group_id = automation_group.id
      ) as assigned
      where automation_group.organization_id = ${organization.id} and (${id}::uuid is null or automation_group.id = ${id}::uuid)
      order by automation_group.name_key`,
  )
  return found.map((group) => ({
    ...group,
    id: encodeId('grp', group.id),
    workflows: (group.workflows ?? []).map((workflow) => ({ ...workflow, id: encodeId('wf', workflow.id) })),
    createdAt: timestamp(group.createdAt),
    updatedAt: timestamp(group.updatedAt),
  }))
}

/** Serializes changes of groups, so that a name that is taken stays taken, and the count right, until the commit. */
async function lockNames({ em, organization }: Call): Promise<void> {
  await execute(em, sql`select pg_advisory_xact_lock(${GROUPS_LOCK}, hashtext(${organization.id}))`)
}

async function findByName(call: Call, name: string): Promise<WorkflowGroup> {
  const found = await row<{ id: string }>(
    call.em,
    sql`select id from automation_group where organization_id = ${call.organization.id} and name_key = lower(${name})`,
  )
  if (!found) throw new Error('a taken name belongs to no group')
  return await getGroup(call, encodeId('grp', found.id))
}

async function findDeletable(call: Call, groupId: string, expected: string): Promise<WorkflowGroup> {
  const group = await getGroup(call, groupId)
  if (group.updatedAt !== expected) {
    throw new Failure(
      'STALE_VERSION',
      `The group has changed since it was read: expectedUpdatedAt is ${JSON.stringify(expected.slice(0, 40))}, now it is ` +
        `${JSON.stringify(group.updatedAt)}; read it again with get_workflow_group.`,
      { details: { updatedAt: group.updatedAt } },
    )
  }
  if (group.workflows.length === 0) return group
  const named = group.workflows.slice(0, 20).map(titleOfGroup).join(', ')
  throw new Failure(
    'WRONG_STATE',
    `The group ${titleOfGroup(group)} cannot be deleted while workflows are assigned to it: ${named}; detach them with ` +
      'set_workflow_group {groupId: null} first.',
    { details: { workflows: group.workflows } },
  )
}

async function refuseTooMany({ em, organization }: Call): Promise<void> {
  const found = await row<{ count: number }>(
    em,
    sql`select count(*)::int as count from automation_group where organization_id = ${organization.id}`,
  )
  if (!found || found.count <= GROUP_LIMITS.groups) return
  throw new Failure(
    'WRONG_STATE',
    `An organization has at most ${GROUP_LIMITS.groups} workflow groups; delete one that is not used.`,
  )
}

function refuseTaken({ id, name, conflictStrategy }: WorkflowGroup): never {
  throw new Failure(
    'ALREADY_EXISTS',
    `There is a group ${JSON.stringify(name)} already (${id}, ${conflictStrategy}); choose another name, or change that ` +
      'group with update_workflow_group.',
    { details: { groupId: id, conflictStrategy } },
  )
}

function refuseQueueAge(strategy: ConflictStrategy, age: Duration | null): void {
  if (age === null) return
  if (strategy !== 'QUEUE')
    refuse('maxQueueAge', `goes with the strategy QUEUE only, not with ${strategy}; leave it out.`)
  const faults = lengthFaults(age, 'maxQueueAge')
  if (faults.length > 0) refuseFaults(faults)
}

function ageColumn(age: Duration | null) {
  return age === null ? sql`null` : json(age)
}

/** Returns whether the queue limits are equal. A repeated call that leaves the limit out matches any. */
function isSameAge(one: Duration | null, other: Duration | undefined): boolean {
  return other === undefined || (one?.amount === other.amount && one.unit === other.unit)
}

function readName(name: string): string {
  return nameLine(name, 'name', GROUP_LIMITS.name, 'a name such as "Onboarding"')
}
