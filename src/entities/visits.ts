import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const pendingVisitEntity = defineEntity({
  name: 'PendingVisit',
  tableName: 'pending_visit',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    messageId: p.uuid(),
    position: p.integer().nullable(),
    url: p.text().nullable(),
    machine: p.boolean(),
    userAgent: p.text(),
    apart: p.boolean().default(false),
    createdAt: p.datetime(3),
  },
})
export class PendingVisit extends pendingVisitEntity.class {}
pendingVisitEntity.setClass(PendingVisit)

const engagementEntity = defineEntity({
  name: 'Engagement',
  tableName: 'engagement',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    messageId: p.uuid().primary(),
    kind: p.text().primary(),
    position: p.integer().primary(),
    campaignId: p.uuid().nullable(),
    people: p.integer(),
    machines: p.integer(),
  },
})
export class Engagement extends engagementEntity.class {}
engagementEntity.setClass(Engagement)

const campaignEngagementEntity = defineEntity({
  name: 'CampaignEngagement',
  tableName: 'campaign_engagement',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    campaignId: p.uuid().primary(),
    kind: p.text().primary(),
    position: p.integer().primary(),
    people: p.integer(),
    machines: p.integer(),
    emailsByPeople: p.integer(),
    emailsByMachines: p.integer(),
  },
})
export class CampaignEngagement extends campaignEngagementEntity.class {}
campaignEngagementEntity.setClass(CampaignEngagement)

const campaignHourEntity = defineEntity({
  name: 'CampaignHour',
  tableName: 'campaign_hour',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    campaignId: p.uuid().primary(),
    hour: p.datetime(3).primary(),
    opens: p.integer(),
    clicks: p.integer(),
  },
})
export class CampaignHour extends campaignHourEntity.class {}
campaignHourEntity.setClass(CampaignHour)
