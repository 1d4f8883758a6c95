import { hash } from 'node:crypto'

import { type RawBuilder, sql } from 'kysely'

import type { ReEntry } from '../../../../schema/automation.ts'
import { valueAt } from '../../../../schema/json.ts'
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

/** Why a candidate may not enter, as stored in the decision ledger and in the details of errors. */
export type Refusal = 'ALREADY_ENTERED' | 'ALREADY_ACTIVE' | 'COOLDOWN' | 'MAX_ENTRIES' | 'NO_KEY' | 'LOOP'

/** Longer entry keys (in UTF-16 units) are replaced by their hash, because an index row holds at most 2.7 kB. */
const LONGEST_KEY = 500

/** The longest chain of runs that each led to the next (decisions, section 6). A run of this depth starts no other. */
export const MOST_DEPTH = 10

/** The result for a candidate: its run, which a group may have skipped, or why there is none. */
export type Enrolment = { candidate: Candidate; runId: string } | { candidate: Candidate; refusal: Refusal }

type Pair = Pick<Candidate, 'automationId' | 'subscriberId'>
type LockedEntry = Pair & { groupId: string | null; runs: number }

/**
 * The input of re-entry: the number of entries, the ms since the last one (null: none), and the keys of active runs, of
 * whatever version.
 */
type Entry = { entered: number; idleMs: number | null; activeKeys: Set<string> }
type Groups = { rules: ReadonlyMap<string, GroupRules>; places: Map<string, Occupation> }

/**
 * Decides for all candidates together whether re-entry and groups let them in, and starts their runs. The upsert on
 * `automation_entry` locks each pair of automation and subscriber, so parallel calls decide one after the other; it
 * also numbers the runs. Places in groups are locked after that. Refusals are recorded as decisions. Candidates whose
 * subscriber is gone are missing from the result.
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
    // The subscriber has been deleted in the meantime.
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

/** Refuses all candidates as `LOOP`, because workflows that start each other in a circle would never end. */
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

/**
 * Sets the turn of a run whose workflow is in a group, and updates the place of its subscriber. Returns the id of the
 * run whose place it takes, or null.
 */
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

/**
 * Locks the groups of these automations and the subscribers' places in them. Queries nothing if there are no groups.
 */
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
 * Locks the subscribers, the automations and then the entries, and creates missing entries. The lock on a subscriber
 * makes the events of the entry and new waits for such events run one after the other. The lock on an automation only
 * prevents that it moves to another group.
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
 * Reads the input of re-entry for pairs that have an entry row. `enrol` reads it after taking the locks, so it cannot
 * change before the decision. A run that expired in the queue of a group was counted when it was queued; it is
 * subtracted here, because it never began.
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

/** Reads the input of re-entry without a lock, to explain what re-entry would decide. */
export async function readEntry(call: Call, pair: Pair): Promise<Entry> {
  const entries = await readEntries(call, [pair])
  return entries.get(pairOf(pair)) ?? { entered: 0, idleMs: null, activeKeys: new Set() }
}

/** Returns the entry key of the candidate's run, or why re-entry refuses it. */
export function decide(
  candidate: Pick<Candidate, 'version' | 'context'>,
  entry: Entry,
): { entryKey: string } | { refusal: Refusal } {
  const { definition } = candidate.version
  const rule = reEntryOf(definition, definition.settings)
  const entryKey = entryKeyOf(rule, candidate)
  if (entryKey === null) return { refusal: 'NO_KEY' }
  // Runs of earlier versions may have other keys, and without a key of its own a run is the only one.
  const isIn = entryKey === '' ? entry.activeKeys.size > 0 : entry.activeKeys.has(entryKey)
  if (isIn) return { refusal: 'ALREADY_ACTIVE' }
  if (rule.mode === 'ONCE' && entry.entered > 0) return { refusal: 'ALREADY_ENTERED' }
  if (rule.maxEntries !== undefined && entry.entered >= rule.maxEntries) return { refusal: 'MAX_ENTRIES' }
  if (rule.cooldown && entry.idleMs !== null && entry.idleMs < durationMilliseconds(rule.cooldown)) {
    return { refusal: 'COOLDOWN' }
  }
  return { entryKey }
}

/**
 * Returns the entry key: a subscriber has at most one active run per key, and enters with the empty key only without
 * any active run. `EVERY_TIME` gives each run a key of its own. Returns null if `PER_KEY` finds no string, number or
 * boolean at `keyPath`.
 */
function entryKeyOf(rule: ReEntry, { context }: Pick<Candidate, 'context'>): string | null {
  if (rule.mode === 'EVERY_TIME') return newId()
  if (rule.mode !== 'PER_KEY') return ''
  const value = valueAt(context, rule.keyPath ?? '')
  if (typeof value === 'string' && value !== '') {
    return `key/${value.length > LONGEST_KEY ? hash('sha256', value) : value}`
  }
  return typeof value === 'number' || typeof value === 'boolean' ? `key/${value}` : null
}
