import { defineEntity, p } from '@mikro-orm/core'

import type { ExitReason, RunStatus, WorkflowStatus } from '../../schema/values.ts'
import { ORGANIZATION_FILTER } from './organization-filter.ts'

const automationGroupEntity = defineEntity({
  name: 'AutomationGroup',
  tableName: 'automation_group',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    name: p.text(),
    nameKey: p.text().persist(false),
    conflictStrategy: p.text(),
    maxQueueAge: p.json<unknown>().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class AutomationGroup extends automationGroupEntity.class {}
automationGroupEntity.setClass(AutomationGroup)

const automationEntity = defineEntity({
  name: 'Automation',
  tableName: 'automation',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    name: p.text(),
    status: p.text().$type<WorkflowStatus>().defaultRaw("'DRAFT'::text"),
    draft: p.json<unknown>().defaultRaw('\'{"edges": [], "steps": []}\'::jsonb'),
    settings: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    successGoals: p.json<unknown>().defaultRaw("'[]'::jsonb"),
    publishedVersionId: p.uuid().nullable(),
    groupId: p.uuid().nullable(),
    updatedBy: p.text().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Automation extends automationEntity.class {}
automationEntity.setClass(Automation)

const automationVersionEntity = defineEntity({
  name: 'AutomationVersion',
  tableName: 'automation_version',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    automationId: p.uuid(),
    number: p.integer(),
    definition: p.json<unknown>(),
    snippets: p.array().$type<string[]>().nullable().persist(false),
    createdBy: p.text().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class AutomationVersion extends automationVersionEntity.class {}
automationVersionEntity.setClass(AutomationVersion)

const automationTriggerEntity = defineEntity({
  name: 'AutomationTrigger',
  tableName: 'automation_trigger',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    automationId: p.uuid().primary(),
    stepId: p.text().primary(),
    type: p.text().primary(),
    matchKey: p.text().primary().defaultRaw("''::text"),
  },
})
export class AutomationTrigger extends automationTriggerEntity.class {}
automationTriggerEntity.setClass(AutomationTrigger)

const automationEchoEntity = defineEntity({
  name: 'AutomationEcho',
  tableName: 'automation_echo',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    eventId: p.uuid().primary(),
    subscriberId: p.uuid(),
    type: p.text(),
    data: p.json<unknown>(),
  },
})
export class AutomationEcho extends automationEchoEntity.class {}
automationEchoEntity.setClass(AutomationEcho)

const automationEntryEntity = defineEntity({
  name: 'AutomationEntry',
  tableName: 'automation_entry',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    automationId: p.uuid().primary(),
    subscriberId: p.uuid().primary(),
    runs: p.integer().default(0),
    entered: p.integer().default(0),
    lastEnteredAt: p.datetime(3).nullable(),
  },
})
export class AutomationEntry extends automationEntryEntity.class {}
automationEntryEntity.setClass(AutomationEntry)

const automationRunEntity = defineEntity({
  name: 'AutomationRun',
  tableName: 'automation_run',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    automationId: p.uuid(),
    versionId: p.uuid(),
    subscriberId: p.uuid(),
    number: p.integer(),
    entryKey: p.text().defaultRaw("''::text"),
    groupId: p.uuid().nullable(),
    queuedAt: p.datetime(3).nullable(),
    queueExpiresAt: p.datetime(3).nullable(),
    status: p.text().$type<RunStatus>().defaultRaw("'QUEUED'::text"),
    exitReason: p.text().$type<ExitReason>().nullable(),
    error: p.text().nullable(),
    held: p.boolean().default(false),
    currentStepId: p.text().nullable(),
    visit: p.integer().default(0),
    waitKind: p.text().nullable(),
    wakeAt: p.datetime(3).nullable(),
    dueAt: p.datetime(3).nullable(),
    wakeReason: p.text().nullable(),
    trigger: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    context: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    temporalRunId: p.text().nullable(),
    failedIn: p.text().nullable(),
    enteredIn: p.string().columnType('xid8').defaultRaw('pg_current_xact_id()'),
    enteredAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
    endedAt: p.datetime(3).nullable(),
  },
})
export class AutomationRun extends automationRunEntity.class {}
automationRunEntity.setClass(AutomationRun)

const automationGroupPlaceEntity = defineEntity({
  name: 'AutomationGroupPlace',
  tableName: 'automation_group_place',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    groupId: p.uuid().primary(),
    subscriberId: p.uuid().primary(),
    decisions: p.integer().default(1),
  },
})
export class AutomationGroupPlace extends automationGroupPlaceEntity.class {}
automationGroupPlaceEntity.setClass(AutomationGroupPlace)

const runStepEntity = defineEntity({
  name: 'RunStep',
  tableName: 'run_step',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    runId: p.uuid().primary(),
    visit: p.integer().primary(),
    stepId: p.text(),
    type: p.text(),
    port: p.text().nullable(),
    outcome: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    startedAt: p.datetime(3).defaultRaw('now()'),
    endedAt: p.datetime(3).nullable(),
  },
})
export class RunStep extends runStepEntity.class {}
runStepEntity.setClass(RunStep)

