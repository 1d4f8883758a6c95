import { type RawBuilder, sql } from 'kysely'

import type { ReEntry } from '../../../../schema/automation.ts'
import { isRecord } from '../../../../schema/json.ts'
import { durationMilliseconds, reEntryOf } from '../../../../temporal/graph.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, row, rows } from '../../../database.ts'
import { newId } from '../../../ids.ts'
import { IS_ACTIVE } from '../runs/active.ts'
import { type Decision, recordDecisions } from '../runs/decisions.ts'
import {
  decideTurn,
  type GroupRules,
  lockGroups,
  lockPlaces,
  type Occupation,
  placeKey,
  readPlaces,
} from '../groups/group-places.ts'
import { type Candidate, insertRuns, type NewRun } from './run-inserts.ts'
import { cancelRuns, endEventWaits } from '../runs/runs.ts'

/** Why re-entry refuses; words for the ledger and for errors. */
export type Refusal = 'ALREADY_ENTERED' | 'ALREADY_ACTIVE' | 'COOLDOWN' | 'MAX_ENTRIES' | 'NO_KEY' | 'LOOP'

/** How many runs may follow each other, each started by the one before (decisions, section 6). */
export const MOST_DEPTH = 10

/** What became of a candidate: a run, which a group may have skipped, or none. */
export type Enrolment = { candidate: Candidate; runId: string } | { candidate: Candidate; refusal: Refusal }

type Entry = {
  automationId: string
  subscriberId: string
  groupId: string | null
  runs: number
  entered: number
  idleMs: number | null
}
type Groups = { rules: ReadonlyMap<string, GroupRules>; places: Map<string, Occupation> }

/**
 * Decides re-entry and groups for all candidates together and starts the runs: the upsert on automation_entry locks
 * each (automation, subscriber), so parallel calls decide one after the other, and it numbers the runs; places in groups
 * are locked after that. Refusals become rows of the ledger.
 */
export async function enrol(
  call: Call,
  candidates: readonly Candidate[],
  options: { priority?: number } = {},
): Promise<Enrolment[]> {
  if (candidates.length === 0) return []
  if ((call.actor.depth ?? 0) >= MOST_DEPTH) return await refuseLoop(call, candidates)
  const entries = await lockEntries(call, candidates)
  const groups = await lockGroupsOf(call, [...entries.values()])
  const active = await activeKeys(call, candidates)
  const runs = new Map<string, NewRun>()
  const preempted: string[] = []
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
    const run: NewRun = {
      id: newId(),
      candidate,
      number: entry.runs,
      ...decided,
      groupId: entry.groupId,
      turn: 'HOLDS',
    }
    const loser = takePlace(run, groups)
    const unborn = loser === null ? undefined : runs.get(loser)
    if (unborn) unborn.turn = 'SKIPPED'
    else if (loser !== null) preempted.push(loser)
    runs.set(run.id, run)
    results.push({ candidate, runId: run.id })
    if (run.turn === 'SKIPPED') continue
    entry.entered += 1
    entry.idleMs = 0
    active.add(`${pairOf(candidate)}/${decided.entryKey}`)
  }
  await cancelRuns(call, preempted, 'GROUP_CONFLICT', { keepPlaces: true })
  await endEventWaits(call, await insertRuns(call, [...runs.values()], options.priority ?? 0))
  await recordDecisions(
    call,
    results.flatMap((result) => decisionsOn(result, runs)),
  )
  return results
}

/** Workflows that start each other in a circle would never end; the chain of runs is cut. */
async function refuseLoop(call: Call, candidates: readonly Candidate[]): Promise<Enrolment[]> {
  const refused = candidates.map(({ automationId, subscriberId, stepId }) => ({
    automationId,
    subscriberId,
    stepId,
    action: 'ENTRY_REFUSED' as const,
    reason: 'LOOP',
  }))
  await recordDecisions(call, refused)
  return candidates.map((candidate) => ({ candidate, refusal: 'LOOP' }))
}

/** Takes a run's turn in its group into account; answers the id of the run whose place it takes. */
function takePlace(run: NewRun, { rules, places }: Groups): string | null {
  const { groupId, candidate } = run
  const group = groupId === null ? undefined : rules.get(groupId)
  if (groupId === null || !group) return null
  const key = placeKey({ groupId, subscriberId: candidate.subscriberId })
  const place = places.get(key) ?? { holder: null, queued: 0 }
  places.set(key, place)
  const { priority } = candidate.version.definition.settings
  const turn = decideTurn(group.conflictStrategy, place, priority)
  if (turn === 'SKIPPED') run.turn = turn
  if (turn === 'QUEUES') {
    run.turn = turn
    run.maxQueueMs = group.maxQueueAge && durationMilliseconds(group.maxQueueAge)
    place.queued += 1
  }
  if (run.turn !== 'HOLDS') return null
  const loser = place.holder?.runId ?? null
  place.holder = { runId: run.id, priority }
  return loser
}

function decisionsOn(result: Enrolment, runs: ReadonlyMap<string, NewRun>): Decision[] {
  const keys = { ...keysOf(result.candidate), action: 'ENTRY_REFUSED' as const }
  if ('refusal' in result) return [{ ...keys, reason: result.refusal }]
  const isSkipped = runs.get(result.runId)?.turn === 'SKIPPED'
  return isSkipped ? [{ ...keys, runId: result.runId, reason: 'GROUP_CONFLICT' }] : []
}

