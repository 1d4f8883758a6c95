import { defineEntity, p } from '@mikro-orm/core'

import type { ContentType } from '../../schema/values.ts'
import { ORGANIZATION_FILTER } from './organization-filter.ts'

const campaignSendEntity = defineEntity({
  name: 'CampaignSend',
  tableName: 'campaign_send',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    campaignId: p.uuid(),
    number: p.integer(),
    subject: p.text(),
    preview: p.text().nullable(),
    content: p.json<unknown>(),
    contentType: p.text().$type<ContentType>(),
    targets: p.array().$type<(string | null)[]>(),
    senderName: p.text(),
    senderEmail: p.text(),
    stoodInFor: p.text().nullable(),
    replyTo: p.text().nullable(),
    recipientFilters: p.json<unknown>(),
    audienceFrozen: p.boolean().default(false),
    total: p.integer().default(0),
    enqueuedTo: p.uuid().defaultRaw("'00000000-0000-0000-0000-000000000000'::uuid"),
    enqueued: p.integer().default(0),
    skipped: p.integer().default(0),
    startedAt: p.datetime(3).defaultRaw('now()'),
    finishedAt: p.datetime(3).nullable(),
    seenAt: p.datetime(3).defaultRaw('now()'),
    fault: p.text().nullable(),
    quotaMonth: p.date().nullable(),
    quotaTaken: p.integer().default(0),
  },
})
export class CampaignSend extends campaignSendEntity.class {}
campaignSendEntity.setClass(CampaignSend)

const campaignRecipientEntity = defineEntity({
  name: 'CampaignRecipient',
  tableName: 'campaign_recipient',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    campaignId: p.uuid().primary(),
    subscriberId: p.uuid().primary(),
    messageId: p.uuid(),
    reason: p.text().nullable(),
  },
})
export class CampaignRecipient extends campaignRecipientEntity.class {}
campaignRecipientEntity.setClass(CampaignRecipient)

const campaignBatchEntity = defineEntity({
  name: 'CampaignBatch',
  tableName: 'campaign_batch',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    campaignId: p.uuid(),
    sendId: p.uuid(),
    afterId: p.uuid(),
    lastId: p.uuid(),
    markedTo: p.uuid().defaultRaw("'00000000-0000-0000-0000-000000000000'::uuid"),
    unwritten: p.integer(),
    queued: p.array().columnType('uuid[]').$type<string[]>(),
    leaseUntil: p.datetime(3),
  },
})
export class CampaignBatch extends campaignBatchEntity.class {}
campaignBatchEntity.setClass(CampaignBatch)

const campaignTallyEntity = defineEntity({
  name: 'CampaignTally',
  tableName: 'campaign_tally',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    campaignId: p.uuid().primary(),
    slot: p.smallint().primary(),
    status: p.text().primary(),
    reason: p.text().primary(),
    sentHour: p.datetime(3).primary(),
    emails: p.integer(),
    delivered: p.integer(),
    resent: p.integer(),
    windowAt: p.datetime(3),
    inWindow: p.integer(),
    beforeWindow: p.integer(),
  },
})
export class CampaignTally extends campaignTallyEntity.class {}
campaignTallyEntity.setClass(CampaignTally)
