import { sql } from 'kysely'

import type { Filter } from '../../../../schema/audience.ts'
import { reEntryOf } from '../../../../temporal/graph.ts'
import { Failure, refuse } from '../../../catalogue/failure.ts'
import type { Call, Impact } from '../../../catalogue/tool.ts'
import { row } from '../../../database.ts'
import { decodeId, missing } from '../../../ids.ts'
import { checkFilters } from '../../audience/check.ts'
import { titleOf } from '../definition/records.ts'
import { loadVersion, type Version } from '../definition/versions.ts'
import { findEnterable } from '../runs/run-control.ts'
import { refuseStatus } from './enter-by-hand.ts'
import { beginIntake, intakePredicate, type NewIntake } from './intake.ts'

/** The subscribers who should enter, by exactly one of `filters` and `segmentId`, and at most `limit` of them. */
export type AudienceChoice = {
  workflowId: string
  filters?: unknown
  segmentId?: string | undefined
  limit?: number | undefined
}

/** Begins an intake that lets all matching subscribers in, in the background. Returns how many match now. */
export async function enterMany(
  call: Call,
  choice: AudienceChoice,
): Promise<{ count: number; temporalUrl: string | null }> {
  const intake = await readNewIntake(call, choice)
  if (intake.expected === 0) return { count: 0, temporalUrl: null }
  const workflowId = await beginIntake(call, intake)
  const temporalUrl = workflowId === null ? null : call.services.temporal.workflowUrl(workflowId)
  return { count: intake.expected, temporalUrl }
}

/** Describes what `enterMany` will do. Throws if it is not possible. */
export async function summarizeMany(call: Call, choice: AudienceChoice): Promise<Impact> {
  const { automation, expected, most, filters } = await readNewIntake(call, choice)
  const everybody = filters.length === 0 && most === null
  return {
    target: titleOf(automation),
    recipients: expected,
    effects: [
      `${expected} subscriber${expected === 1 ? ' enters' : 's enter'} in the background, where re-entry and the group allow it.`,
      'They get its emails as if they had entered one by one.',
    ],
    warnings: everybody ? ['There are no filters: this is the whole audience.'] : [],
  }
}

async function readNewIntake(
  call: Call,
  { workflowId, limit, ...choice }: AudienceChoice,
): Promise<NewIntake> {
  const automation = await findEnterable(call, workflowId)
  const filters = await filtersOf(call, choice)
  if (automation.status !== 'ACTIVE' || automation.versionId === null) refuseStatus(automation)
  const version = await loadVersion(call.em, call.organization.id, automation.versionId)
  refuseKeyless(version)
  const predicate = await intakePredicate(call, { automationId: automation.id, version }, filters)
  const found = await row<{ count: number }>(
    call.em,
    sql`select count(*)::int as count from subscriber s
      where s.organization_id = ${call.organization.id} and ${predicate}`,
  )
  const count = found?.count ?? 0
  const most = limit ?? null
  const cause = { type: 'MANUAL', by: call.actor.id }
  return { automation, filters, cause, most, expected: most === null ? count : Math.min(count, most) }
}

/** Throws `WRONG_STATE` if re-entry needs a key, because an intake starts runs without data and nobody would enter. */
function refuseKeyless({ definition }: Version): void {
  if (reEntryOf(definition, definition.settings).mode !== 'PER_KEY') return
  throw new Failure(
    'WRONG_STATE',
    'The workflow lets nobody in without a key (settings.reEntry.mode PER_KEY), and many at once have none; add each with add_subscriber_to_workflow and a context.',
    { details: { reason: 'NO_KEY' } },
  )
}

async function filtersOf(
  call: Call,
  { filters, segmentId }: Pick<AudienceChoice, 'filters' | 'segmentId'>,
): Promise<Filter[]> {
  if ((filters === undefined) === (segmentId === undefined)) {
    refuse('filters', 'and segmentId say who enters: send exactly one of them.')
  }
  if (segmentId === undefined) {
    return await checkFilters(call.em, { organizationId: call.organization.id }, filters, 'filters')
  }
  const found = await row(
    call.em,
    sql`select from segment where organization_id = ${call.organization.id} and id = ${decodeId('seg', segmentId)}`,
  )
  if (!found) missing('seg', segmentId)
  return [{ field: 'segment', operator: 'has_any', value: [segmentId] }]
}
