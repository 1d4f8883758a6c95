import { type RawBuilder, sql } from 'kysely'

import type { ReEntry } from '../../../schema/automation.ts'
import { AUTOMATION_RUN, type AutomationRunInput } from '../../../temporal/contract.ts'
import { durationMilliseconds, reEntryOf } from '../../../temporal/graph.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, execute, rows } from '../../database.ts'
import { encodeId, newId } from '../../ids.ts'
import { isRecord } from '../audience/values.ts'
import { insertEvents } from '../event-rows.ts'
import { IS_ACTIVE } from './active.ts'
import { recordDecisions } from './decisions.ts'
import { workflowIdOf } from './nudge.ts'
import type { Version } from './versions.ts'
import { endEventWaits } from './waits.ts'

/** A subscriber whom a trigger or a call lets in, if the automation's re-entry allows. Ids are uuids. */
export type Candidate = {
  automationId: string
  automationName: string
  version: Version
  subscriberId: string
  /** Where the run begins: a TRIGGER, or any step when a call says so. */
  stepId: string
  /** Stored with the run: what started it. */
  trigger: Record<string, unknown>
  /** What filters read as `entry.<path>`. */
  context: Record<string, unknown>
}

/** Why re-entry refuses; words for the ledger and for errors. */
export type Refusal = 'ALREADY_ENTERED' | 'ALREADY_ACTIVE' | 'COOLDOWN' | 'MAX_ENTRIES' | 'NO_KEY'

/** What became of a candidate. */
export type Enrolment = { candidate: Candidate; runId: string } | { candidate: Candidate; refusal: Refusal }

type Entry = { automationId: string; subscriberId: string; runs: number; idleMs: number | null }
type NewRun = { id: string; candidate: Candidate; number: number; entryKey: string }

/**
 * Decides re-entry for all candidates together and starts the runs: the upsert on automation_entry locks each
 * (automation, subscriber), so parallel calls decide one after the other, and it numbers the runs. Refusals become rows
 * of the ledger.
 */
export async function enrol(
  call: Call,
  candidates: readonly Candidate[],
  options: { priority?: number } = {},
): Promise<Enrolment[]> {
  if (candidates.length === 0) return []
  const entries = await lockEntries(call, candidates)
  const active = await activeKeys(call, candidates)
  const runs: NewRun[] = []
  const results: Enrolment[] = []
  for (const candidate of candidates) {
    const entry = entries.get(pairOf(candidate))
    // The subscriber was deleted meanwhile.
    if (!entry) continue
    const decided = decide(candidate, entry, active)
    if ('refusal' in decided) {
      results.push({ candidate, refusal: decided.refusal })
      continue
    }
    entry.runs += 1
    entry.idleMs = 0
    active.add(`${pairOf(candidate)}/${decided.entryKey}`)
    const run = { id: newId(), candidate, number: entry.runs, entryKey: decided.entryKey }
    runs.push(run)
    results.push({ candidate, runId: run.id })
  }
  await insertRuns(call, runs, options.priority ?? 0)
  await recordDecisions(
    call,
    results.flatMap((result) =>
      'refusal' in result
        ? [{ ...keysOf(result.candidate), action: 'ENTRY_REFUSED' as const, reason: result.refusal }]
        : [],
    ),
  )
  return results
}

function keysOf({ automationId, subscriberId, stepId }: Candidate) {
  return { automationId, subscriberId, stepId }
}

function pairOf({ automationId, subscriberId }: { automationId: string; subscriberId: string }): string {
  return `${automationId}/${subscriberId}`
}

/** The people are locked first, so that the events of their entries take turns with waits for them. */
async function lockEntries(call: Call, candidates: readonly Candidate[]): Promise<Map<string, Entry>> {
  const found = await rows<Entry>(
    call.em,
    sql`with people as (
        select id from subscriber where organization_id = ${call.organization.id}
          and id = any(${array([...new Set(candidates.map(({ subscriberId }) => subscriberId))], 'uuid')})
        order by id for share)
      insert into automation_entry as entry (organization_id, automation_id, subscriber_id)
      select distinct ${call.organization.id}::uuid, asked.automation_id, asked.subscriber_id
      from ${pairRows(candidates)} as asked (automation_id, subscriber_id)
      join people on people.id = asked.subscriber_id
      order by 2, 3
      on conflict (organization_id, automation_id, subscriber_id) do update set runs = entry.runs
      returning automation_id as "automationId", subscriber_id as "subscriberId", runs,
        extract(epoch from now() - last_entered_at)::float8 * 1000 as "idleMs"`,
  )
  return new Map(found.map((entry) => [pairOf(entry), entry]))
}

/** `automation/subscriber/key` of every run that is not over. Asked after the locks, so it is the last word. */
async function activeKeys(call: Call, candidates: readonly Candidate[]): Promise<Set<string>> {
  const found = await rows<{ automationId: string; subscriberId: string; entryKey: string }>(
    call.em,
    sql`select run.automation_id as "automationId", run.subscriber_id as "subscriberId", run.entry_key as "entryKey"
      from (select distinct automation_id, subscriber_id
        from ${pairRows(candidates)} as pair (automation_id, subscriber_id)
      ) as asked
      join automation_run run on run.organization_id = ${call.organization.id}
        and run.automation_id = asked.automation_id and run.subscriber_id = asked.subscriber_id
        and run.${IS_ACTIVE}`,
  )
  return new Set(found.map((run) => `${pairOf(run)}/${run.entryKey}`))
}

