import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const webhookEntity = defineEntity({
  name: 'Webhook',
  tableName: 'webhook',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    url: p.text(),
    description: p.text().default(''),
    eventTypes: p.array().columnType('text[]').nullable(),
    enabled: p.boolean().default(true),
    disabledAt: p.datetime(3).nullable(),
    disabledReason: p.text().nullable(),
    secret: p.blob(),
    previousSecret: p.blob().nullable(),
    previousUntil: p.datetime(3).nullable(),
    turn: p.integer().default(0),
    leaseUntil: p.datetime(3).nullable(),
    nextTurnAt: p.datetime(3).defaultRaw('now()'),
    dueAt: p.datetime(3).nullable(),
    failures: p.integer().default(0),
    failingSince: p.datetime(3).nullable(),
    replayAfter: p.uuid().nullable(),
    replayUntil: p.uuid().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
    deletedAt: p.datetime(3).nullable(),
  },
})
export class Webhook extends webhookEntity.class {}
webhookEntity.setClass(Webhook)

const webhookDeliveryEntity = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_delivery',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    webhookId: p.uuid().primary(),
    eventId: p.uuid().primary(),
    type: p.text(),
    status: p.text().defaultRaw("'PENDING'::text"),
    attempts: p.integer().default(0),
    queuedAt: p.datetime(3).defaultRaw('now()'),
    nextAttemptAt: p.datetime(3).nullable().defaultRaw('now()'),
    firstAttemptAt: p.datetime(3).nullable(),
    lastAttemptAt: p.datetime(3).nullable(),
    responseStatus: p.integer().nullable(),
    responseBody: p.text().nullable(),
    error: p.text().nullable(),
  },
})
export class WebhookDelivery extends webhookDeliveryEntity.class {}
webhookDeliveryEntity.setClass(WebhookDelivery)
