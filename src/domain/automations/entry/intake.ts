import { sql } from 'kysely'

import type { Filter } from '../../../../schema/audience.ts'
import type { WorkflowStatus } from '../../../../schema/values.ts'
import { AUTOMATION_INTAKE, type IntakeProgress, intakeWorkflowId } from '../../../../temporal/contract.ts'
import { manualEntry } from '../../../../temporal/graph.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { unitOfWork } from '../../../catalogue/unit-of-work.ts'
import { execute, json, row, rows } from '../../../database.ts'
import { encodeId, newId } from '../../../ids.ts'
import type { Services } from '../../../services.ts'
import { audiencePredicate } from '../../audience/match.ts'
import type { Predicate } from '../../audience/predicate.ts'
import { BULK_PRIORITY } from '../../outbox.ts'
import type { WorkControl } from '../../work-control.ts'
import { loadVersion, type Version } from '../definition/versions.ts'
import { recordDecisions } from '../runs/decisions.ts'
import { entryDataOf, nextDue, takeOccasions, type Timed, timedTrigger } from '../triggers/due-people.ts'
import type { Stretch } from '../triggers/trigger-times.ts'
import { enrol } from './enrolment.ts'
import type { Candidate } from './run-inserts.ts'

/** Subscribers per transaction. Larger pages have less overhead, but they hold their locks longer. */
const PAGE = 500
/** How long one activity works, so that the workflow's history shows the progress of the intake. */
const SLICE_MS = 5_000

/**
 * The subscribers who should enter an automation, and the `trigger` that their runs store as their cause. Ids are
 * UUIDs.
 */
export type NewIntake = {
  automation: { id: string; name: string }
  filters: readonly Filter[]
  cause: Record<string, unknown>
  most: number | null
  expected: number
  /** For a timed trigger: its step, and the stretch of time in which subscribers became due. */
  due?: { stepId: string } & Stretch
}

type Intake = {
  id: string
  automationId: string
  filters: Filter[]
  cause: Record<string, unknown>
  most: number | null
  expected: number
  status: 'RUNNING' | 'COMPLETED' | 'CANCELED' | 'FAILED'
  error: string | null
  reached: string
  looked: number
  entered: number
  createdAt: string
  stepId: string | null
  dueFrom: string | null
  dueTo: string | null
  automationName: string
  automationStatus: WorkflowStatus
  versionId: string | null
}

/**
 * Stores an intake and starts its workflow when the transaction has committed. Returns the workflow's id, or null if
 * this timed trigger has an intake for this moment already.
 */
export async function beginIntake(call: Call, intake: NewIntake): Promise<string | null> {
  const { organization } = call
  const id = newId()
  const moment = (member: 'from' | 'to') =>
    intake.due ? sql`to_timestamp(${intake.due[member] / 1000}::float8)` : sql`null`
  const count = await execute(
    call.em,
    sql`insert into automation_intake (id, organization_id, automation_id, filters, cause, most, expected, step_id,
        due_from, due_to)
      values (${id}, ${organization.id}, ${intake.automation.id}, ${json(intake.filters)}, ${json(intake.cause)},
        ${intake.most}, ${intake.expected}, ${intake.due?.stepId ?? null}, ${moment('from')}, ${moment('to')})
      on conflict (organization_id, automation_id, step_id, due_to) do nothing`,
  )
  return count === 0 ? null : startIntake(call, { ...intake, id })
}

/**
 * Starts the workflow of a stored intake when the transaction has committed; `restart` does so even if one has
 * completed. Returns the workflow's id.
 */
export function startIntake(
  call: Call,
  { id, automation, expected }: Pick<NewIntake, 'automation' | 'expected'> & { id: string },
  { restart = false } = {},
): string {
  const automationId = encodeId('wf', automation.id)
  const workflowId = intakeWorkflowId(automationId, id)
  call.emit({
    kind: 'start',
    workflowId,
    payload: {
      workflow: AUTOMATION_INTAKE,
      input: { organizationId: encodeId('org', call.organization.id), automationId, intakeId: id },
      summary: `${expected} people into ${automation.name.slice(0, 120)}`,
      details: `Lets many people into ${automationId}. After a crash it continues where it was, and nobody enters twice.`,
      restart,
    },
  })
  return workflowId
}

