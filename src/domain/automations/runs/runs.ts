import { type RawBuilder, sql } from 'kysely'

import type { ExitReason, RunStatus } from '../../../../schema/values.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, execute, type EntityManager, rows } from '../../../database.ts'
import { encodeId, NIL_ID } from '../../../ids.ts'
import { insertEvents, type RecordedEvent } from '../../event-rows.ts'
import { loadVersions } from '../definition/versions.ts'
import { type Converted, goalOf, reachByEvents } from '../goals/goals.ts'
import { lockPlaces, type Place } from '../groups/group-places.ts'
import { releasePlaces } from '../groups/group-queue.ts'
import { IS_ACTIVE } from './active.ts'
import { heldPeople } from './hold-people.ts'
import { type RunKey, writeNudges } from './nudge.ts'
import { findWoken } from './waits.ts'

const PAGE = 1_000
/** The time between two held runs that continue, so that a resume does not start them all at once. */
const RESUME_EACH_MS = 10

type Ended = RunKey & { id: string }

/**
 * `reason` is the same for all runs, or a map by run id. With `keepPlaces`, the places of these runs in groups are not
 * given to queued runs, because the caller fills them.
 */
type Cancellation = {
  error?: string
  reason?: string | Map<string, string>
  status?: Extract<RunStatus, 'COMPLETED' | 'CANCELED' | 'FAILED'>
  keepPlaces?: boolean
}

/**
 * Ends these runs outside of their own turns: stores their status, deletes their waits, records WORKFLOW_CANCELED or
 * WORKFLOW_COMPLETED events and nudges their workflows. Runs that are over already stay as they are. Returns the ids of
 * the runs that it ended.
 */
export async function cancelRuns(
  call: Call,
  runIds: readonly string[],
  exitReason: ExitReason,
  options: Cancellation = {},
): Promise<string[]> {
  if (runIds.length === 0) return []
  const { em, organization } = call
  const places = await lockPeople(call, runIds)
  const ended = await rows<Ended>(
    em,
    sql`with locked as (
        select id from automation_run where organization_id = ${organization.id} and id = any(${array(runIds, 'uuid')})
          and ${IS_ACTIVE} order by id for no key update)
      update automation_run run set status = ${options.status ?? 'CANCELED'}, exit_reason = ${exitReason},
        error = ${options.error ?? null}, ended_at = now(), wait_kind = null, wake_at = null, wake_reason = null,
        held = false, queued_at = null
      from locked where run.organization_id = ${organization.id} and run.id = locked.id
      returning run.id, run.automation_id as "automationId", run.subscriber_id as "subscriberId", run.number`,
  )
  const ids = ended.map(({ id }) => id)
  if (ids.length === 0) return ids
  const { reason } = options
  const reasons = ids.map((id) => (reason instanceof Map ? reason.get(id) : reason))
  await closeWaits(
    call,
    ids,
    exitReason,
    reasons.map((each) => endData(call, exitReason, each)),
  )
  const recorded = await insertEvents(
    call,
    ended.map((run, index) => ({
      subscriberId: run.subscriberId,
      type: options.status === 'COMPLETED' ? 'WORKFLOW_COMPLETED' : 'WORKFLOW_CANCELED',
      data: {
        ...runFacts(run),
        exitReason,
        ...(reasons[index] !== undefined && { reason: reasons[index] }),
      },
    })),
  )
  await writeNudges(em, organization.id, ended)
  if (recorded.isAwaited) await endEventWaits(call, recorded.events)
  if (!options.keepPlaces) await freePlaces(call, places)
  return ids
}

/**
 * Locks the subscribers of these runs, then the places of active ones in groups, and returns the places; the group of
 * a run that is over may be gone. The lock on a subscriber makes events and new waits for them run one after the
 * other; in the lock order it comes before places and runs.
 */
async function lockPeople(call: Call, runIds: readonly string[]): Promise<Place[]> {
  const { em, organization } = call
  const found = await rows<Omit<Place, 'groupId'> & { groupId: string | null }>(
    em,
    sql`with people as (${heldPeople(call, runIds)})
      select distinct case when run.${IS_ACTIVE} then run.group_id end as "groupId", people.id as "subscriberId"
      from people join automation_run run on run.organization_id = ${organization.id} and run.subscriber_id = people.id
        and run.id = any(${array(runIds, 'uuid')})`,
  )
  const places = found.flatMap(({ groupId, subscriberId }) =>
    groupId === null ? [] : [{ groupId, subscriberId }],
  )
  await lockPlaces(call, places)
  return places
}

/**
 * Applies events to runs: records conversions of goals, ends runs by goals and exit rules, and wakes runs that waited
 * for an event. The rows of the runs are updated, then their workflows are nudged. With `forRuns`, `events[i]` counts
 * only for the run `forRuns[i]`.
 */
