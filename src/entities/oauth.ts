import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const oauthRecordEntity = defineEntity({
  name: 'OAuthRecord',
  tableName: 'oauth_record',
  properties: {
    model: p.text().primary(),
    idHash: p.blob().primary(),
    payload: p.blob(),
    grantHash: p.blob().nullable(),
    uidHash: p.blob().nullable(),
    consumedAt: p.datetime(3).nullable(),
    expiresAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class OAuthRecord extends oauthRecordEntity.class {}
oauthRecordEntity.setClass(OAuthRecord)

const oauthGrantEntity = defineEntity({
  name: 'OAuthGrant',
  tableName: 'oauth_grant',
  filters: ORGANIZATION_FILTER,
  properties: {
    grantHash: p.blob().primary(),
    organizationId: p.uuid(),
    memberId: p.uuid(),
    clientHash: p.blob(),
    clientName: p.text(),
    lastUsedAt: p.datetime(3).nullable(),
    expiresAt: p.datetime(3),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class OAuthGrant extends oauthGrantEntity.class {}
oauthGrantEntity.setClass(OAuthGrant)
