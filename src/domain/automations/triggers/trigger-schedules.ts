import { sql } from 'kysely'

import type { TimedTrigger } from '../../../../schema/automation-triggers.ts'
import type { WorkflowStatus } from '../../../../schema/values.ts'
import { type FiringRequest, TRIGGER_FIRING, triggerScheduleId } from '../../../../temporal/contract.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, column, type EntityManager, execute, row, rows } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import { timeZoneNamed } from '../../audience/moment.ts'
import { loadVersions } from '../definition/versions.ts'
import { dropOccasions, timedTrigger } from './due-people.ts'
import { nextLook } from './trigger-times.ts'

/** The configuration and time zone that determine when a timed trigger fires. */
export type Timing = { config: TimedTrigger; timezone: string }

type Published = { id: string; status: WorkflowStatus; versionId: string }
type Wanted = { automationId: string; stepId: string; timing: Timing; nextAt: Date | null }

/**
 * Synchronizes the schedule rows of these automations with the timed triggers of their published versions, and emits
 * the update of the schedules in Temporal. A trigger that is new, was paused or has changed times starts from now: what
 * was due before is not made up for. The caller holds the automations' locks. Ids are UUIDs.
 */
export async function syncTriggerSchedules(call: Call, automationIds: readonly string[]): Promise<void> {
  const { em, organization } = call
  const wanted = await wantedSchedules(call, automationIds)
  const key = ({ automationId, stepId }: Pick<Wanted, 'automationId' | 'stepId'>) =>
    `${automationId}/${stepId}`
  const keys = column(wanted, key, 'text')
  const gone = await rows<{ automationId: string; stepId: string; isArchived: boolean }>(
    em,
    sql`delete from automation_schedule schedule using automation
      where schedule.organization_id = ${organization.id} and schedule.automation_id = any(${array(automationIds, 'uuid')})
        and schedule.automation_id || '/' || schedule.step_id <> all(${keys})
        and automation.organization_id = schedule.organization_id and automation.id = schedule.automation_id
      returning schedule.automation_id as "automationId", schedule.step_id as "stepId",
        automation.status = 'ARCHIVED' as "isArchived"`,
  )
  for (const { automationId, stepId, isArchived } of gone) {
    if (!isArchived) await dropOccasions(call, automationId, [stepId])
  }
  await execute(
    em,
    sql`insert into automation_schedule as known (organization_id, automation_id, step_id, timing, next_at)
      select ${organization.id}, automation_id, step_id, timing, next_at::timestamptz
      from unnest(
        ${column(wanted, ({ automationId }) => automationId, 'uuid')},
        ${column(wanted, ({ stepId }) => stepId, 'text')},
        ${column(wanted, ({ timing }) => timing, 'jsonb')},
        ${column(wanted, ({ nextAt }) => nextAt?.toISOString() ?? null, 'text')}
      ) as wanted (automation_id, step_id, timing, next_at)
      on conflict (organization_id, automation_id, step_id) do update set timing = excluded.timing,
        next_at = excluded.next_at,
        looked_until = case when known.next_at is null or known.timing <> excluded.timing then now()
          else known.looked_until end`,
  )
  for (const { automationId, stepId } of [...gone, ...wanted]) emitSchedule(call, automationId, stepId)
}

/** Updates the schedules of an organization to its new time zone. */
export async function moveTriggerSchedules(call: Call): Promise<void> {
  const found = await rows<{ id: string }>(
    call.em,
    sql`select id from automation where organization_id = ${call.organization.id}
      and id in (select automation_id from automation_schedule where organization_id = ${call.organization.id})
      order by id for no key update`,
  )
  const ids = found.map(({ id }) => id)
  if (ids.length > 0) await syncTriggerSchedules(call, ids)
}

/** Emits the update of a trigger's schedule in Temporal, which then follows the row as it is at that time. */
export function emitSchedule(call: Call, automationId: string, stepId: string): void {
  const prefix = call.services.config.temporal.taskQueue
  call.emit({
    kind: 'schedule',
    workflowId: triggerScheduleId(prefix, encodeId('wf', automationId), stepId),
    payload: { automationId, stepId },
  })
}