export async function endEventWaits(
  call: Call,
  events: readonly RecordedEvent[],
  forRuns?: readonly string[],
): Promise<void> {
  if (events.length === 0) return
  await followConversions(call, await reachByEvents(call, events, forRuns))
  const woken = await findWoken(call, events, forRuns)
  const rules = firstOf(
    woken.flatMap(({ runId, ruleId }) => (ruleId === null ? [] : { runId, reason: ruleId })),
  )
  await cancelRuns(call, [...rules.keys()], 'EXIT_RULE', { reason: rules })
  await wakeRuns(
    call,
    woken.filter(({ ruleId }) => ruleId === null).map(({ runId }) => runId),
    'EVENT',
  )
}

/**
 * Applies conversions to their runs: a goal with `exitOnReach` ends the run, any other wakes a run that waits for it in
 * a GOAL step. Runs that are over stay as they are.
 */
export async function followConversions(call: Call, made: readonly Converted[]): Promise<void> {
  if (made.length === 0) return
  const versions = await loadVersions(
    call.em,
    call.organization.id,
    made.map(({ versionId }) => versionId),
  )
  const leaving = made.filter((each) => goalOf(versions, each)?.exitOnReach)
  const goals = firstOf(leaving.map(({ runId, goalId }) => ({ runId, reason: goalId })))
  await cancelRuns(call, [...goals.keys()], 'GOAL', { reason: goals, status: 'COMPLETED' })
  const waiting = made.filter(({ waitKind, stepId, versionId, goalId }) => {
    const step = versions.get(versionId)?.graph.steps.get(stepId ?? '')
    return waitKind === 'GOAL' && step?.type === 'GOAL' && step.config.goalId === goalId
  })
  await wakeRuns(
    call,
    waiting.map(({ runId }) => runId),
    'GOAL',
  )
}

/**
 * Starts the longest waiting queued run in each of these places that no run holds any more. Code that ends a run of a
 * group must call this in the same transaction.
 */
export async function freePlaces(call: Call, places: readonly Place[]): Promise<void> {
  await endEventWaits(call, await releasePlaces(call, places))
}

/** Starts the queued runs of an automation whose turn it is, when the automation becomes ACTIVE again. */
export async function releaseQueued(call: Call, automationId: string): Promise<void> {
  for await (const ids of pagesOf(call, automationId, sql`status = 'QUEUED' and queued_at is not null`)) {
    await freePlaces(call, await lockPeople(call, ids))
  }
}

/**
 * Ends the waits of these runs for the given reason. Ignores runs that do not wait, and runs whose time had come
 * before: those leave by the timeout, even if a pause still holds them.
 */
export async function wakeRuns(
  { em, organization }: Call,
  runIds: readonly string[],
  reason: 'EVENT' | 'CONDITION' | 'GOAL',
): Promise<void> {
  if (runIds.length === 0) return
  const keys = await rows<RunKey>(
    em,
    sql`with locked as (
        select id from automation_run where organization_id = ${organization.id} and id = any(${array(runIds, 'uuid')})
          and status = 'WAITING' and (coalesce(due_at, wake_at) > now()) is not false
        order by id for no key update),
      dropped as (
        delete from run_wait wait using locked
        where wait.organization_id = ${organization.id} and wait.run_id = locked.id and wait.rule_id = '')
      update automation_run run set wake_reason = coalesce(run.wake_reason, ${reason}), wake_at = now()
      from locked where run.organization_id = ${organization.id} and run.id = locked.id
      returning run.automation_id as "automationId", run.subscriber_id as "subscriberId", run.number`,
  )
  await writeNudges(em, organization.id, keys)
}

/** Cancels the active runs that archiving has not reached yet, before the automation leaves the archive. */
export async function cancelArchivedRuns(call: Call, automationId: string): Promise<void> {
  for await (const ids of pagesOf(call, automationId, IS_ACTIVE)) await cancelRuns(call, ids, 'ARCHIVED')
}

/** Yields pages of ids of an automation's runs that meet the condition, in the order of their ids. */
async function* pagesOf(
  call: Call,
  automationId: string,
  condition: RawBuilder<unknown>,
): AsyncGenerator<string[]> {
  let last: string | undefined = NIL_ID
  while (last !== undefined) {
    const page = await readPage(call, automationId, condition, { after: last, most: PAGE })
    if (page.length > 0) yield page
    last = page.at(-1)
  }
}

/** Returns up to `most` ids after `after` of an automation's runs that meet the condition, in ascending order. */
export async function readPage(
  { em, organization }: Call,
  automationId: string,
  condition: RawBuilder<unknown>,
  { after, most }: { after: string; most: number },
): Promise<string[]> {
  const page = await rows<{ id: string }>(
    em,
    sql`select id from automation_run where organization_id = ${organization.id} and automation_id = ${automationId}
      and ${condition} and id > ${after} order by id limit ${most}`,
  )
  return page.map(({ id }) => id)
}

