import type { Run } from '../../../../schema/run.ts'
import { manualEntry } from '../../../../temporal/graph.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { encodeId, missing } from '../../../ids.ts'
import { matches } from '../../audience/match.ts'
import { findSubscriber } from '../../subscribers/records.ts'
import { loadVersion, type Version } from '../definition/versions.ts'
import { recordDecisions } from '../runs/decisions.ts'
import { type AutomationRow, type Enrolled, findEnterable } from '../runs/run-control.ts'
import { readRun } from '../runs/run-records.ts'
import { enrol, type Refusal } from './enrolment.ts'
import type { Candidate } from './run-inserts.ts'

/** The text for each refusal, which continues a sentence that begins with "The subscriber". */
export const REFUSALS: Readonly<Record<Refusal, string>> = {
  ALREADY_ENTERED:
    'has been through this workflow, which lets everybody enter once (settings.reEntry.mode ONCE)',
  ALREADY_ACTIVE: 'is in this workflow already; remove them first, or wait for the run to end',
  COOLDOWN: 'entered this workflow too short a time ago (settings.reEntry.cooldown)',
  MAX_ENTRIES: 'has entered this workflow as often as it allows (settings.reEntry.maxEntries)',
  LOOP: 'is at the end of a chain of ten workflows that started each other; break the chain',
  NO_KEY: 'cannot enter without a key: send a context with a value at settings.reEntry.keyPath',
}

/** `trigger` is stored with the run as its cause; `priority` is that of its start in the outbox. */
type EntryOptions = { trigger?: Record<string, unknown>; priority?: number }

/**
 * Lets one subscriber enter by hand and returns the run. Throws `WRONG_STATE` if the workflow is not ACTIVE, or if
 * filters or re-entry refuse the subscriber, and records that as a decision.
 */
export async function enterByHand(
  call: Call,
  input: Enrolled & { context?: Record<string, unknown> | undefined; startStepId?: string | undefined },
  { trigger = { type: 'MANUAL', by: call.actor.id }, priority = 10 }: EntryOptions = {},
): Promise<Run> {
  const automation = await findEnterable(call, input.workflowId)
  const subscriber = await findSubscriber(call, input)
  const refused = {
    automationId: automation.id,
    subscriberId: subscriber.id,
    action: 'ENTRY_REFUSED',
  } as const
  if (automation.status !== 'ACTIVE' || automation.versionId === null) {
    call.ifRefused((own) => recordDecisions(own, [{ ...refused, reason: automation.status }]))
    refuseStatus(automation)
  }
  const version = await loadVersion(call.em, call.organization.id, automation.versionId)
  const stepId = startOf(version, input.startStepId)
  const context = input.context ?? {}
  const candidate: Candidate = {
    automationId: automation.id,
    automationName: automation.name,
    version,
    subscriberId: subscriber.id,
    stepId,
    trigger,
    context,
  }
  await requireFilters(call, candidate)
  const [enrolment] = await enrol(call, [candidate], { priority })
  if (!enrolment) missing('sub', encodeId('sub', subscriber.id))
  if ('refusal' in enrolment) {
    const { refusal } = enrolment
    // The decision that `enrol` wrote is rolled back with this call, so it is written again afterwards.
    call.ifRefused((own) => recordDecisions(own, [{ ...refused, stepId, reason: refusal }]))
    throw new Failure('WRONG_STATE', `The subscriber ${REFUSALS[refusal]}.`, { details: { reason: refusal } })
  }
  return await readRun(call, enrolment.runId)
}

/** Throws `WRONG_STATE` for an entry into a workflow that is not ACTIVE. */
export function refuseStatus({ status }: Pick<AutomationRow, 'status'>): never {
  const repair =
    status === 'DRAFT'
      ? 'publish it first (publish_workflow)'
      : 'set it ACTIVE first (update_workflow_status)'
  throw new Failure('WRONG_STATE', `The workflow is ${status} and lets nobody in; ${repair}.`, {
    details: { status },
  })
}

function startOf(version: Version, startStepId: string | undefined): string {
  const { steps } = version.graph
  const entry = startStepId ?? manualEntry(version.definition)?.id ?? ''
  if (steps.has(entry)) return entry
  const known = [...steps.keys()].slice(0, 50).join(', ')
  const message = `is not a step of the published version; its steps are ${known}`
  throw new Failure('INVALID_INPUT', `startStepId ${message}.`, {
    details: [{ path: 'startStepId', message }],
  })
}

/** Throws `WRONG_STATE` if the run begins at a trigger whose filters the subscriber does not match. */
async function requireFilters(
  call: Call,
  { version, stepId, subscriberId, automationId, context }: Candidate,
): Promise<void> {
  const step = version.graph.steps.get(stepId)
  const filters = step?.type === 'TRIGGER' ? (step.config.filters ?? []) : []
  if (filters.length === 0) return
  const scope = { organizationId: call.organization.id }
  if (await matches(call.em, scope, subscriberId, filters, { entry: context, run: { automationId } })) return
  const refused = { automationId, subscriberId, stepId, action: 'ENTRY_REFUSED', reason: 'FILTERS' } as const
  call.ifRefused((own) => recordDecisions(own, [refused]))
  throw new Failure(
    'WRONG_STATE',
    `The subscriber does not match the filters of the trigger ${JSON.stringify(stepId)}.`,
    {
      details: { reason: 'FILTERS', stepId },
    },
  )
}
