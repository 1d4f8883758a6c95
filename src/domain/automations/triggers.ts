import { sql } from 'kysely'

import { ENTRY_PREFIX, type Filter } from '../../../schema/audience.ts'
import type { StepOf } from '../../../schema/automation.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { matchingAmong, matchingEntries } from '../audience/match.ts'
import { placesOf } from '../audience/references.ts'
import type { RecordedEvent } from '../event-rows.ts'
import { recordDecisions } from './decisions.ts'
import { type Candidate, enrol } from './enrolment.ts'
import { loadVersions } from './versions.ts'
import { matchingEvents } from './waits.ts'

type Target = { automationId: string; name: string; isPaused: boolean; stepId: string; versionId: string }
type Firing = Target & { position: number }
type Group = Target & { positions: number[] }

/** What happened to a run starts nothing by itself: a trigger of its own (WORKFLOW_EVENT) will do that. */
const SILENT: ReadonlySet<string> = new Set(['WORKFLOW_STARTED', 'WORKFLOW_COMPLETED', 'WORKFLOW_CANCELED'])

/**
 * Lets subscribers enter the active automations that these events trigger; a paused one would have taken them, and the
 * ledger says so. One query finds the triggers of all events
 * together; filters are asked once for each trigger, not for each subscriber.
 */
export async function fireTriggers(
  call: Call,
  events: readonly RecordedEvent[],
  options: { priority?: number } = {},
): Promise<void> {
  const firings = await findFirings(call, events)
  if (firings.length === 0) return
  const versions = await loadVersions(
    call.em,
    call.organization.id,
    firings.map(({ versionId }) => versionId),
  )
  const candidates: Candidate[] = []
  for (const group of groupsOf(firings)) {
    const version = versions.get(group.versionId)
    const trigger = version?.graph.steps.get(group.stepId)
    if (!version || trigger?.type !== 'TRIGGER') continue
    const passing = await passFilters(call, events, group, trigger)
    if (group.isPaused) {
      await refuseEntries(call, events, group, passing, 'PAUSED')
      continue
    }
    for (const position of passing) {
      const event = events[position - 1]
      if (!event) continue
      candidates.push({
        automationId: group.automationId,
        automationName: group.name,
        version,
        subscriberId: event.subscriberId,
        stepId: group.stepId,
        trigger: { type: trigger.config.type, eventId: encodeId('evt', event.id), eventType: event.type },
        context: event.data,
      })
    }
  }
  await enrol(call, oncePerEvent(candidates), options)
}

async function findFirings(call: Call, events: readonly RecordedEvent[]): Promise<Firing[]> {
  const asked = events.flatMap((event, index) =>
    triggersOf(event).map((trigger) => ({ ...trigger, position: index + 1 })),
  )
  if (asked.length === 0) return []
  return await rows<Firing>(
    call.em,
    sql`select asked.position, automation.id as "automationId", automation.name, trigger.step_id as "stepId",
        automation.published_version_id as "versionId", automation.status = 'PAUSED' as "isPaused"
      from unnest(${array(
        asked.map(({ type }) => type),
        'text',
      )}, ${array(
        asked.map(({ key }) => key),
        'text',
      )},
        ${array(
          asked.map(({ position }) => position),
          'int',
        )}) as asked (type, key, position)
      join automation_trigger trigger on trigger.organization_id = ${call.organization.id}
        and trigger.type = asked.type and trigger.match_key = case asked.type when 'EVENT' then asked.key else lower(asked.key) end
      join automation on automation.organization_id = trigger.organization_id and automation.id = trigger.automation_id
      where automation.status in ('ACTIVE', 'PAUSED') and automation.published_version_id is not null
      order by 1, 2, 4`,
  )
}