/** Nothing where no automation is in a group. */
async function lockGroupsOf(call: Call, entries: readonly Entry[]): Promise<Groups> {
  const places = entries.flatMap(({ groupId, subscriberId }) =>
    groupId === null ? [] : [{ groupId, subscriberId }],
  )
  if (places.length === 0) return { rules: new Map(), places: new Map() }
  const rules = await lockGroups(
    call,
    places.map(({ groupId }) => groupId),
  )
  await lockPlaces(call, places)
  return { rules, places: await readPlaces(call, places) }
}

function keysOf({ automationId, subscriberId, stepId }: Candidate) {
  return { automationId, subscriberId, stepId }
}

function pairOf({ automationId, subscriberId }: { automationId: string; subscriberId: string }): string {
  return `${automationId}/${subscriberId}`
}

/**
 * The people are locked first, so that the events of their entries take turns with waits for them; the automations only
 * against moving to another group.
 */
async function lockEntries(call: Call, candidates: readonly Candidate[]): Promise<Map<string, Entry>> {
  const found = await rows<Entry>(
    call.em,
    sql`with people as (
        select id from subscriber where organization_id = ${call.organization.id}
          and id = any(${array([...new Set(candidates.map(({ subscriberId }) => subscriberId))], 'uuid')})
        order by id for share
      ), automations as (
        select id, group_id from automation where organization_id = ${call.organization.id}
          and id = any(${array([...new Set(candidates.map(({ automationId }) => automationId))], 'uuid')})
        order by id for key share
      ), locked as (
        insert into automation_entry as entry (organization_id, automation_id, subscriber_id)
        select distinct ${call.organization.id}::uuid, asked.automation_id, asked.subscriber_id
        from ${pairRows(candidates)} as asked (automation_id, subscriber_id)
        join people on people.id = asked.subscriber_id
        join automations on automations.id = asked.automation_id
        order by 2, 3
        on conflict (organization_id, automation_id, subscriber_id) do update set runs = entry.runs
        returning automation_id, subscriber_id, runs, entered, last_entered_at)
      select locked.automation_id as "automationId", locked.subscriber_id as "subscriberId",
        automations.group_id as "groupId", locked.runs, locked.entered,
        extract(epoch from now() - locked.last_entered_at)::float8 * 1000 as "idleMs"
      from locked join automations on automations.id = locked.automation_id`,
  )
  return new Map(found.map((entry) => [pairOf(entry), entry]))
}

/** `automation/subscriber/key` of every run that is not over. Asked after the locks, so it is the last word. */
export async function activeKeys(
  call: Call,
  candidates: readonly Pick<Candidate, 'automationId' | 'subscriberId'>[],
): Promise<Set<string>> {
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

function pairRows(
  candidates: readonly Pick<Candidate, 'automationId' | 'subscriberId'>[],
): RawBuilder<unknown> {
  const automations = candidates.map(({ automationId }) => automationId)
  const subscribers = candidates.map(({ subscriberId }) => subscriberId)
  return sql`unnest(${array(automations, 'uuid')}, ${array(subscribers, 'uuid')})`
}

/** What re-entry decides from, read without a lock: for telling what it would say. */
export async function readEntry(
  { em, organization }: Call,
  automationId: string,
  subscriberId: string,
): Promise<Pick<Entry, 'entered' | 'idleMs'> | null> {
  return await row(
    em,
    sql`select entered, extract(epoch from now() - last_entered_at)::float8 * 1000 as "idleMs" from automation_entry
      where organization_id = ${organization.id} and automation_id = ${automationId}
        and subscriber_id = ${subscriberId}`,
  )
}

/** The key a run would have, or why re-entry refuses it; `active` holds `automation/subscriber/key` of runs under way. */
export function decide(
  candidate: Pick<Candidate, 'automationId' | 'subscriberId' | 'version' | 'context'>,
  entry: Pick<Entry, 'entered' | 'idleMs'>,
  active: ReadonlySet<string>,
): { entryKey: string } | { refusal: Refusal } {
  const { definition } = candidate.version
  const rule = reEntryOf(definition, definition.settings)
  const entryKey = entryKeyOf(rule, candidate)
  if (entryKey === null) return { refusal: 'NO_KEY' }
  if (active.has(`${pairOf(candidate)}/${entryKey}`)) return { refusal: 'ALREADY_ACTIVE' }
  if (rule.mode === 'ONCE' && entry.entered > 0) return { refusal: 'ALREADY_ENTERED' }
  if (rule.maxEntries !== undefined && entry.entered >= rule.maxEntries) return { refusal: 'MAX_ENTRIES' }
  if (rule.cooldown && entry.idleMs !== null && entry.idleMs < durationMilliseconds(rule.cooldown)) {
    return { refusal: 'COOLDOWN' }
  }
  return { entryKey }
}

/** Runs of one key exclude each other while active; EVERY_TIME gives each its own. Null where PER_KEY finds no key. */
function entryKeyOf(rule: ReEntry, { context }: Pick<Candidate, 'context'>): string | null {
  if (rule.mode === 'EVERY_TIME') return newId()
  if (rule.mode !== 'PER_KEY') return ''
  let value: unknown = context
  for (const part of (rule.keyPath ?? '').split('.')) value = isRecord(value) ? value[part] : undefined
  if (typeof value === 'string' && value !== '') return `key/${value.slice(0, 500)}`
  return typeof value === 'number' || typeof value === 'boolean' ? `key/${value}` : null
}
