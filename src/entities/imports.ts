import { defineEntity, p } from '@mikro-orm/core'

import type { ImportStatus } from '../../schema/import.ts'
import { ORGANIZATION_FILTER } from './organization-filter.ts'

const subscriberImportEntity = defineEntity({
  name: 'SubscriberImport',
  tableName: 'subscriber_import',
  filters: ORGANIZATION_FILTER,
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    status: p.text().$type<ImportStatus | 'UPLOADING'>(),
    settings: p.json<unknown>(),
    actor: p.json<unknown>(),
    bytes: p.bigint('number').default(0),
    sha256: p.text().nullable(),
    nextByte: p.bigint('number').default(0),
    rows: p.integer().default(0),
    imported: p.integer().default(0),
    updated: p.integer().default(0),
    failed: p.integer().default(0),
    error: p.text().nullable(),
    createdAt: p.datetime(3).defaultRaw('now()'),
    startedAt: p.datetime(3).nullable(),
    finishedAt: p.datetime(3).nullable(),
    updatedAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class SubscriberImport extends subscriberImportEntity.class {}
subscriberImportEntity.setClass(SubscriberImport)

const importChunkEntity = defineEntity({
  name: 'ImportChunk',
  tableName: 'import_chunk',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    importId: p.uuid().primary(),
    firstByte: p.bigint('number').primary(),
    content: p.blob(),
  },
})
export class ImportChunk extends importChunkEntity.class {}
importChunkEntity.setClass(ImportChunk)

const importRejectionEntity = defineEntity({
  name: 'ImportRejection',
  tableName: 'import_rejection',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    importId: p.uuid().primary(),
    rowNumber: p.integer().primary(),
    cells: p.json<unknown>(),
    error: p.text(),
  },
})
export class ImportRejection extends importRejectionEntity.class {}
importRejectionEntity.setClass(ImportRejection)