/**
 * Compiles the filters of the intake, and those of the trigger by which it enters, into one predicate. `single` is for
 * a page of subscribers instead of all; see audiencePredicate.
 */
export async function intakePredicate(
  { em, organization }: Call,
  { automationId, version }: { automationId: string; version: Version },
  filters: readonly Filter[],
  { single = false }: { single?: boolean } = {},
): Promise<Predicate> {
  const own = manualEntry(version.definition)?.config.filters ?? []
  const context = { entry: {}, run: { automationId } }
  const scope = { organizationId: organization.id }
  return await audiencePredicate(em, scope, [...filters, ...own], context, { single })
}

/**
 * Lets subscribers in for about `SLICE_MS`. Each page and its checkpoint are one transaction under the lock of the
 * intake, so after a crash nobody enters twice and nobody is left out.
 */
export async function continueIntake(
  services: Services,
  organizationId: string,
  intakeId: string,
  { report, isStopping }: WorkControl<IntakeProgress>,
): Promise<IntakeProgress> {
  const scope = { organizationId, actor: { kind: 'system', id: intakeId, name: 'intake' } as const }
  const until = Date.now() + SLICE_MS
  for (;;) {
    const progress = await unitOfWork(services, scope, (call) => takePage(call, intakeId))
    report(progress)
    if (progress.state !== 'RUNNING' || Date.now() > until || isStopping()) return progress
  }
}

/** Cancels an intake. Subscribers who have entered stay in. */
export async function cancelIntake(
  services: Services,
  organizationId: string,
  intakeId: string,
): Promise<IntakeProgress> {
  const scope = { organizationId, actor: { kind: 'system', id: intakeId, name: 'operator' } as const }
  return await unitOfWork(services, scope, async (call) => {
    const intake = await lockIntake(call, intakeId)
    if (!intake) return GONE
    return intake.status === 'RUNNING' ? await end(call, intake, 'CANCELED') : progressOf(intake)
  })
}

const GONE: IntakeProgress = { state: 'CANCELED', looked: 0, expected: 0, entered: 0, error: null }

async function takePage(call: Call, intakeId: string): Promise<IntakeProgress> {
  const intake = await lockIntake(call, intakeId)
  if (!intake) return GONE
  const { automationStatus, versionId } = intake
  if (intake.status !== 'RUNNING') return progressOf(intake)
  if (automationStatus === 'PAUSED') return { ...progressOf(intake), state: 'PAUSED' }
  if (automationStatus !== 'ACTIVE' || versionId === null) return await end(call, intake, 'CANCELED')
  try {
    return await letIn(call, intake, await loadVersion(call.em, call.organization.id, versionId))
  } catch (error) {
    // A filter names something that was deleted. Filters are compiled before the page writes anything.
    if (!(error instanceof Failure)) throw error
    return await end(call, { ...intake, error: `A filter cannot be asked (${error.code}).` }, 'FAILED')
  }
}

async function letIn(call: Call, intake: Intake, version: Version): Promise<IntakeProgress> {
  const size = Math.min(PAGE, intake.most === null ? PAGE : intake.most - intake.looked)
  const page =
    size > 0 ? await nextPage(call, intake, version, size) : { people: [], candidates: [], reached: null }
  if (page === null) return await end(call, intake, 'CANCELED')
  const { people, candidates, reached } = page
  const enrolments = await enrol(call, candidates, { priority: BULK_PRIORITY })
  const moved: Intake = {
    ...intake,
    reached: reached ?? intake.reached,
    looked: intake.looked + people.length,
    entered: intake.entered + enrolments.filter((each) => 'runId' in each).length,
  }
  const isLast = reached === null || moved.looked === intake.most
  return await (isLast ? end(call, moved, 'COMPLETED') : save(call, moved))
}

/**
 * The subscribers of a page, those of them who may enter, and the id after which the next page begins (null: no more).
 */
type Page = { people: string[]; candidates: Candidate[]; reached: string | null }

