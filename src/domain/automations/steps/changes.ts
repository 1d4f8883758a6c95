import type { StepConfigs } from '../../../../schema/automation-steps.ts'
import { PAYMENT_EVENT_TYPES, type PaymentEventType } from '../../../../schema/event.ts'
import { refuse } from '../../../catalogue/failure.ts'
import { encodeId } from '../../../ids.ts'
import { recordEvents } from '../../events.ts'
import { recordTold, toldFacts } from '../../subscribers/history.ts'
import { findSubscriber } from '../../subscribers/records.ts'
import { unsubscribeSubscriber, updateSubscriber } from '../../subscribers/subscribers.ts'
import { addTags, removeTags } from '../../subscribers/tags.ts'
import { type Enter, left } from './step.ts'
import { refuseLoop } from './workflows.ts'

/** Adds the tags. */
export const enterAddTag: Enter<'ADD_TAG'> = async ({ call, run }, { config }) => {
  const changes = await addTags(call, [run.subscriberId], config.tagNames)
  return left('next', { result: 'DONE', changed: changes.map(({ tag }) => tag.name) })
}

/** Removes the tags. */
export const enterRemoveTag: Enter<'REMOVE_TAG'> = async ({ call, run }, { config }) => {
  const changes = await removeTags(call, [run.subscriberId], config.tagNames)
  return left('next', { result: 'DONE', changed: changes.map(({ tag }) => tag.name) })
}

/** Changes custom fields. Locks the subscriber first, so that no increment is computed from an outdated value. */
export const enterUpdateField: Enter<'UPDATE_FIELD'> = async ({ call, run }, { config }) => {
  const subscriberId = encodeId('sub', run.subscriberId)
  const before = await findSubscriber(call, { subscriberId }, { lock: true })
  const fields = changedFields(before.fields, config)
  await updateSubscriber(call, subscriberId, { fields })
  return left('next', { result: 'DONE', fields: Object.keys(fields) })
}

/**
 * Returns the fields that an UPDATE_FIELD writes; null clears a field. Throws `INVALID_INPUT` if one to increment is no
 * number.
 */
export function changedFields(
  before: Readonly<Record<string, unknown>>,
  { set = {}, increment = {}, clear = [] }: StepConfigs['UPDATE_FIELD'],
): Record<string, unknown> {
  const fields: Record<string, unknown> = { ...set, ...Object.fromEntries(clear.map((name) => [name, null])) }
  for (const [name, step] of Object.entries(increment)) {
    const value = Object.hasOwn(before, name) ? before[name] : 0
    if (typeof value !== 'number') refuse(`increment.${name}`, 'is not a number field; set it instead.')
    fields[name] = value + step
  }
  return fields
}

/** Unsubscribes the subscriber. */
export const enterSubscription: Enter<'SUBSCRIPTION'> = async ({ call, run }, { config }) => {
  const { reason } = config
  const changed = await unsubscribeSubscriber(call, run.subscriberId, { source: 'workflow', reason })
  return left('next', { result: 'DONE', changed })
}

/** Records an event. A payment or refund also changes the subscriber's revenue. */
export const enterCreateEvent: Enter<'CREATE_EVENT'> = async (turn, { config }) => {
  refuseLoop(turn)
  const { call, run } = turn
  const { eventType, amount, currency = 'USD', metadata } = config
  const payment = paymentOf(config)
  if (payment) {
    const subscriberId = encodeId('sub', run.subscriberId)
    const event = await recordTold(call, { subscriberId, eventType: payment, amount, currency, metadata })
    return left('next', { result: 'DONE', eventId: event.id })
  }
  const data = createdFacts(config)
  const [event] = await recordEvents(call, [{ subscriberId: run.subscriberId, type: eventType, data }])
  return left('next', { result: 'DONE', ...(event && { eventId: encodeId('evt', event.id) }) })
}

/** Returns the data of the event that a CREATE_EVENT records. */
export function createdFacts(config: StepConfigs['CREATE_EVENT']): Record<string, unknown> {
  const { amount, currency = 'USD', metadata } = config
  if (paymentOf(config)) return toldFacts({ amount, currency, metadata })
  return { ...(amount !== undefined && { amount, currency }), ...(metadata && { metadata }) }
}

function paymentOf({ eventType }: StepConfigs['CREATE_EVENT']): PaymentEventType | undefined {
  return PAYMENT_EVENT_TYPES.find((type) => type === eventType)
}
