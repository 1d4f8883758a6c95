import { defineEntity, p } from '@mikro-orm/core'

import type { Permission, Plan } from '../../schema/values.ts'
import { ORGANIZATION_FILTER } from './organization-filter.ts'

const organizationEntity = defineEntity({
  name: 'Organization',
  tableName: 'organization',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    slug: p.text(),
    logo: p.text().nullable(),
    email: p.text().nullable(),
    timezone: p.text().defaultRaw("'Europe/Paris'::text"),
    verified: p.boolean().default(false),
    plan: p.text().$type<Plan>().defaultRaw("'FREE'::text"),
    subscriptionStatus: p.text().nullable(),
    periodStart: p.datetime(3).nullable(),
    periodEnd: p.datetime(3).nullable(),
    cancelAtPeriodEnd: p.boolean().default(false),
    customLimits: p.json<unknown>().nullable(),
    doubleOptIn: p.boolean().default(false),
    confirmationEmail: p.json<unknown>().nullable(),
    writingStyle: p.json<unknown>().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
    updatedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Organization extends organizationEntity.class {}
organizationEntity.setClass(Organization)

const apiTokenEntity = defineEntity({
  name: 'ApiToken',
  tableName: 'api_token',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    name: p.text(),
    tokenHash: p.blob(),
    lastFour: p.text(),
    permissions: p.array().$type<Permission[]>(),
    expiresAt: p.datetime(3).nullable(),
    revokedAt: p.datetime(3).nullable(),
    lastUsedAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class ApiToken extends apiTokenEntity.class {}
apiTokenEntity.setClass(ApiToken)

const adminKeyEntity = defineEntity({
  name: 'AdminKey',
  tableName: 'admin_key',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    keyHash: p.blob(),
    lastFour: p.text(),
    revokedAt: p.datetime(3).nullable(),
    lastUsedAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class AdminKey extends adminKeyEntity.class {}
adminKeyEntity.setClass(AdminKey)

const confirmationChallengeEntity = defineEntity({
  name: 'ConfirmationChallenge',
  tableName: 'confirmation_challenge',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    tool: p.text(),
    inputHash: p.blob(),
    codeHash: p.blob(),
    wrongCodes: p.integer().default(0),
    expiresAt: p.datetime(3),
    spentAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class ConfirmationChallenge extends confirmationChallengeEntity.class {}
confirmationChallengeEntity.setClass(ConfirmationChallenge)

const idempotencyRecordEntity = defineEntity({
  name: 'IdempotencyRecord',
  tableName: 'idempotency_record',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    key: p.text().primary(),
    operation: p.text(),
    bodyHash: p.blob(),
    answer: p.json<unknown>(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class IdempotencyRecord extends idempotencyRecordEntity.class {}
idempotencyRecordEntity.setClass(IdempotencyRecord)

const rateWindowEntity = defineEntity({
  name: 'RateWindow',
  tableName: 'rate_window',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    bucket: p.text().primary(),
    windowStart: p.datetime(0),
    used: p.integer(),
  },
})
export class RateWindow extends rateWindowEntity.class {}
rateWindowEntity.setClass(RateWindow)

const auditEntryEntity = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entry',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    actor: p.text(),
    action: p.text(),
    target: p.text().nullable(),
    data: p.json<unknown>().defaultRaw("'{}'::jsonb"),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class AuditEntry extends auditEntryEntity.class {}
auditEntryEntity.setClass(AuditEntry)
