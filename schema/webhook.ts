import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** Limits of webhooks: texts in characters. */
export const WEBHOOK_LIMITS = {
  perOrganization: 20,
  url: 2_048,
  description: 200,
  eventTypes: 100,
  /** Bytes of a response that are kept in the delivery log. */
  responseBytes: 1_024,
  /** Days for which deliveries are kept, and can therefore be replayed. */
  days: 30,
} as const

/** The event that only tests an endpoint. */
export const WEBHOOK_PING = 'WEBHOOK_PING'

/** The reasons why a webhook is disabled. */
const DISABLED_REASONS = ['REQUESTED', 'FAILING', 'GONE'] as const

/** The states of a webhook delivery. */
export const WEBHOOK_DELIVERY_STATUSES = ['PENDING', 'DELIVERED', 'FAILED'] as const
export type WebhookDeliveryStatus = (typeof WEBHOOK_DELIVERY_STATUSES)[number]

const members = {
  id: Type.String(),
  url: Type.String(),
  description: Type.String(),
  eventTypes: nullable(
    Type.Array(Type.String(), { description: 'The event types that are sent. Null means all types.' }),
  ),
  enabled: Type.Boolean(),
  disabledAt: nullable(Type.String()),
  disabledReason: nullable(
    oneOf(DISABLED_REASONS, {
      description:
        'REQUESTED: it was disabled by a call. FAILING: every attempt failed for five days. GONE: the endpoint answered 410.',
    }),
  ),
  failingSince: nullable(Type.String({ description: 'The time since which every attempt has failed.' })),
  replaying: Type.Boolean({ description: 'Whether past events are still being queued again.' }),
  previousSecretUntil: nullable(
    Type.String({ description: 'The time until which messages are also signed with the previous secret.' }),
  ),
  createdAt: Type.String(),
  updatedAt: Type.String(),
}

/** A webhook without its secret, which is shown only once. */
export const Webhook = closed(members)
export type Webhook = Static<typeof Webhook>

/** A webhook together with its new secret. */
export const NewWebhook = closed({
  ...members,
  secret: nullable(
    Type.String({
      description:
        'The signing secret: whsec_ followed by a key in Base64. Null if the call repeats an earlier one with the same Idempotency-Key.',
    }),
  ),
})
export type NewWebhook = Static<typeof NewWebhook>

/** The delivery of one event to one endpoint. */
export const WebhookDelivery = closed({
  id: Type.String({
    description: 'The id of the event, which is also the header webhook-id of every attempt.',
  }),
  eventType: Type.String(),
  status: oneOf(WEBHOOK_DELIVERY_STATUSES),
  attempts: Type.Integer({ description: 'The number of attempts since the event was last queued.' }),
  responseStatus: nullable(
    Type.Integer({ description: 'The HTTP status of the last attempt. Null if there was no response.' }),
  ),
  responseBody: nullable(Type.String({ description: 'The first KB of that response.' })),
  error: nullable(
    Type.String({ description: 'The reason why the last attempt failed, or why there was none.' }),
  ),
  queuedAt: Type.String(),
  lastAttemptAt: nullable(Type.String()),
  nextAttemptAt: nullable(Type.String()),
})
export type WebhookDelivery = Static<typeof WebhookDelivery>
