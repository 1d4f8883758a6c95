import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const automationScheduleEntity = defineEntity({
  name: 'AutomationSchedule',
  tableName: 'automation_schedule',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    automationId: p.uuid().primary(),
    stepId: p.text().primary(),
    timing: p.json<unknown>(),
    lookedUntil: p.datetime(3).defaultRaw('now()'),
    nextAt: p.datetime(3).nullable(),
  },
})
export class AutomationSchedule extends automationScheduleEntity.class {}
automationScheduleEntity.setClass(AutomationSchedule)

const automationOccasionEntity = defineEntity({
  name: 'AutomationOccasion',
  tableName: 'automation_occasion',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    automationId: p.uuid().primary(),
    stepId: p.text().primary(),
    subscriberId: p.uuid().primary(),
    occasion: p.text(),
  },
})
export class AutomationOccasion extends automationOccasionEntity.class {}
automationOccasionEntity.setClass(AutomationOccasion)