/** Which triggers an event can fire: by its own kind, and by its type as an EVENT. */
function triggersOf(event: RecordedEvent): { type: string; key: string }[] {
  if (SILENT.has(event.type)) return []
  const triggers = [{ type: 'EVENT', key: event.type }]
  if (event.type === 'SUBSCRIBED') triggers.push({ type: 'SUBSCRIBED', key: '' })
  const { tag } = event.data
  if ((event.type === 'TAG_ADDED' || event.type === 'TAG_REMOVED') && typeof tag === 'string') {
    triggers.push({ type: event.type, key: tag })
  }
  if (event.type === 'SEGMENT_ENTERED' || event.type === 'SEGMENT_EXITED') {
    triggers.push({ type: event.type, key: String(event.data.segmentId) })
  }
  return triggers
}

function groupsOf(firings: readonly Firing[]): Iterable<Group> {
  const groups = new Map<string, Group>()
  for (const { position, ...firing } of firings) {
    const key = `${firing.automationId}/${firing.stepId}`
    const group = groups.get(key) ?? { ...firing, positions: [] }
    groups.set(key, group)
    group.positions.push(position)
  }
  return groups.values()
}

/** The positions whose event and subscriber the trigger lets in; the refusal by its filters goes to the ledger. */
async function passFilters(
  call: Call,
  events: readonly RecordedEvent[],
  group: Group,
  trigger: StepOf<'TRIGGER'>,
): Promise<number[]> {
  const where = trigger.config.type === 'EVENT' ? (trigger.config.where ?? []) : []
  const holding = await matchingEvents(call, events, group.positions, where)
  const asked = group.positions.filter((position) => holding.has(position))
  const filters = trigger.config.filters ?? []
  if (filters.length === 0 || asked.length === 0) return asked
  const { passing, reason } = await holdingFilters(call, events, group.automationId, asked, filters)
  const refused = asked.filter((position) => !passing.has(position))
  await refuseEntries(call, events, group, refused, reason)
  return [...passing]
}

async function refuseEntries(
  call: Call,
  events: readonly RecordedEvent[],
  { automationId, stepId }: Group,
  positions: readonly number[],
  reason: string,
): Promise<void> {
  const refused = positions.flatMap((position) => events[position - 1] ?? [])
  await recordDecisions(
    call,
    refused.map(({ subscriberId }) => ({
      subscriberId,
      automationId,
      stepId,
      action: 'ENTRY_REFUSED',
      reason,
    })),
  )
}

/** A filter that names what is gone lets nobody in, and never makes the call fail that recorded the event. */
async function holdingFilters(
  call: Call,
  events: readonly RecordedEvent[],
  automationId: string,
  asked: readonly number[],
  filters: readonly Filter[],
): Promise<{ passing: Set<number>; reason: string }> {
  const at = (position: number) => events[position - 1]
  const scope = { organizationId: call.organization.id }
  const run = { automationId }
  const passing = new Set<number>()
  try {
    if (placesOf(filters, '').some(({ leaf }) => leaf.field.startsWith(ENTRY_PREFIX))) {
      // These filters read the event itself, so every event has an answer of its own.
      const entries = asked.map((position) => ({
        subscriberId: at(position)?.subscriberId ?? '',
        entry: at(position)?.data,
      }))
      const places = await matchingEntries(call.em, scope, entries, filters, { run })
      asked.forEach((position, place) => places.has(place) && passing.add(position))
    } else {
      const subscribers = [...new Set(asked.map((position) => at(position)?.subscriberId ?? ''))]
      const matching = await matchingAmong(call.em, scope, subscribers, filters, { run })
      for (const position of asked) if (matching.has(at(position)?.subscriberId ?? '')) passing.add(position)
    }
    return { passing, reason: 'FILTERS' }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { passing: new Set(), reason: error.code }
  }
}

/** Two triggers of one automation that answer to the same event let a subscriber enter once. */
function oncePerEvent(candidates: readonly Candidate[]): Candidate[] {
  const seen = new Set<string>()
  return candidates.filter(({ automationId, trigger }) => {
    const key = `${automationId}/${String(trigger.eventId)}`
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}
