import { sql } from 'kysely'

import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import { type Definition, Settings } from '../../../../schema/automation.ts'
import type { WorkflowStatus } from '../../../../schema/values.ts'
import { type Workflow, WORKFLOW_LIMITS, type WorkflowSummary } from '../../../../schema/workflow.ts'
import { Failure } from '../../../catalogue/failure.ts'
import { withDefaults } from '../../../catalogue/schema-faults.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { execute, json, row, rows } from '../../../database.ts'
import { decodeId, encodeId, missing, newId } from '../../../ids.ts'
import { nameLine, searchPattern, timestamp } from '../../text.ts'
import { IS_ACTIVE } from '../runs/active.ts'
import { readSettings } from './validate.ts'

/** An automation as stored, for code that writes drafts, versions and statuses. Ids are UUIDs. */
export type Automation = {
  id: string
  name: string
  status: WorkflowStatus
  draft: Definition
  settings: Settings
  successGoals: SuccessGoal[]
  publishedVersionId: string | null
  updatedBy: string | null
  /** In the format of the API. */
  updatedAt: string
}

/**
 * Returns settings as stored, with the defaults of members that they lack. They were valid when they were stored;
 * publishing and simulating check them again, because a time zone may be unknown by now.
 */
function storedSettings(stored: unknown): Settings {
  return withDefaults(Settings, stored) as Settings
}

type SummaryRow = {
  id: string
  name: string
  status: WorkflowStatus
  versionId: string | null
  versionNumber: number
  publishedAt: string
  publishedBy: string | null
  activeSubscribers: number
  createdAt: string
  updatedAt: string
}

const SUMMARY = sql`automation.id, automation.name, automation.status, automation.created_at as "createdAt",
  automation.updated_at as "updatedAt", version.id as "versionId", version.number as "versionNumber",
  version.created_at as "publishedAt", version.created_by as "publishedBy",
  (select count(distinct run.subscriber_id)::int from automation_run run
    where run.organization_id = automation.organization_id and run.automation_id = automation.id
      and run.${IS_ACTIVE}) as "activeSubscribers"`

const FROM = sql`automation left join automation_version version
  on version.organization_id = automation.organization_id and version.id = automation.published_version_id`

/** Lists the workflows whose name contains `query`, newest first. */
export async function listAutomations(
  { em, organization }: Call,
  { limit, query }: { limit: number; query?: string | undefined },
): Promise<{ workflows: WorkflowSummary[]; hasMore: boolean }> {
  const pattern = searchPattern(query)
  const found = await rows<SummaryRow>(
    em,
    sql`select ${SUMMARY} from ${FROM} where automation.organization_id = ${organization.id}
      and (${pattern}::text is null or automation.name ilike ${pattern})
      order by automation.id desc limit ${limit + 1}`,
  )
  return { workflows: found.slice(0, limit).map(summary), hasMore: found.length > limit }
}

/** Reads a workflow in full by its TypeID. Throws `NOT_FOUND`. */
export async function getAutomation(call: Call, workflowId: string): Promise<Workflow> {
  return await readAutomation(call, decodeId('wf', workflowId))
}

/** Reads a workflow in full by its UUID. Throws `NOT_FOUND`. */
export async function readAutomation({ em, organization }: Call, id: string): Promise<Workflow> {
  const found = await row<SummaryRow & { draft: Definition; settings: unknown; successGoals: SuccessGoal[] }>(
    em,
    sql`select ${SUMMARY}, automation.draft, automation.settings, automation.success_goals as "successGoals"
      from ${FROM} where automation.organization_id = ${organization.id} and automation.id = ${id}`,
  )
  if (!found) missing('wf', encodeId('wf', id))
  const { draft, settings, successGoals } = found
  const { createdAt, updatedAt, publishedVersion, activeSubscribers, ...named } = summary(found)
  return {
    ...named,
    draft,
    settings: storedSettings(settings),
    successGoals,
    publishedVersion,
    activeSubscribers,
    createdAt,
    updatedAt,
  }
}

/** Creates an empty draft. Nobody can enter it before it is configured and published. */
export async function createAutomation(call: Call, name: string): Promise<Workflow> {
  const id = newId()
  await execute(
    call.em,
    sql`insert into automation (id, organization_id, name, settings, updated_by)
      values (${id}, ${call.organization.id}, ${readName(name)}, ${json(readSettings({}).settings)}, ${call.actor.name})`,
  )
  return await readAutomation(call, id)
}

/**
 * Reads the automation by its TypeID and, unless `lock` is false, locks it against other writers until the end of the
 * transaction. The lock is not `for update`: a new run refers to the automation while it holds its subscriber's lock,
 * which comes after this one in the lock order. Throws `NOT_FOUND`.
 */
export async function findAutomation(
  { em, organization }: Call,
  workflowId: string,
  { lock = true }: { lock?: boolean } = {},
): Promise<Automation> {
  const found = await row<Automation>(
    em,
    sql`select id, name, status, draft, settings, success_goals as "successGoals",
        published_version_id as "publishedVersionId", updated_by as "updatedBy", updated_at as "updatedAt"
      from automation where organization_id = ${organization.id} and id = ${decodeId('wf', workflowId)}
      ${lock ? sql`for no key update` : sql``}`,
  )
  if (!found) missing('wf', workflowId)
  return {
    ...found,
    settings: storedSettings(found.settings),
    updatedAt: timestamp(found.updatedAt),
  }
}

/** Throws `STALE_VERSION` if the workflow has changed since the caller read it. */
export function refuseStale({ updatedAt, updatedBy }: Automation, expected: string): void {
  if (updatedAt === expected) return
  throw new Failure(
    'STALE_VERSION',
    `The workflow has changed since it was read: expectedUpdatedAt is ${JSON.stringify(expected.slice(0, 40))}, now it is ` +
      `${JSON.stringify(updatedAt)}${updatedBy ? ` (by ${updatedBy})` : ''}; read it again with get_workflow and apply the change to that.`,
    { details: { updatedAt, updatedBy } },
  )
}

/** Returns the name and id of a workflow for messages to people. */
export function titleOf({ id, name }: Pick<Automation, 'id' | 'name'>): string {
  return `“${name}” (${encodeId('wf', id)})`
}

function readName(name: string): string {
  return nameLine(name, 'name', WORKFLOW_LIMITS.name, 'a name such as "Welcome series"')
}

function summary(found: SummaryRow): WorkflowSummary {
  const { id, name, status, versionId, activeSubscribers } = found
  return {
    id: encodeId('wf', id),
    name,
    status,
    publishedVersion:
      versionId === null
        ? null
        : {
            id: encodeId('wfv', versionId),
            number: found.versionNumber,
            publishedAt: timestamp(found.publishedAt),
            publishedBy: found.publishedBy,
          },
    activeSubscribers,
    createdAt: timestamp(found.createdAt),
    updatedAt: timestamp(found.updatedAt),
  }
}
