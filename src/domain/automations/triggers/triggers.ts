import { sql } from 'kysely'

import { RUN_EVENTS } from '../../../../schema/automation-triggers.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, column, rows } from '../../../database.ts'
import { encodeId, readId } from '../../../ids.ts'
import { judge } from '../../audience/judge.ts'
import { zonedScope } from '../../audience/references.ts'
import type { NewEvent, RecordedEvent } from '../../event-rows.ts'
import { loadVersions, type Version } from '../definition/versions.ts'
import { enrol, MOST_DEPTH } from '../entry/enrolment.ts'
import type { Candidate } from '../entry/run-inserts.ts'
import { type Decision, recordDecisions } from '../runs/decisions.ts'
import { keyOfField } from './updated-field.ts'

/**
 * An event that may start runs. `depth` is the number of runs that, each led to by the one before, led to this event.
 */
type FiringEvent = RecordedEvent & { depth?: number }

type Target = { automationId: string; name: string; isPaused: boolean; stepId: string; versionId: string }
type Firing = Target & { position: number }
type Group = Target & { version: Version; trigger: StepOf<'TRIGGER'>; positions: number[] }

const OF_RUNS: ReadonlySet<string> = new Set(RUN_EVENTS)
/** Events that a run causes in a later transaction without any act of a person, so that workflows may form a loop. */
const MADE_BY_RUNS: ReadonlySet<string> = new Set([
  ...RUN_EVENTS,
  'EMAIL_SENT',
  'EMAIL_DELIVERY_DELAYED',
  'EMAIL_BOUNCED',
  'WEBHOOK_EXECUTED',
])

/**
 * Lets subscribers enter the ACTIVE automations that these events trigger. Records each refusal as a decision, also
 * when the automation is paused or `triggerWorkflows` is false. Finds all triggers in one query, evaluates all filters
 * in a few, and decides all entries together.
 */
export async function fireTriggers(
  call: Call,
  recorded: readonly RecordedEvent[],
  options: { triggerWorkflows?: boolean; priority?: number } = {},
): Promise<void> {
  const groups = await findGroups(call, recorded)
  if (groups.length === 0) return
  const events = await withDepths(call, recorded)
  const verdicts = await judge(
    call.em,
    zonedScope(call.organization),
    events,
    groups.map(({ automationId, trigger, positions }) => ({
      automationId,
      where: trigger.config.type === 'EVENT' ? (trigger.config.where ?? []) : [],
      filters: trigger.config.filters ?? [],
      places: positions.filter((position) => isMeant(trigger, events[position])),
    })),
  )
  const candidates: Candidate[] = []
  const refusals: Decision[] = []
  groups.forEach((group, index) => {
    const { meant = [], passing = new Set<number>(), reason = 'FILTERS' } = verdicts[index] ?? {}
    for (const position of meant) {
      const event = events[position]
      if (!event) continue
      const refusal = passing.has(position) ? refusalOf(group, event, options) : reason
      if (refusal === null) candidates.push(candidateOf(group, event))
      else refusals.push(decisionOf(group, event, refusal))
    }
    const asked = new Set(meant)
    for (const position of group.positions) {
      const event = events[position]
      if (event && !asked.has(position)) refusals.push(decisionOf(group, event, 'OTHER_DATA'))
    }
  })
  await recordDecisions(call, refusals)
  await enrol(call, oncePerEvent(candidates), options)
}

/** Records refusals (`SILENT`) for segment moves that start no workflows and are no events, such as by an import. */
export async function refuseInSilence(call: Call, happened: readonly NewEvent[]): Promise<void> {
  const events = happened.map((event) => ({ data: {}, ...event, id: '' }))
  if (events.length > 0) await fireTriggers(call, events, { triggerWorkflows: false })
}

/** Adds the depth to events that a run has caused, even in a later transaction: the depth of that run plus one. */
async function withDepths(
  { em, organization }: Call,
  events: readonly RecordedEvent[],
): Promise<FiringEvent[]> {
  const runIds = events.map(({ type, data }) =>
    MADE_BY_RUNS.has(type) && typeof data.runId === 'string' ? readId('run', data.runId) : null,
  )
  const asked = runIds.filter((id) => id !== null)
  if (asked.length === 0) return [...events]
  const found = await rows<{ id: string; depth: number }>(
    em,
    sql`select id, coalesce((trigger ->> 'depth')::int, 0) as depth from automation_run
      where organization_id = ${organization.id} and id = any(${array(asked, 'uuid')})`,
  )
  const depths = new Map(found.map(({ id, depth }) => [id, depth]))
  return events.map((event, index) => {
    const depth = depths.get(runIds[index] ?? '')
    return depth === undefined ? event : { ...event, depth: depth + 1 }
  })
}

