import type { TriggerConfigs } from '../../../../schema/automation-triggers.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import type { SubscriberStatus } from '../../../../schema/values.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import { readId } from '../../../ids.ts'
import { CONSENT } from '../../subscribers/consent.ts'
import { REVENUE } from '../../subscribers/history.ts'
import { tagEvents } from '../../subscribers/tags.ts'
import { entryDataOf } from '../triggers/due-people.ts'
import { CATCH_UP_MS, nextDate } from '../triggers/trigger-times.ts'
import { readUpdatedField } from '../triggers/updated-field.ts'
import type { World } from './place.ts'
import { type State, withField } from './state.ts'

/** The beginning of a way: the person's state after the trigger has fired. `assumed` says how that differs from now. */
export type Begun = { step: StepOf<'TRIGGER'>; state: State; assumed: string | null }

/** The event that fires a trigger, and the changes of the person that come with it. */
type Fired = { type: string; data: Record<string, unknown>; change?: Partial<State>; assumed?: string | null }

/**
 * Fires a trigger. The data of its event, or those of a time, become the run's entry data; entry data given by the
 * caller override them.
 */
export async function fire(world: World, step: StepOf<'TRIGGER'>, state: State, at: number): Promise<Begun> {
  const fired = await firedBy(world, step, state, at)
  if (fired === null) {
    const entry = { ...dueData(world, step, state, at), ...state.entry }
    return { step, state: { ...state, entry }, assumed: null }
  }
  const { type, data, change = {}, assumed = null } = fired
  const entry = { ...data, ...state.entry }
  return { step, state: { ...state, ...change, entry, begunBy: [{ type, at, data: entry }] }, assumed }
}

/** Returns the entry data of a run that a timed trigger starts at the moment `at`; none for other triggers. */
function dueData({ timezone }: World, { config }: StepOf<'TRIGGER'>, { fields }: State, at: number) {
  const dueAt = new Date(at).toISOString()
  switch (config.type) {
    case 'DATE_FIELD': {
      const next = nextDate(fields[config.field], config, timezone, at - CATCH_UP_MS)
      return next === null ? {} : entryDataOf(config, next.occasion, dueAt)
    }
    case 'INACTIVITY': {
      const since = at - durationMilliseconds(config.inactiveFor)
      return entryDataOf(config, new Date(since).toISOString(), dueAt)
    }
    case 'SCHEDULE':
      return entryDataOf(config, '', dueAt)
    default:
      return {}
  }
}

async function firedBy(
  world: World,
  { config }: StepOf<'TRIGGER'>,
  state: State,
  at: number,
): Promise<Fired | null> {
  const { type } = config
  switch (type) {
    case 'SUBSCRIBED':
      return consented(type, state, 'SUBSCRIBED')
    case 'UNSUBSCRIBED':
      return consented(type, state, CONSENT[state.status].UNSUBSCRIBE ?? state.status)
    case 'TAG_ADDED':
    case 'TAG_REMOVED':
      return tagged(world, config, state)
    case 'FIELD_UPDATED':
      return updated(world, config, state)
    case 'SEGMENT_ENTERED':
    case 'SEGMENT_EXITED':
      return await moved(world, config, state, at)
    case 'EVENT':
      return happened(config, state)
    case 'WORKFLOW_EVENT':
      return { type: config.event, data: { workflowId: config.workflowId } }
    case 'DATE_FIELD':
    case 'SCHEDULE':
    case 'INACTIVITY':
    case 'INBOUND_WEBHOOK':
    case 'MANUAL':
      return null
  }
}

function consented(type: string, { status: now }: State, status: SubscriberStatus): Fired {
  const assumed = status === now ? null : `They are ${status} by then; now they are ${now}.`
  return { type, data: {}, change: { status }, assumed }
}

/**
 * One of the trigger's tags is enough. If no tag is already as the trigger needs it, the first one is assumed to
 * change.
 */
function tagged(
  { tags, subject: { subscriberId } }: World,
  { type, tagNames }: TriggerConfigs['TAG_ADDED' | 'TAG_REMOVED'],
  state: State,
): Fired | null {
  const adds = type === 'TAG_ADDED'
  const named = tagNames.flatMap((name) => tags.get(name) ?? [])
  const before = named.find(({ id }) => state.tags.has(id) === adds)
  const tag = before ?? named[0]
  if (!tag) return null
  const [told] = tagEvents(type, [{ subscriberId, tag }])
  const own = new Set(state.tags)
  if (adds) own.add(tag.id)
  else own.delete(tag.id)
  const words = adds
    ? `They have got the tag ${tag.name}, which they do not have now.`
    : `They have lost the tag ${tag.name}, which they have now.`
  return { type, data: told?.data ?? {}, change: { tags: own }, assumed: before ? null : words }
}

/** Without `to`, the field is assumed to have been set to its current value. */
function updated({ subject, timezone }: World, config: TriggerConfigs['FIELD_UPDATED'], state: State): Fired {
  const { type, from = null, to } = config
  const { field, custom } = readUpdatedField(config.field)
  const now = (custom ? state.fields[field] : subject.person[field]) ?? null
  if (to === undefined || to === now) return { type, data: { field, custom, from, to: now } }
  const data = { field, custom, from: from ?? now, to }
  const assumed =
    to === null
      ? `Their field ${field} has been cleared.`
      : `Their field ${field} has become ${JSON.stringify(to)}.`
  if (!custom) {
    const profile = { [field]: to, ...(field === 'email' && { email_key: String(to).toLowerCase() }) }
    return { type, data, change: { profile }, assumed }
  }
  return { type, data, change: withField(state, field, to, timezone), assumed }
}

/**
 * Does not change the person, because filters can be met in many ways. Only says whether membership differs from now.
 */
async function moved(
  { filtering, subject }: World,
  { type, segmentId }: TriggerConfigs['SEGMENT_ENTERED' | 'SEGMENT_EXITED'],
  state: State,
  at: number,
): Promise<Fired> {
  const data = { segmentId }
  if (!subject.references.segments.has(readId('seg', segmentId) ?? '')) return { type, data }
  const within = { id: segmentId, filters: [isIn(segmentId)] }
  const enters = type === 'SEGMENT_ENTERED'
  if (((await filtering.firstHolding([within], state, at)) !== null) === enters) return { type, data }
  const assumed = enters
    ? 'They have come into the segment; the ways show them as they are now, which is outside of it.'
    : 'They have left the segment; the ways show them as they are now, which is inside of it.'
  return { type, data, assumed }
}

/** Makes the filter for members of a segment. */
export function isIn(segmentId: string) {
  return { field: 'segment', operator: 'has_any' as const, value: [segmentId] }
}

function happened({ eventType }: TriggerConfigs['EVENT'], { entry, revenue }: State): Fired {
  const { amount } = entry
  const paid = (REVENUE[eventType] ?? 0) * (typeof amount === 'number' ? amount : 0)
  return { type: eventType, data: {}, change: { revenue: revenue + paid } }
}
