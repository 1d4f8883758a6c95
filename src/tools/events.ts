import Type from 'typebox'

import { closed, defaulted, limitOf, listOf, oneOf } from '../../schema/define.ts'
import { EventType, PAYMENT_EVENT_TYPES, SubscriberEvent } from '../../schema/event.ts'
import { subscriberChoice } from '../../schema/subscriber.ts'
import { SUBSCRIBER_EVENT_TYPES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { listEvents, recordTold } from '../domain/subscribers/history.ts'

const told = {
  amount: Type.Optional(
    Type.Number({ description: 'The amount in major currency units, such as 19.90. Never negative.' }),
  ),
  currency: defaulted(Type.String({ description: 'The ISO 4217 currency code, such as EUR.' }), 'USD'),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'Any further data to keep with the event.' }),
  ),
}

export const createEvent = defineTool({
  name: 'create_event',
  title: 'Create an event',
  description:
    'Records a payment or a refund of a subscriber and adds it to their revenue. It can start workflows and continue runs that wait for it. Returns the event.',
  group: 'events',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    ...subscriberChoice,
    eventType: oneOf(PAYMENT_EVENT_TYPES),
    ...told,
  }),
  output: closed({ event: SubscriberEvent }),
  handler: async (call, input) => ({ event: await recordTold(call, input) }),
})

export const createCustomEvent = defineTool({
  name: 'create_custom_event',
  title: 'Create an event of your own',
  description:
    'Records an event of any type, except the types that only the service itself records. SUBSCRIBER_PAYMENT and SUBSCRIBER_REFUND also change the revenue of the subscriber. The event can start workflows and continue runs that wait for it. Returns the event.',
  group: 'events',
  effect: 'write',
  permission: 'subscribers',
  listed: false,
  input: closed({ ...subscriberChoice, eventType: EventType, ...told }),
  output: closed({ event: SubscriberEvent }),
  handler: async (call, input) => ({ event: await recordTold(call, input) }),
})

export const listSubscriberEvents = defineTool({
  name: 'list_subscriber_events',
  title: "List a subscriber's events",
  description: 'Returns the events of one subscriber, newest first; optionally only those of one type.',
  group: 'events',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    ...subscriberChoice,
    eventType: Type.Optional(oneOf(SUBSCRIBER_EVENT_TYPES)),
    limit: limitOf(50),
  }),
  output: listOf('events', SubscriberEvent),
  handler: (call, { eventType, limit, ...input }) => listEvents(call, input, { eventType, limit }),
})