/** Reads the next page of an intake; null if the trigger that began the intake is gone. */
async function nextPage(call: Call, intake: Intake, version: Version, size: number): Promise<Page | null> {
  const { automationId, automationName, cause, stepId } = intake
  const common = { automationId, automationName, version }
  if (stepId !== null) {
    const timed = timedTrigger(version, stepId)
    if (!timed || timed.config.type !== cause.type) return null
    return await duePage(call, intake, timed, size)
  }
  const start = manualEntry(version.definition)?.id ?? ''
  const people = await nextPeople(call, intake, version, size)
  const candidates = people.map((subscriberId): Candidate => ({
    ...common,
    subscriberId,
    stepId: start,
    trigger: cause,
    context: {},
  }))
  return { people, candidates, reached: people.length < size ? null : (people.at(-1) ?? null) }
}

/**
 * Reads the next page of subscribers for whom a timed trigger is due. Records refusals as decisions, and marks
 * occasions as taken so that nobody enters twice by the same one.
 */
async function duePage(call: Call, intake: Intake, timed: Timed, size: number): Promise<Page> {
  const { automationId, automationName, cause, reached, createdAt } = intake
  const { version, stepId } = timed
  const stretch = { from: Date.parse(intake.dueFrom ?? ''), to: Date.parse(intake.dueTo ?? '') }
  const page = await nextDue(call, timed, stretch, { reached, createdAt, size })
  const due = page.people
  const keys = { automationId, stepId }
  await recordDecisions(
    call,
    due.flatMap(({ id, refusal }) =>
      refusal === null ? [] : [{ ...keys, subscriberId: id, action: 'ENTRY_REFUSED', reason: refusal }],
    ),
  )
  const admitted = due.filter(({ refusal }) => refusal === null)
  const isOnce = timed.config.type !== 'SCHEDULE'
  const fresh = isOnce ? await takeOccasions(call, timed, admitted) : null
  return {
    reached: page.reached,
    people: due.map(({ id }) => id),
    candidates: admitted
      .filter(({ id }) => fresh?.has(id) ?? true)
      .map(({ id, occasion, dueAt }): Candidate => ({
        ...keys,
        automationName,
        version,
        subscriberId: id,
        trigger: { ...cause, dueAt: new Date(dueAt).toISOString() },
        context: entryDataOf(timed.config, occasion, new Date(dueAt).toISOString()),
      })),
  }
}

/** Reads the ids of the next page. Subscribers who were created after the intake are excluded, so that it ends. */
async function nextPeople(call: Call, intake: Intake, version: Version, size: number): Promise<string[]> {
  const { automationId, filters } = intake
  const predicate = await intakePredicate(call, { automationId, version }, filters, { single: true })
  const found = await rows<{ id: string }>(
    call.em,
    sql`select s.id from subscriber s where s.organization_id = ${call.organization.id}
      and s.id > ${intake.reached} and s.created_at <= ${intake.createdAt} and ${predicate}
      order by s.id limit ${size}`,
  )
  return found.map(({ id }) => id)
}

async function lockIntake({ em, organization }: Call, id: string): Promise<Intake | null> {
  return await row<Intake>(
    em,
    sql`select intake.id, intake.automation_id as "automationId", intake.filters, intake.cause, intake.most,
        intake.expected, intake.status, intake.error, intake.reached, intake.looked, intake.entered,
        intake.created_at as "createdAt", intake.step_id as "stepId", intake.due_from as "dueFrom",
        intake.due_to as "dueTo", automation.name as "automationName",
        automation.status as "automationStatus", automation.published_version_id as "versionId"
      from automation_intake intake
      join automation on automation.organization_id = intake.organization_id and automation.id = intake.automation_id
      where intake.organization_id = ${organization.id} and intake.id = ${id}
      for update of intake for share of automation`,
  )
}

async function end(call: Call, intake: Intake, status: Intake['status']): Promise<IntakeProgress> {
  return await save(call, { ...intake, status })
}

async function save({ em, organization }: Call, intake: Intake): Promise<IntakeProgress> {
  await execute(
    em,
    sql`update automation_intake set status = ${intake.status}, error = ${intake.error}, reached = ${intake.reached},
        looked = ${intake.looked}, entered = ${intake.entered},
        finished_at = case when ${intake.status !== 'RUNNING'} then now() end
      where organization_id = ${organization.id} and id = ${intake.id}`,
  )
  return progressOf(intake)
}

function progressOf({ status, looked, expected, entered, error }: Intake): IntakeProgress {
  return { state: status, looked, expected, entered, error }
}
