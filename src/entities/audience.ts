import { defineEntity, p } from '@mikro-orm/core'

import type { FieldType, SubscriberStatus } from '../../schema/values.ts'
import { ORGANIZATION_FILTER } from './organization-filter.ts'

const subscriberEntity = defineEntity({
  name: 'Subscriber',
  tableName: 'subscriber',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    email: p.text(),
    emailKey: p.text().persist(false),
    name: p.text().nullable(),
    phone: p.text().nullable(),
    status: p.text().$type<SubscriberStatus>(),
    country: p.text().nullable(),
    ipAddress: p.text().nullable(),
    fields: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    bounceCategory: p.text().nullable(),
    confirmationRequestedAt: p.datetime(3).nullable(),
    confirmedAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Subscriber extends subscriberEntity.class {}
subscriberEntity.setClass(Subscriber)

const subscriberStatEntity = defineEntity({
  name: 'SubscriberStat',
  tableName: 'subscriber_stat',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    subscriberId: p.uuid().primary(),
    revenue: p.decimal('number').precision(18).scale(2).default(0),
    emailCount: p.integer().default(0),
    openCount: p.integer().default(0),
    clickCount: p.integer().default(0),
    lastOpenedAt: p.datetime(3).nullable(),
    lastClickedAt: p.datetime(3).nullable(),
  },
})
export class SubscriberStat extends subscriberStatEntity.class {}
subscriberStatEntity.setClass(SubscriberStat)

const tagEntity = defineEntity({
  name: 'Tag',
  tableName: 'tag',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    name: p.text(),
    nameKey: p.text().persist(false),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Tag extends tagEntity.class {}
tagEntity.setClass(Tag)

const subscriberTagEntity = defineEntity({
  name: 'SubscriberTag',
  tableName: 'subscriber_tag',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    subscriberId: p.uuid().primary(),
    tagId: p.uuid().primary(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class SubscriberTag extends subscriberTagEntity.class {}
subscriberTagEntity.setClass(SubscriberTag)

const customFieldEntity = defineEntity({
  name: 'CustomField',
  tableName: 'custom_field',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    name: p.text(),
    type: p.text().$type<FieldType>(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class CustomField extends customFieldEntity.class {}
customFieldEntity.setClass(CustomField)

const segmentEntity = defineEntity({
  name: 'Segment',
  tableName: 'segment',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    name: p.text(),
    filters: p.json<unknown>().defaultRaw("'[]'::jsonb"),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Segment extends segmentEntity.class {}
segmentEntity.setClass(Segment)

const watchedSegmentEntity = defineEntity({
  name: 'WatchedSegment',
  tableName: 'watched_segment',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    segmentId: p.uuid().primary(),
    recheckAfter: p.text().nullable(),
    recheckAt: p.datetime(3).nullable(),
  },
})
export class WatchedSegment extends watchedSegmentEntity.class {}
watchedSegmentEntity.setClass(WatchedSegment)

const segmentMemberEntity = defineEntity({
  name: 'SegmentMember',
  tableName: 'segment_member',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    segmentId: p.uuid().primary(),
    subscriberId: p.uuid().primary(),
  },
})
export class SegmentMember extends segmentMemberEntity.class {}
segmentMemberEntity.setClass(SegmentMember)

const segmentChangeEntity = defineEntity({
  name: 'SegmentChange',
  tableName: 'segment_change',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.bigint().primary().autoincrement(),
    organizationId: p.uuid(),
    subscriberId: p.uuid(),
    silent: p.boolean().default(false),
    depth: p.integer().nullable(),
  },
})
export class SegmentChange extends segmentChangeEntity.class {}
segmentChangeEntity.setClass(SegmentChange)

const subscriberEventEntity = defineEntity({
  name: 'SubscriberEvent',
  tableName: 'subscriber_event',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    subscriberId: p.uuid(),
    type: p.text(),
    data: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    cause: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class SubscriberEvent extends subscriberEventEntity.class {}
subscriberEventEntity.setClass(SubscriberEvent)

const suppressionEntity = defineEntity({
  name: 'Suppression',
  tableName: 'suppression',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    emailKey: p.text(),
    reason: p.text(),
    source: p.text(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Suppression extends suppressionEntity.class {}
suppressionEntity.setClass(Suppression)

const erasureEntity = defineEntity({
  name: 'Erasure',
  tableName: 'erasure',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    subscriberId: p.uuid().primary(),
    emailKey: p.text(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Erasure extends erasureEntity.class {}
erasureEntity.setClass(Erasure)
