import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const dkimKeyEntity = defineEntity({
  name: 'DkimKey',
  tableName: 'dkim_key',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    domainId: p.uuid(),
    selector: p.text(),
    publicKey: p.text(),
    privateKey: p.blob().nullable(),
    state: p.text(),
    retiredAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class DkimKey extends dkimKeyEntity.class {}
dkimKeyEntity.setClass(DkimKey)
