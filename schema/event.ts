import Type, { type Static } from 'typebox'

import { EVENT_TYPE } from './audience.ts'
import { closed } from './define.ts'
import { SUBSCRIBER_EVENT_TYPES } from './values.ts'
import { WEBHOOK_PING } from './webhook.ts'

/** The payment events that `create_event` accepts from callers (contract). `SERVICE_EVENT_TYPES` are refused. */
export const PAYMENT_EVENT_TYPES = ['SUBSCRIBER_PAYMENT', 'SUBSCRIBER_REFUND'] as const
export type PaymentEventType = (typeof PAYMENT_EVENT_TYPES)[number]

/** The event types that only the service itself writes, so that callers cannot forge them. */
export const SERVICE_EVENT_TYPES: ReadonlySet<string> = new Set([
  ...SUBSCRIBER_EVENT_TYPES.filter((type) => !PAYMENT_EVENT_TYPES.some((payment) => payment === type)),
  'SEGMENT_ENTERED',
  'SEGMENT_EXITED',
  WEBHOOK_PING,
])

/** The type of an event. Any type that is not built in belongs to the caller. */
export const EventType = Type.String({
  pattern: EVENT_TYPE.source,
  description:
    '2 to 64 capital letters, digits and underscores, beginning with a letter, such as ORDER_PLACED.',
})

/** The largest amount of one payment, in major units of its currency. */
export const MAXIMUM_AMOUNT = 1_000_000_000

/** The actor that caused an event. */
export const EventCause = closed({
  kind: Type.String({
    description:
      'The kind of actor: token, import, run (of a workflow), public (a link in an email) or system.',
  }),
  id: Type.String({
    description: 'The id of the token, import, run or subscriber. An empty string if there is none.',
  }),
  name: Type.String(),
})
export type EventCause = Static<typeof EventCause>

/** Something that happened to a subscriber. */
export const SubscriberEvent = closed({
  id: Type.String(),
  subscriberId: Type.String(),
  type: Type.String(),
  data: Type.Record(Type.String(), Type.Unknown(), {
    description: 'The data of the event, depending on its type: a tag, an amount.',
  }),
  cause: EventCause,
  createdAt: Type.String(),
})
export type SubscriberEvent = Static<typeof SubscriberEvent>
