import { hash } from 'node:crypto'

import { type RawBuilder, sql } from 'kysely'

import type { ReEntry } from '../../../../schema/automation.ts'
import { isRecord } from '../../../../schema/json.ts'
import { durationMilliseconds, reEntryOf } from '../../../../temporal/graph.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, rows } from '../../../database.ts'
import { newId } from '../../../ids.ts'
import {
  decideTurn,
  type GroupRules,
  lockGroups,
  lockPlaces,
  type Occupation,
  placeKey,
  readPlaces,
} from '../groups/group-places.ts'
import { IS_ACTIVE } from '../runs/active.ts'
import { type Decision, recordDecisions } from '../runs/decisions.ts'
import { cancelRuns, endEventWaits } from '../runs/runs.ts'
import { type Candidate, insertRuns, type NewRun } from './run-inserts.ts'

/** Why re-entry refuses; words for the ledger and for errors. */
export type Refusal = 'ALREADY_ENTERED' | 'ALREADY_ACTIVE' | 'COOLDOWN' | 'MAX_ENTRIES' | 'NO_KEY' | 'LOOP'

/** An index holds no more than 2.7 kB of a row; a longer key is known by its hash. */
const LONGEST_KEY = 500

/** How many runs may follow each other, each started by the one before (decisions, section 6). */
export const MOST_DEPTH = 10

/** What became of a candidate: a run, which a group may have skipped, or none. */
export type Enrolment = { candidate: Candidate; runId: string } | { candidate: Candidate; refusal: Refusal }

type Pair = Pick<Candidate, 'automationId' | 'subscriberId'>
type LockedEntry = Pair & { groupId: string | null; runs: number }

/** What re-entry decides from: how often somebody entered, how long ago last, and the keys of their runs under way. */
type Entry = { entered: number; idleMs: number | null; activeKeys: Set<string> }
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
  const locked = await lockEntries(call, candidates)
  const groups = await lockGroupsOf(call, [...locked.values()])
  const entries = await readEntries(call, candidates)
  const runs = new Map<string, NewRun>()
  const preempted: string[] = []
  const results: Enrolment[] = []
  for (const candidate of candidates) {
    const place = locked.get(pairOf(candidate))
    const entry = entries.get(pairOf(candidate))
    // The subscriber was deleted meanwhile.
    if (!place || !entry) continue
    const decided = decide(candidate, entry)
    if ('refusal' in decided) {
      results.push({ candidate, refusal: decided.refusal })
      continue
    }
    place.runs += 1
    const run: NewRun = {
      id: newId(),
      candidate,
      number: place.runs,
      ...decided,
      groupId: place.groupId,
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
    entry.activeKeys.add(decided.entryKey)
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
async function lockGroupsOf(call: Call, entries: readonly LockedEntry[]): Promise<Groups> {
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

function pairOf({ automationId, subscriberId }: Pair): string {
  return `${automationId}/${subscriberId}`
}

/**
 * The people are locked first, so that the events of their entries take turns with waits for them; the automations only
 * against moving to another group.
 */
async function lockEntries(call: Call, candidates: readonly Candidate[]): Promise<Map<string, LockedEntry>> {
  const found = await rows<LockedEntry>(
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
        returning automation_id, subscriber_id, runs)
      select locked.automation_id as "automationId", locked.subscriber_id as "subscriberId",
        automations.group_id as "groupId", locked.runs
      from locked join automations on automations.id = locked.automation_id`,
  )
  return new Map(found.map((entry) => [pairOf(entry), entry]))
}

/**
 * What re-entry decides from, of pairs that have entered before. Asked after the locks, so it is the last word. Whoever
 * queued in a group in vain was counted when they came, and does not count.
 */
async function readEntries({ em, organization }: Call, pairs: readonly Pair[]): Promise<Map<string, Entry>> {
  const runs = sql`automation_run run where run.organization_id = ${organization.id}
    and run.automation_id = entry.automation_id and run.subscriber_id = entry.subscriber_id`
  const found = await rows<Pair & Omit<Entry, 'activeKeys'> & { activeKeys: string[] }>(
    em,
    sql`select entry.automation_id as "automationId", entry.subscriber_id as "subscriberId",
        entry.entered - vain.count as entered,
        extract(epoch from now() - case vain.count when 0 then entry.last_entered_at
          else (select max(run.entered_at) from ${runs} and run.status <> 'SKIPPED') end)::float8 * 1000 as "idleMs",
        array(select run.entry_key from ${runs} and run.${IS_ACTIVE}) as "activeKeys"
      from (select distinct automation_id, subscriber_id
        from ${pairRows(pairs)} as pair (automation_id, subscriber_id)
      ) as asked
      join automation_entry entry on entry.organization_id = ${organization.id}
        and entry.automation_id = asked.automation_id and entry.subscriber_id = asked.subscriber_id
      cross join lateral (select count(*)::int as count
        from ${runs} and run.status = 'SKIPPED' and run.exit_reason = 'EXPIRED') as vain`,
  )
  return new Map(
    found.map(({ activeKeys, ...entry }) => [pairOf(entry), { ...entry, activeKeys: new Set(activeKeys) }]),
  )
}

function pairRows(pairs: readonly Pair[]): RawBuilder<unknown> {
  const automations = pairs.map(({ automationId }) => automationId)
  const subscribers = pairs.map(({ subscriberId }) => subscriberId)
  return sql`unnest(${array(automations, 'uuid')}, ${array(subscribers, 'uuid')})`
}

/** What re-entry decides from, read without a lock: for telling what it would say. */
export async function readEntry(call: Call, pair: Pair): Promise<Entry> {
  const entries = await readEntries(call, [pair])
  return entries.get(pairOf(pair)) ?? { entered: 0, idleMs: null, activeKeys: new Set() }
}

/** The key a run would have, or why re-entry refuses it. */
export function decide(
  candidate: Pick<Candidate, 'version' | 'context'>,
  entry: Entry,
): { entryKey: string } | { refusal: Refusal } {
  const { definition } = candidate.version
  const rule = reEntryOf(definition, definition.settings)
  const entryKey = entryKeyOf(rule, candidate)
  if (entryKey === null) return { refusal: 'NO_KEY' }
  if (entry.activeKeys.has(entryKey)) return { refusal: 'ALREADY_ACTIVE' }
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
  if (typeof value === 'string' && value !== '') {
    return `key/${value.length > LONGEST_KEY ? hash('sha256', value) : value}`
  }
  return typeof value === 'number' || typeof value === 'boolean' ? `key/${value}` : null
}