function pairRows(candidates: readonly Candidate[]): RawBuilder<unknown> {
  const automations = candidates.map(({ automationId }) => automationId)
  const subscribers = candidates.map(({ subscriberId }) => subscriberId)
  return sql`unnest(${array(automations, 'uuid')}, ${array(subscribers, 'uuid')})`
}

function decide(
  candidate: Candidate,
  entry: Entry,
  active: ReadonlySet<string>,
): { entryKey: string } | { refusal: Refusal } {
  const { definition } = candidate.version
  const rule = reEntryOf(definition, definition.settings)
  const entryKey = entryKeyOf(rule, candidate)
  if (entryKey === null) return { refusal: 'NO_KEY' }
  if (active.has(`${pairOf(candidate)}/${entryKey}`)) return { refusal: 'ALREADY_ACTIVE' }
  if (rule.mode === 'ONCE' && entry.runs > 0) return { refusal: 'ALREADY_ENTERED' }
  if (rule.maxEntries !== undefined && entry.runs >= rule.maxEntries) return { refusal: 'MAX_ENTRIES' }
  if (rule.cooldown && entry.idleMs !== null && entry.idleMs < durationMilliseconds(rule.cooldown)) {
    return { refusal: 'COOLDOWN' }
  }
  return { entryKey }
}

/** Runs of one key exclude each other while active; EVERY_TIME gives each its own. Null where PER_KEY finds no key. */
function entryKeyOf(rule: ReEntry, { context }: Candidate): string | null {
  if (rule.mode === 'EVERY_TIME') return newId()
  if (rule.mode !== 'PER_KEY') return ''
  let value: unknown = context
  for (const part of (rule.keyPath ?? '').split('.')) value = isRecord(value) ? value[part] : undefined
  if (typeof value === 'string' && value !== '') return `key/${value.slice(0, 500)}`
  return typeof value === 'number' || typeof value === 'boolean' ? `key/${value}` : null
}

async function insertRuns(call: Call, runs: readonly NewRun[], priority: number): Promise<void> {
  if (runs.length === 0) return
  const { em, organization } = call
  await execute(
    em,
    sql`with made as (
        insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number, entry_key,
          current_step_id, wake_at, trigger, context)
        select id, ${organization.id}, automation_id, version_id, subscriber_id, number, entry_key, step_id, now(),
          trigger, context
        from unnest(
          ${array(
            runs.map(({ id }) => id),
            'uuid',
          )}, ${array(
            runs.map((run) => run.candidate.automationId),
            'uuid',
          )},
          ${array(
            runs.map((run) => run.candidate.version.id),
            'uuid',
          )},
          ${array(
            runs.map((run) => run.candidate.subscriberId),
            'uuid',
          )},
          ${array(
            runs.map(({ number }) => number),
            'int',
          )}, ${array(
            runs.map(({ entryKey }) => entryKey),
            'text',
          )},
          ${array(
            runs.map((run) => run.candidate.stepId),
            'text',
          )},
          ${array(
            runs.map((run) => ({ stepId: run.candidate.stepId, ...run.candidate.trigger })),
            'jsonb',
          )},
          ${array(
            runs.map((run) => run.candidate.context),
            'jsonb',
          )}
        ) as given (id, automation_id, version_id, subscriber_id, number, entry_key, step_id, trigger, context)
        returning automation_id, subscriber_id, number)
      update automation_entry entry set runs = made.number, last_entered_at = now()
      from (select automation_id, subscriber_id, max(number) as number from made group by 1, 2) as made
      where entry.organization_id = ${organization.id} and entry.automation_id = made.automation_id
        and entry.subscriber_id = made.subscriber_id`,
  )
  const recorded = await insertEvents(
    call,
    runs.map(({ id, candidate }) => ({
      subscriberId: candidate.subscriberId,
      type: 'WORKFLOW_STARTED',
      data: { workflowId: encodeId('wf', candidate.automationId), runId: encodeId('run', id) },
    })),
  )
  for (const run of runs) {
    call.emit({
      kind: 'start',
      workflowId: workflowIdOf({ ...run.candidate, number: run.number }),
      payload: startPayload(call.organization.id, run),
      priority,
    })
  }
  if (recorded.isAwaited) await endEventWaits(call, recorded.events)
}

/** What the relay starts a workflow with; the reconciler makes the same for a run whose workflow is gone. */
export function startPayload(
  organizationId: string,
  run: {
    id: string
    candidate: {
      automationId: string
      automationName: string
      version: { number: number }
      subscriberId: string
    }
  },
): { workflow: string; input: Omit<AutomationRunInput, 'searchable'>; summary: string } {
  const { automationId, automationName, version, subscriberId } = run.candidate
  const subscriber = encodeId('sub', subscriberId)
  return {
    workflow: AUTOMATION_RUN,
    input: {
      organizationId: encodeId('org', organizationId),
      automationId: encodeId('wf', automationId),
      subscriberId: subscriber,
      runId: encodeId('run', run.id),
    },
    summary: `${automationName.slice(0, 120)} v${version.number} · ${subscriber}`,
  }
}
