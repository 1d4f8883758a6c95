import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const automationIntakeEntity = defineEntity({
  name: 'AutomationIntake',
  tableName: 'automation_intake',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    automationId: p.uuid(),
    filters: p.json<unknown>(),
    cause: p.json<unknown>(),
    most: p.integer().nullable(),
    expected: p.integer(),
    status: p.text().defaultRaw("'RUNNING'::text"),
    error: p.text().nullable(),
    reached: p.uuid().defaultRaw("'00000000-0000-0000-0000-000000000000'::uuid"),
    looked: p.integer().default(0),
    entered: p.integer().default(0),
    createdAt: p.datetime(3).defaultRaw('now()'),
    finishedAt: p.datetime(3).nullable(),
    stepId: p.text().nullable(),
    dueFrom: p.datetime(3).nullable(),
    dueTo: p.datetime(3).nullable(),
  },
})
export class AutomationIntake extends automationIntakeEntity.class {}
automationIntakeEntity.setClass(AutomationIntake)

const automationWebhookEntity = defineEntity({
  name: 'AutomationWebhook',
  tableName: 'automation_webhook',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    automationId: p.uuid(),
    stepId: p.text(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class AutomationWebhook extends automationWebhookEntity.class {}
automationWebhookEntity.setClass(AutomationWebhook)

const automationWebhookReceiptEntity = defineEntity({
  name: 'AutomationWebhookReceipt',
  tableName: 'automation_webhook_receipt',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    webhookId: p.uuid().primary(),
    messageId: p.text().primary(),
    answer: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class AutomationWebhookReceipt extends automationWebhookReceiptEntity.class {}
automationWebhookReceiptEntity.setClass(AutomationWebhookReceipt)
