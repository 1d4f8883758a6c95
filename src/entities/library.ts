import { defineEntity, p } from '@mikro-orm/core'

import { ORGANIZATION_FILTER } from './organization-filter.ts'

const snippetUseEntity = defineEntity({
  name: 'SnippetUse',
  tableName: 'snippet_use',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    snippetId: p.uuid().primary(),
    usedId: p.uuid().primary(),
  },
})
export class SnippetUse extends snippetUseEntity.class {}
snippetUseEntity.setClass(SnippetUse)

const storedFileEntity = defineEntity({
  name: 'StoredFile',
  tableName: 'stored_file',
  filters: ORGANIZATION_FILTER,
  properties: {
    organizationId: p.uuid().primary(),
    key: p.text().primary(),
    bytes: p.blob(),
    createdAt: p.datetime(3).defaultRaw('now()'),
  },
})
export class StoredFile extends storedFileEntity.class {}
storedFileEntity.setClass(StoredFile)
