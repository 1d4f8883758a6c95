import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const emailReportEntity = defineEntity({
  name: 'EmailReport',
  tableName: 'email_report',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    messageId: p.uuid(),
    kind: p.text(),
    fingerprint: p.blob(),
    category: p.text().nullable(),
    status: p.text().nullable(),
    diagnostic: p.text().nullable(),
    raw: p.blob(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class EmailReport extends emailReportEntity.class {}
emailReportEntity.setClass(EmailReport)