/**
 * Lets all held runs of an automation continue, spread out over time, and returns their number. The caller has set the
 * automation ACTIVE in this transaction. A run is held under a share lock on the automation, so none is missed.
 */
export async function resumeHeldRuns(call: Call, automationId: string): Promise<number> {
  let count = 0
  for await (const ids of pagesOf(call, automationId, sql`held`)) {
    const page = await rows<RunKey>(
      call.em,
      sql`with page as (
          select id from automation_run where organization_id = ${call.organization.id} and id = any(${array(ids, 'uuid')})
            and held order by id for update)
        update automation_run run set held = false, wake_at = now() + make_interval(secs => ${count * RESUME_EACH_MS}::float8 / 1000)
        from page where run.organization_id = ${call.organization.id} and run.id = page.id
        returning run.automation_id as "automationId", run.subscriber_id as "subscriberId", run.number`,
    )
    await writeNudges(call.em, call.organization.id, page, {
      afterMs: count * RESUME_EACH_MS,
      eachMs: RESUME_EACH_MS,
    })
    count += page.length
  }
  return count
}

/** Counts the active runs of an automation. */
export async function countActiveRuns(
  em: EntityManager,
  organizationId: string,
  automationId: string,
): Promise<number> {
  const [found] = await rows<{ count: number }>(
    em,
    sql`select count(*)::int as count from automation_run where organization_id = ${organizationId}
      and automation_id = ${automationId} and ${IS_ACTIVE}`,
  )
  return found?.count ?? 0
}

/** Cancels the runs of people who unsubscribed, unless the version has `exitOnUnsubscribe: false`. */
export async function exitUnsubscribed(call: Call, subscriberIds: readonly string[]): Promise<void> {
  if (subscriberIds.length === 0) return
  const found = await rows<{ id: string }>(
    call.em,
    sql`select run.id from automation_run run
      join automation_version version on version.organization_id = run.organization_id and version.id = run.version_id
      where run.organization_id = ${call.organization.id} and run.subscriber_id = any(${array(subscriberIds, 'uuid')})
        and run.${IS_ACTIVE}
        and coalesce((version.definition #>> '{settings,exitOnUnsubscribe}')::boolean, true)`,
  )
  await cancelRuns(
    call,
    found.map(({ id }) => id),
    'UNSUBSCRIBED',
  )
}

/** Returns the ids that the data of events about a run contains. */
export function runFacts(run: Ended): Record<string, string> {
  return { workflowId: encodeId('wf', run.automationId), runId: encodeId('run', run.id) }
}

/** Returns the ledger data of an end: the rule or goal, or for a removal by hand who did it and the given reason. */
function endData({ actor }: Call, exitReason: ExitReason, reason?: string): Record<string, unknown> {
  if (exitReason === 'MANUAL') return { by: actor.id, ...(reason !== undefined && { reason }) }
  if (reason === undefined) return {}
  return exitReason === 'EXIT_RULE' ? { rule: reason } : { goalId: reason }
}

/**
 * Deletes the waits and open requests of runs that ended, records the end in the ledger, and closes their open visits
 * as CANCELED. A visit whose email was sent or whose request was over keeps that result.
 */
async function closeWaits(
  call: Call,
  runIds: readonly string[],
  exitReason: ExitReason,
  data: readonly Record<string, unknown>[],
): Promise<void> {
  const organizationId = call.organization.id
  await execute(
    call.em,
    sql`with waits as (
        delete from run_wait where organization_id = ${organizationId} and run_id = any(${array(runIds, 'uuid')})),
      webhooks as (
        delete from run_webhook where organization_id = ${organizationId} and run_id = any(${array(runIds, 'uuid')})),
      decided as (
        insert into decision (id, organization_id, subscriber_id, automation_id, run_id, step_id, action, reason, data)
        select new_id(), organization_id, subscriber_id, automation_id, run.id, current_step_id, 'RUN_ENDED', ${exitReason},
          given.data
        from unnest(${array(runIds, 'uuid')}, ${array(data, 'jsonb')}) as given (id, data)
        join automation_run run on run.organization_id = ${organizationId} and run.id = given.id)
      update run_step step set ended_at = now(), outcome = outcome || jsonb_build_object('reason', ${exitReason}::text,
        'result', coalesce(case type
          when 'EMAIL' then (select status from message
            where message.organization_id = step.organization_id and message.run_id = step.run_id
              and message.step_id = step.step_id and message.visit = step.visit and sent_at is not null)
          when 'WEBHOOK' then nullif(outcome ->> 'result', 'SENDING') end, 'CANCELED'))
      where organization_id = ${organizationId} and run_id = any(${array(runIds, 'uuid')}) and ended_at is null`,
  )
}

/** Returns the first reason for each run. */
function firstOf(reasons: readonly { runId: string; reason: string }[]): Map<string, string> {
  return new Map(reasons.toReversed().map(({ runId, reason }) => [runId, reason]))
}
