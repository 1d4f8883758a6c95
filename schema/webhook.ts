import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** How much a webhook may be told, and how many there may be. */
export const WEBHOOK_LIMITS = {
  perOrganization: 20,
  url: 2_048,
  description: 200,
  eventTypes: 100,
  /** Of an answer, kept in the log. */
  responseBytes: 1_024,
  /** How long a delivery is kept, and how far back a replay reaches. */
  days: 30,
} as const

/** The event that only tries out an endpoint. */
export const WEBHOOK_PING = 'WEBHOOK_PING'

/** Why a webhook is disabled. */
const DISABLED_REASONS = ['REQUESTED', 'FAILING', 'GONE'] as const

/** What became of an event at an endpoint. */
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

/** An address that events are told to, without its secret, which is shown once. */
export const Webhook = closed(members)
export type Webhook = Static<typeof Webhook>

/** A webhook with a secret that was made just now. */
export const NewWebhook = closed({
  ...members,
  secret: nullable(
    Type.String({
      description: 'whsec_ and a key in base64; null where an Idempotency-Key is answered a second time.',
    }),
  ),
})
export type NewWebhook = Static<typeof NewWebhook>

/** One event at one endpoint. */
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