/** The wanted state of a schedule in Temporal. */
export type ScheduleState = { name: string; timing: Timing; isPaused: boolean }

/** Reads the wanted state of a trigger's schedule, or null if it should not exist. */
export async function scheduleState(
  em: EntityManager,
  organizationId: string,
  automationId: string,
  stepId: string,
): Promise<ScheduleState | null> {
  return await row<ScheduleState>(
    em,
    sql`select automation.name, schedule.timing, schedule.next_at is null as "isPaused"
      from automation_schedule schedule join automation
        on automation.organization_id = schedule.organization_id and automation.id = schedule.automation_id
      where schedule.organization_id = ${organizationId} and schedule.automation_id = ${automationId}
        and schedule.step_id = ${stepId}`,
  )
}

/** A schedule that should exist in Temporal. Ids are UUIDs. */
export type KnownSchedule = {
  organizationId: string
  automationId: string
  stepId: string
  name: string
  isPaused: boolean
  nextAt: string | null
}

const KNOWN = sql`select schedule.organization_id as "organizationId", schedule.automation_id as "automationId",
    schedule.step_id as "stepId", automation.name, schedule.next_at is null as "isPaused", schedule.next_at as "nextAt"
  from automation_schedule schedule join automation
    on automation.organization_id = schedule.organization_id and automation.id = schedule.automation_id`

/** Reads the schedules of all organizations. */
export async function allSchedules(em: EntityManager): Promise<KnownSchedule[]> {
  return await rows<KnownSchedule>(em, KNOWN)
}

/**
 * Finds triggers of all organizations that were due over `lateSeconds` ago, in random order so that none blocks the
 * others.
 */
export async function findLateSchedules(
  em: EntityManager,
  lateSeconds: number,
  limit: number,
): Promise<KnownSchedule[]> {
  return await rows<KnownSchedule>(
    em,
    sql`${KNOWN} where schedule.next_at < now() - make_interval(secs => ${lateSeconds}) order by random() limit ${limit}`,
  )
}

/** Starts a firing of a trigger outside of its schedule, at most once for the moment that the schedule missed. */
export function emitLateFiring(call: Call, { automationId, stepId, name, nextAt }: KnownSchedule): void {
  const id = encodeId('wf', automationId)
  const input: FiringRequest = {
    organizationId: encodeId('org', call.organization.id),
    automationId: id,
    stepId,
  }
  const schedule = triggerScheduleId(call.services.config.temporal.taskQueue, id, stepId)
  call.emit({
    kind: 'start',
    workflowId: `${schedule}/late/${nextAt === null ? '' : new Date(nextAt).toISOString()}`,
    payload: { workflow: TRIGGER_FIRING, input, summary: `a late look for ${name.slice(0, 120)}` },
  })
}

/** Reads the organization's time zone too: that of the call is from before the locks, and may have changed since. */
async function wantedSchedules(
  { em, organization }: Call,
  automationIds: readonly string[],
): Promise<Wanted[]> {
  const automations = await rows<Published & { zone: string; now: string }>(
    em,
    sql`select automation.id, automation.status, automation.published_version_id as "versionId",
        organization.timezone as zone, now() as now
      from automation join organization on organization.id = automation.organization_id
      where automation.organization_id = ${organization.id} and automation.id = any(${array(automationIds, 'uuid')})
        and automation.status in ('ACTIVE', 'PAUSED') and automation.published_version_id is not null`,
  )
  const versions = await loadVersions(
    em,
    organization.id,
    automations.map(({ versionId }) => versionId),
  )
  return automations.flatMap(({ id, status, versionId, zone, now }) => {
    const version = versions.get(versionId)
    const timezone = timeZoneNamed(version?.definition.settings.timezone ?? zone) ?? zone
    return (version?.definition.steps ?? []).flatMap((step): Wanted[] => {
      const timed = version && timedTrigger(version, step.id)
      if (!timed) return []
      const { filters: _, ...config } = timed.config
      const nextAt = status === 'ACTIVE' ? new Date(nextLook(config, timezone, Date.parse(now))) : null
      return [{ automationId: id, stepId: step.id, timing: { config, timezone }, nextAt }]
    })
  })
}
