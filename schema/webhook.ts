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
  eventTypes: nullable(Type.Array(Type.String(), { description: 'Null for every type.' })),
  enabled: Type.Boolean(),
  disabledAt: nullable(Type.String()),
  disabledReason: nullable(
    oneOf(DISABLED_REASONS, {
      description:
        'REQUESTED by you; FAILING: nothing but failures for five days; GONE: the endpoint answered 410.',
    }),
  ),
  failingSince: nullable(Type.String({ description: 'Every attempt failed since then.' })),
  replaying: Type.Boolean({ description: 'Past events are still being queued again.' }),
  previousSecretUntil: nullable(
    Type.String({ description: 'Until then the secret before the last rotation signs as well.' }),
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
      description: 'whsec_ and a key in base64; null where an Idempotency-Key is answered a second time.',
    }),
  ),
})
export type NewWebhook = Static<typeof NewWebhook>

/** The delivery of one event to one endpoint. */
export const WebhookDelivery = closed({
  id: Type.String({ description: 'Of the event, and the header webhook-id of every attempt.' }),
  eventType: Type.String(),
  status: oneOf(WEBHOOK_DELIVERY_STATUSES),
  attempts: Type.Integer({ description: 'Since it was queued.' }),
  responseStatus: nullable(Type.Integer({ description: 'Of the last attempt; null when nobody answered.' })),
  responseBody: nullable(Type.String({ description: 'The first KB of it.' })),
  error: nullable(Type.String({ description: 'Why the last attempt failed, or why there was none.' })),
  queuedAt: Type.String(),
  lastAttemptAt: nullable(Type.String()),
  nextAttemptAt: nullable(Type.String()),
})
export type WebhookDelivery = Static<typeof WebhookDelivery>