const runWaitEntity = defineEntity({
  name: 'RunWait',
  tableName: 'run_wait',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    subscriberId: p.uuid().primary(),
    eventType: p.text().primary(),
    runId: p.uuid().primary(),
    ruleId: p.text().primary().defaultRaw("''::text"),
    visit: p.integer(),
    conditions: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    beganAt: p.datetime(3).defaultRaw('clock_timestamp()'),
  },
})
export class RunWait extends runWaitEntity.class {}
runWaitEntity.setClass(RunWait)

const goalConversionEntity = defineEntity({
  name: 'GoalConversion',
  tableName: 'goal_conversion',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    runId: p.uuid().primary(),
    goalId: p.text().primary(),
    automationId: p.uuid(),
    subscriberId: p.uuid(),
    eventId: p.uuid().nullable(),
    value: p.decimal('number').precision(18).scale(2).nullable(),
    currency: p.text().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class GoalConversion extends goalConversionEntity.class {}
goalConversionEntity.setClass(GoalConversion)

const goalWatchEntity = defineEntity({
  name: 'GoalWatch',
  tableName: 'goal_watch',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    runId: p.uuid().primary(),
    goalId: p.text().primary(),
    subscriberId: p.uuid(),
    eventType: p.text(),
    windowDays: p.integer(),
    opensAt: p.datetime(3).nullable(),
    expiresAt: p.datetime(3).nullable(),
    beganAt: p.datetime(3).defaultRaw('clock_timestamp()'),
  },
})
export class GoalWatch extends goalWatchEntity.class {}
goalWatchEntity.setClass(GoalWatch)

const automationVariantEntity = defineEntity({
  name: 'AutomationVariant',
  tableName: 'automation_variant',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    automationId: p.uuid().primary(),
    stepId: p.text().primary(),
    subscriberId: p.uuid().primary(),
    variantId: p.text(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class AutomationVariant extends automationVariantEntity.class {}
automationVariantEntity.setClass(AutomationVariant)

const automationThrottleEntity = defineEntity({
  name: 'AutomationThrottle',
  tableName: 'automation_throttle',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    automationId: p.uuid().primary(),
    stepId: p.text().primary(),
    windowAt: p.datetime(3),
    taken: p.integer(),
  },
})
export class AutomationThrottle extends automationThrottleEntity.class {}
automationThrottleEntity.setClass(AutomationThrottle)

const runWebhookEntity = defineEntity({
  name: 'RunWebhook',
  tableName: 'run_webhook',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    automationId: p.uuid(),
    runId: p.uuid().primary(),
    visit: p.integer().primary(),
    request: p.json<unknown>(),
    attempt: p.integer().default(0),
    nextAttemptAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class RunWebhook extends runWebhookEntity.class {}
runWebhookEntity.setClass(RunWebhook)

const outboxEntity = defineEntity({
  name: 'Outbox',
  tableName: 'outbox',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.bigint().primary().autoincrement(),
    organizationId: p.uuid(),
    workflowId: p.text(),
    kind: p.text(),
    payload: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    priority: p.smallint().default(0),
    attempts: p.integer().default(0),
    availableAt: p.datetime(3).defaultRaw('now()'),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Outbox extends outboxEntity.class {}
outboxEntity.setClass(Outbox)
