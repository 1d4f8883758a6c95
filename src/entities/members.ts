import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const memberEntity = defineEntity({
  name: 'Member',
  tableName: 'member',
  properties: {
    id: p.uuid().primary(),
    email: p.text(),
    emailKey: p.text().persist(false),
    name: p.text(),
    password: p.text().nullable(),
    lastLoginAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Member extends memberEntity.class {}
memberEntity.setClass(Member)

const membershipEntity = defineEntity({
  name: 'Membership',
  tableName: 'membership',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    memberId: p.uuid().primary(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class Membership extends membershipEntity.class {}
membershipEntity.setClass(Membership)
