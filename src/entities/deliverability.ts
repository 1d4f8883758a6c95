import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const outcomeBatchEntity = defineEntity({
  name: 'OutcomeBatch',
  tableName: 'outcome_batch',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary().defaultRaw('new_id()'),
    kind: p.text(),
    messages: p.array().columnType('uuid[]'),
  },
})
export class OutcomeBatch extends outcomeBatchEntity.class {}
outcomeBatchEntity.setClass(OutcomeBatch)

const deliveryDueEntity = defineEntity({
  name: 'DeliveryDue',
  tableName: 'delivery_due',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary().defaultRaw('new_id()'),
    dueAt: p.datetime(3),
    messages: p.array().columnType('uuid[]'),
  },
})
export class DeliveryDue extends deliveryDueEntity.class {}
deliveryDueEntity.setClass(DeliveryDue)

const receiverEntity = defineEntity({
  name: 'Receiver',
  tableName: 'receiver',
  properties: {
    domain: p.text().primary(),
    family: p.text().nullable(),
    checkedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Receiver extends receiverEntity.class {}
receiverEntity.setClass(Receiver)

const domainTotalEntity = defineEntity({
  name: 'DomainTotal',
  tableName: 'domain_total',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    domainId: p.uuid().primary(),
    stream: p.text().primary(),
    at: p.datetime(3).primary(),
    family: p.text().primary(),
    emails: p.integer(),
    bounced: p.integer(),
    failed: p.integer(),
    complained: p.integer(),
    tracked: p.integer(),
    opened: p.integer(),
  },
})
export class DomainTotal extends domainTotalEntity.class {}
domainTotalEntity.setClass(DomainTotal)

const sendingStopEntity = defineEntity({
  name: 'SendingStop',
  tableName: 'sending_stop',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    domainId: p.uuid().primary(),
    stream: p.text().primary(),
    names: p.array(),
    reason: p.text(),
    days: p.integer(),
    emails: p.integer(),
    counted: p.integer(),
    stoppedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class SendingStop extends sendingStopEntity.class {}
sendingStopEntity.setClass(SendingStop)
