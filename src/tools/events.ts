import Type from 'typebox'

import { closed, defaulted, limitOf, listOf, oneOf } from '../../schema/define.ts'
import { EventType, PAYMENT_EVENT_TYPES, SubscriberEvent } from '../../schema/event.ts'
import { subscriberChoice } from '../../schema/subscriber.ts'
import { SUBSCRIBER_EVENT_TYPES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { listEvents, recordTold } from '../domain/subscriber-history.ts'

const told = {
  amount: Type.Optional(Type.Number({ description: 'In major units, such as 19.90; never negative.' })),
  currency: defaulted(Type.String({ description: 'ISO 4217, such as EUR.' }), 'USD'),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'Whatever you want to know of it later.' }),
  ),
}

export const createEvent = defineTool({
  name: 'create_event',
  title: 'Create an event',
  description:
    'Records a payment or a refund of a subscriber, adds it to their revenue, and starts or continues workflows that wait for it.',
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
    'Records an event of any name that is not one of the service itself; payments and refunds move revenue. Starts or continues workflows that wait for it.',
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
  description: 'Lists what happened to one subscriber, newest first, all of it or one type.',
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