function refusalOf(
  { isPaused }: Group,
  { depth = 0 }: FiringEvent,
  { triggerWorkflows = true }: { triggerWorkflows?: boolean },
): string | null {
  if (isPaused) return 'PAUSED'
  if (!triggerWorkflows) return 'SILENT'
  return depth > MOST_DEPTH ? 'LOOP' : null
}

function decisionOf(
  { automationId, stepId }: Group,
  { subscriberId }: FiringEvent,
  reason: string,
): Decision {
  return { subscriberId, automationId, stepId, action: 'ENTRY_REFUSED', reason }
}

function candidateOf({ automationId, name, version, stepId, trigger }: Group, event: FiringEvent): Candidate {
  const { id, type, subscriberId, data, depth } = event
  return {
    automationId,
    automationName: name,
    version,
    subscriberId,
    stepId,
    trigger: {
      type: trigger.config.type,
      eventId: encodeId('evt', id),
      eventType: type,
      ...(depth !== undefined && { depth }),
    },
    context: data,
  }
}

async function findGroups(call: Call, events: readonly RecordedEvent[]): Promise<Group[]> {
  const firings = await findFirings(call, events)
  const versions = await loadVersions(
    call.em,
    call.organization.id,
    firings.map(({ versionId }) => versionId),
  )
  const groups = new Map<string, Group>()
  for (const { position, ...target } of firings) {
    const key = `${target.automationId}/${target.stepId}`
    const version = versions.get(target.versionId)
    const trigger = version?.graph.steps.get(target.stepId)
    if (!version || trigger?.type !== 'TRIGGER') continue
    const group = groups.get(key) ?? { ...target, version, trigger, positions: [] }
    groups.set(key, group)
    group.positions.push(position)
  }
  return [...groups.values()]
}

/** Returns whether an event meets the `from` and `to` of a FIELD_UPDATED trigger; true for other triggers. */
function isMeant({ config }: StepOf<'TRIGGER'>, event: RecordedEvent | undefined): boolean {
  if (config.type !== 'FIELD_UPDATED') return true
  const { from, to } = event?.data ?? {}
  return (config.from === undefined || config.from === from) && (config.to === undefined || config.to === to)
}

async function findFirings(call: Call, events: readonly RecordedEvent[]): Promise<Firing[]> {
  const asked = events.flatMap((event, position) =>
    triggersOf(event).map((trigger) => ({ ...trigger, position })),
  )
  if (asked.length === 0) return []
  return await rows<Firing>(
    call.em,
    sql`select asked.position, automation.id as "automationId", automation.name, trigger.step_id as "stepId",
        automation.published_version_id as "versionId", automation.status = 'PAUSED' as "isPaused"
      from unnest(
        ${column(asked, ({ type }) => type, 'text')},
        ${column(asked, ({ key }) => key, 'text')},
        ${column(asked, ({ position }) => position, 'int')}
      ) as asked (type, key, position)
      join automation_trigger trigger on trigger.organization_id = ${call.organization.id}
        and trigger.type = asked.type and trigger.match_key
          = case when asked.type in ('TAG_ADDED', 'TAG_REMOVED') then lower(asked.key) else asked.key end
      join automation on automation.organization_id = trigger.organization_id and automation.id = trigger.automation_id
      where automation.status in ('ACTIVE', 'PAUSED') and automation.published_version_id is not null
      order by 1, 2, 4`,
  )
}

/**
 * Returns the triggers that an event can fire: EVENT triggers for its type, and those of its own kind. Run events fire
 * only WORKFLOW_EVENT triggers.
 */
function triggersOf({ type, data }: RecordedEvent): { type: string; key: string }[] {
  if (OF_RUNS.has(type)) return [{ type: 'WORKFLOW_EVENT', key: `${String(data.workflowId)}/${type}` }]
  const triggers = [{ type: 'EVENT', key: type }]
  switch (type) {
    case 'SUBSCRIBED':
    case 'UNSUBSCRIBED':
      return [...triggers, { type, key: '' }]
    case 'TAG_ADDED':
    case 'TAG_REMOVED':
      return typeof data.tag === 'string' ? [...triggers, { type, key: data.tag }] : triggers
    case 'FIELD_UPDATED':
      return [
        ...triggers,
        { type, key: keyOfField({ field: String(data.field), custom: data.custom === true }) },
      ]
    case 'SEGMENT_ENTERED':
    case 'SEGMENT_EXITED':
      return [...triggers, { type, key: String(data.segmentId) }]
    default:
      return triggers
  }
}

/**
 * Keeps one candidate per automation and event, so that two triggers of one automation do not let somebody enter twice.
 */
function oncePerEvent(candidates: readonly Candidate[]): Candidate[] {
  const seen = new Set<string>()
  return candidates.filter(({ automationId, trigger }) => {
    const key = `${automationId}/${String(trigger.eventId)}`
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}
