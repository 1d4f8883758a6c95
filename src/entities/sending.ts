import { defineEntity, p } from '@mikro-orm/core'

import type { SnippetContentType } from '../../schema/snippet.ts'
import type { CampaignStatus, ContentType, DomainStatus } from '../../schema/values.ts'
import { ORGANIZATION_FILTER } from './organization-filter.ts'

const domainEntity = defineEntity({
  name: 'Domain',
  tableName: 'domain',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    domain: p.text(),
    status: p.text().$type<DomainStatus>().defaultRaw("'PENDING'::text"),
    development: p.boolean().default(false),
    region: p.text().defaultRaw("'local'::text"),
    records: p.json<unknown>().defaultRaw("'[]'::jsonb"),
    fallbackPriority: p.integer().nullable(),
    verificationRequestedAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
    ownershipToken: p.text(),
    checkedAt: p.datetime(3).nullable(),
    missedChecks: p.smallint().default(0),
    missedAt: p.datetime(3).nullable(),
    resumedAt: p.datetime(3).nullable(),
  },
})
export class Domain extends domainEntity.class {}
domainEntity.setClass(Domain)

const senderEntity = defineEntity({
  name: 'Sender',
  tableName: 'sender',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    domainId: p.uuid(),
    name: p.text(),
    email: p.text(),
    emailKey: p.text().persist(false),
    replyTo: p.text().nullable(),
    isDefault: p.boolean().default(false),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Sender extends senderEntity.class {}
senderEntity.setClass(Sender)

const snippetEntity = defineEntity({
  name: 'Snippet',
  tableName: 'snippet',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    name: p.text(),
    content: p.json<unknown>(),
    contentType: p.text().$type<SnippetContentType>().defaultRaw("'MAILY'::text"),
    archivedAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Snippet extends snippetEntity.class {}
snippetEntity.setClass(Snippet)

const imageEntity = defineEntity({
  name: 'Image',
  tableName: 'image',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    name: p.text().nullable(),
    description: p.text().nullable(),
    contentType: p.text(),
    width: p.integer(),
    height: p.integer(),
    size: p.integer(),
    contentHash: p.blob(),
    capturePageId: p.text().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Image extends imageEntity.class {}
imageEntity.setClass(Image)

const campaignEntity = defineEntity({
  name: 'Campaign',
  tableName: 'campaign',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    kind: p.text(),
    automationId: p.uuid().nullable(),
    stepId: p.text().nullable(),
    name: p.text().defaultRaw("'Untitled'::text"),
    subject: p.text().defaultRaw("''::text"),
    preview: p.text().nullable(),
    content: p.json<unknown>().nullable(),
    contentType: p.text().$type<ContentType>().defaultRaw("'MAILY'::text"),
    senderId: p.uuid().nullable(),
    replyTo: p.text().nullable(),
    recipientFilters: p.json<unknown>().defaultRaw("'[]'::jsonb"),
    status: p.text().$type<CampaignStatus>().defaultRaw("'DRAFT'::text"),
    sendAt: p.datetime(3).nullable(),
    timezone: p.text().nullable(),
    scheduleVersion: p.integer().default(0),
    paused: p.boolean().default(false),
    failure: p.text().nullable(),
    snippets: p.array().$type<string[]>().nullable().persist(false),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Campaign extends campaignEntity.class {}
campaignEntity.setClass(Campaign)

const campaignHistoryEntity = defineEntity({
  name: 'CampaignHistory',
  tableName: 'campaign_history',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    campaignId: p.uuid(),
    source: p.text(),
    subject: p.text(),
    preview: p.text().nullable(),
    content: p.json<unknown>().nullable(),
    contentType: p.text().$type<ContentType>(),
    restoredFrom: p.uuid().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class CampaignHistory extends campaignHistoryEntity.class {}
campaignHistoryEntity.setClass(CampaignHistory)

const messageEntity = defineEntity({
  name: 'Message',
  tableName: 'message',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    class: p.text(),
    marketing: p.boolean(),
    status: p.text().defaultRaw("'QUEUED'::text"),
    subscriberId: p.uuid().nullable(),
    recipient: p.text(),
    fromName: p.text().nullable(),
    fromEmail: p.text(),
    stoodInFor: p.text().nullable(),
    replyTo: p.text().nullable(),
    subject: p.text().nullable(),
    tracking: p.boolean().default(true),
    campaignId: p.uuid().nullable(),
    automationId: p.uuid().nullable(),
    versionId: p.uuid().nullable(),
    runId: p.uuid().nullable(),
    stepId: p.text().nullable(),
    visit: p.integer().nullable(),
    attempts: p.integer().default(0),
    reason: p.text().nullable(),
    response: p.text().nullable(),
    bounceCategory: p.text().nullable(),
    resent: p.boolean().default(false),
    createdAt: p.datetime(3).defaultRaw('now()'),
    sentAt: p.datetime(3).nullable(),
    deliveredAt: p.datetime(3).nullable(),
    openedAt: p.datetime(3).nullable(),
    clickedAt: p.datetime(3).nullable(),
    failedAt: p.datetime(3).nullable(),
  },
})
export class Message extends messageEntity.class {}
messageEntity.setClass(Message)

const messageContentEntity = defineEntity({
  name: 'MessageContent',
  tableName: 'message_content',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    messageId: p.uuid().primary(),
    source: p.json<unknown>(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class MessageContent extends messageContentEntity.class {}
messageContentEntity.setClass(MessageContent)

const messageKeyEntity = defineEntity({
  name: 'MessageKey',
  tableName: 'message_key',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    key: p.text().primary(),
    messageId: p.uuid(),
  },
})
export class MessageKey extends messageKeyEntity.class {}
messageKeyEntity.setClass(MessageKey)

const deliveryQueueEntity = defineEntity({
  name: 'DeliveryQueue',
  tableName: 'delivery_queue',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    lane: p.text(),
    weight: p.smallint().default(0),
    campaignId: p.uuid().nullable(),
    state: p.text().defaultRaw("'queued'::text"),
    submitting: p.boolean().default(false),
    attempt: p.integer().default(0),
    tries: p.smallint().default(0),
    leaseUntil: p.datetime(3).nullable(),
    nextAttemptAt: p.datetime(3).defaultRaw('now()'),
    firstTriedAt: p.datetime(3).nullable(),
    heldBy: p.uuid().nullable(),
    ambiguous: p.boolean().default(false),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class DeliveryQueue extends deliveryQueueEntity.class {}
deliveryQueueEntity.setClass(DeliveryQueue)

const laneBucketEntity = defineEntity({
  name: 'LaneBucket',
  tableName: 'lane_bucket',
  properties: {
    lane: p.text().primary(),
    nextSlotAt: p.datetime().defaultRaw('now()'),
  },
})
export class LaneBucket extends laneBucketEntity.class {}
laneBucketEntity.setClass(LaneBucket)

const emailCountEntity = defineEntity({
  name: 'EmailCount',
  tableName: 'email_count',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    month: p.date().primary(),
    slot: p.smallint().primary(),
    emails: p.integer(),
  },
})
export class EmailCount extends emailCountEntity.class {}
emailCountEntity.setClass(EmailCount)

const linkEntity = defineEntity({
  name: 'Link',
  tableName: 'link',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    messageId: p.uuid().primary(),
    targets: p.array(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Link extends linkEntity.class {}
linkEntity.setClass(Link)

const trackingEventEntity = defineEntity({
  name: 'TrackingEvent',
  tableName: 'tracking_event',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    messageId: p.uuid(),
    kind: p.text(),
    position: p.integer().nullable(),
    human: p.boolean(),
    userAgent: p.text().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class TrackingEvent extends trackingEventEntity.class {}
trackingEventEntity.setClass(TrackingEvent)

const decisionEntity = defineEntity({
  name: 'Decision',
  tableName: 'decision',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    subscriberId: p.uuid().nullable(),
    automationId: p.uuid().nullable(),
    campaignId: p.uuid().nullable(),
    runId: p.uuid().nullable(),
    stepId: p.text().nullable(),
    messageId: p.uuid().nullable(),
    action: p.text(),
    reason: p.text(),
    data: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Decision extends decisionEntity.class {}
decisionEntity.setClass(Decision)
