import { type RawBuilder, sql } from 'kysely'

import type { Step } from '../../../../schema/automation.ts'
import type { Run, RunVisit, StepReference } from '../../../../schema/run.ts'
import type { ExitReason, RunStatus } from '../../../../schema/values.ts'
import { nextStep } from '../../../../temporal/graph.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, rows } from '../../../database.ts'
import { decodeId, encodeId, missing } from '../../../ids.ts'
import { decodeCursor, encodeCursor } from '../../cursor.ts'
import { findSubscriber, type SubscriberChoice } from '../../subscribers/records.ts'
import { timestamp, timestampOrNull } from '../../text.ts'
import { loadVersions, type Version } from '../definition/versions.ts'
import { workflowIdOf } from './nudge.ts'

type RunRow = {
  id: string
  automationId: string
  automationName: string
  versionId: string
  subscriberId: string
  number: number
  status: RunStatus
  held: boolean
  exitReason: ExitReason | null
  error: string | null
  stepId: string | null
  visit: number
  waitKind: string | null
  wakeAt: string | null
  enteredAt: string
  endedAt: string | null
}

type Reading = Pick<Call, 'em' | 'organization' | 'services'>

/** The filters and the page of a list of runs. */
export type RunQuery = SubscriberChoice & {
  workflowId?: string | undefined
  status?: RunStatus | undefined
  limit: number
  cursor?: string | undefined
}

/** Lists a subscriber's runs, newest first, with keyset pagination. */
export async function listRuns(
  call: Call,
  query: RunQuery,
): Promise<{ runs: Run[]; nextCursor: string | null; hasMore: boolean }> {
  const subscriber = await findSubscriber(call, query)
  const { workflowId, status, limit, cursor } = query
  const automationId = workflowId === undefined ? null : await findAutomationId(call, workflowId)
  const asked = [subscriber.id, automationId, status ?? null]
  const before = cursor === undefined ? null : decodeCursor(asked, 'run', cursor)
  const found = await readRows(
    call,
    sql`run.subscriber_id = ${subscriber.id}
      and (${automationId}::uuid is null or run.automation_id = ${automationId}::uuid)
      and (${status ?? null}::text is null or run.status = ${status ?? null}::text)
      and (${before}::uuid is null or run.id < ${before}::uuid)
      order by run.id desc limit ${limit + 1}`,
  )
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const hasMore = found.length > limit
  return {
    runs: await present(call, page),
    nextCursor: hasMore && last ? encodeCursor(asked, encodeId('run', last.id)) : null,
    hasMore,
  }
}

/** Reads the runs with these UUIDs, in the order of their entry. */
export async function readRuns(call: Reading, runIds: readonly string[]): Promise<Run[]> {
  return await present(
    call,
    await readRows(call, sql`run.id = any(${array(runIds, 'uuid')}) order by run.id`),
  )
}

/** Reads one run by its UUID. Throws `NOT_FOUND`. */
export async function readRun(call: Reading, runId: string): Promise<Run> {
  const [run] = await readRuns(call, [runId])
  return run ?? missing('run', encodeId('run', runId))
}

/** Reads a run with all visits of its steps. Throws `NOT_FOUND`. */
export async function readTimeline(call: Call, runId: string): Promise<{ run: Run; timeline: RunVisit[] }> {
  const id = decodeId('run', runId)
  const [row] = await readRows(call, sql`run.id = ${id}`)
  if (!row) missing('run', runId)
  const [run] = await present(call, [row])
  if (!run) missing('run', runId)
  const version = (await loadVersions(call.em, call.organization.id, [row.versionId])).get(row.versionId)
  const visits = await rows<VisitRow>(
    call.em,
    sql`select visit, step_id as "stepId", type, port, outcome, started_at as "startedAt", ended_at as "endedAt"
      from run_step where organization_id = ${call.organization.id} and run_id = ${id} order by visit`,
  )
  return { run, timeline: visits.map((visit) => presentVisit(visit, version)) }
}

/** Returns the UUID of an automation. Throws `NOT_FOUND`. */
export async function findAutomationId({ em, organization }: Reading, workflowId: string): Promise<string> {
  const id = decodeId('wf', workflowId)
  const [found] = await rows<{ id: string }>(
    em,
    sql`select id from automation where organization_id = ${organization.id} and id = ${id}`,
  )
  return found?.id ?? missing('wf', workflowId)
}

type VisitRow = {
  visit: number
  stepId: string
  type: StepReference['type']
  port: string | null
  outcome: Record<string, unknown>
  startedAt: string
  endedAt: string | null
}

function presentVisit(row: VisitRow, version: Version | undefined): RunVisit {
  const { result, messageId, ...details } = row.outcome
  const step = version?.graph.steps.get(row.stepId)
  return {
    visit: row.visit,
    step: { id: row.stepId, type: row.type, name: step?.name ?? null },
    result: String(result),
    port: row.port,
    details: { ...details, ...(typeof messageId === 'string' && { emailId: encodeId('eml', messageId) }) },
    startedAt: timestamp(row.startedAt),
    endedAt: timestampOrNull(row.endedAt),
  }
}

async function readRows({ em, organization }: Reading, condition: RawBuilder<unknown>): Promise<RunRow[]> {
  return await rows<RunRow>(
    em,
    sql`select run.id, run.automation_id as "automationId", automation.name as "automationName",
        run.version_id as "versionId", run.subscriber_id as "subscriberId", run.number, run.status, run.held,
        run.exit_reason as "exitReason", run.error, run.current_step_id as "stepId", run.visit,
        run.wait_kind as "waitKind", run.wake_at as "wakeAt", run.entered_at as "enteredAt", run.ended_at as "endedAt"
      from automation_run run
      join automation on automation.organization_id = run.organization_id and automation.id = run.automation_id
      where run.organization_id = ${organization.id} and ${condition}`,
  )
}

async function present(call: Reading, found: readonly RunRow[]): Promise<Run[]> {
  const versions = await loadVersions(
    call.em,
    call.organization.id,
    found.map(({ versionId }) => versionId),
  )
  return found.map((run) => presentRun(call, run, versions.get(run.versionId)))
}

function presentRun({ services }: Reading, row: RunRow, version: Version | undefined): Run {
  const isOver = row.endedAt !== null
  const current = row.stepId === null ? undefined : version?.graph.steps.get(row.stepId)
  const next = isOver || !version || !current ? undefined : nextStep(version.graph, current.id)
  const isTimed = row.waitKind !== null && row.waitKind !== 'MESSAGE' && row.waitKind !== 'WEBHOOK'
  return {
    id: encodeId('run', row.id),
    workflow: { id: encodeId('wf', row.automationId), name: row.automationName },
    version: { id: encodeId('wfv', row.versionId), number: version?.number ?? 0 },
    subscriberId: encodeId('sub', row.subscriberId),
    status: row.status,
    held: row.held,
    exitReason: row.exitReason,
    error: row.error,
    currentStep: reference(current),
    nextStep: reference(next),
    nextStepAt: isTimed ? timestampOrNull(row.wakeAt) : null,
    visit: row.visit,
    enteredAt: timestamp(row.enteredAt),
    endedAt: timestampOrNull(row.endedAt),
    temporalUrl: services.temporal.workflowUrl(workflowIdOf(row)),
  }
}

function reference(step: Step | undefined): StepReference | null {
  return step ? { id: step.id, type: step.type, name: step.name ?? null } : null
}
