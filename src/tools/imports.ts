import Type from 'typebox'

import { closed, defaulted, listOf, nullable, oneOf, walkOf } from '../../schema/define.ts'
import { IMPORTED_STATUSES, SubscriberImport } from '../../schema/import.ts'
import { SUBSCRIBER_LIMITS } from '../../schema/subscriber.ts'
import { defineTool, type Received } from '../catalogue/tool.ts'
import { importRows } from '../domain/imports/import-rows.ts'
import {
  cancelImport as cancel,
  findImport,
  browseImports as readPage,
  presentImport,
  startImport,
} from '../domain/imports/records.ts'
import { rejectedAsCsv } from '../domain/imports/rejections.ts'
import { IMPORT_BYTES, receiveFile } from '../domain/imports/upload.ts'

const Answer = closed({ import: SubscriberImport })
const importId = Type.String({ description: 'The id (imp_…).' })

const switches = {
  resubscribe: defaulted(Type.Boolean({ description: 'Subscribe those again who are UNSUBSCRIBED.' }), false),
  triggerWorkflows: defaulted(Type.Boolean({ description: 'Start matching workflows.' }), false),
}

const ImportElement = closed({
  email: Type.String({ description: 'The address; somebody who has it already is updated.' }),
  name: Type.Optional(
    Type.String({ description: `Up to ${SUBSCRIBER_LIMITS.name} characters; empty clears.` }),
  ),
  phone: Type.Optional(
    Type.String({ description: `Up to ${SUBSCRIBER_LIMITS.phone} characters; empty clears.` }),
  ),
  tags: Type.Optional(
    Type.Array(Type.String(), {
      description: `Up to ${SUBSCRIBER_LIMITS.tags} tag names to add; missing tags are made.`,
    }),
  ),
  fields: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Custom field values by name; null clears. A new name makes a field of the type of its first value.',
    }),
  ),
  status: Type.Optional(
    oneOf(IMPORTED_STATUSES, {
      description: 'Needed for new people where the organization uses double opt-in; you have their consent.',
    }),
  ),
})

export const importSubscribers = defineTool({
  name: 'import_subscribers',
  title: 'Import subscribers',
  description:
    'Creates or updates up to 500 subscribers in one call; for longer lists, POST a CSV file to /api/v2/imports. A row that is refused stands in errors and leaves the others alone; of two rows with one address, the later updates the earlier. Sends no confirmation mails, starts no workflows unless triggerWorkflows is true, and never overrides a bounce, a complaint or a ban.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  bodyLimit: 5_000_000,
  input: closed({
    subscribers: Type.Array(ImportElement, { maxItems: 500 }),
    ...switches,
  }),
  output: closed({
    imported: Type.Integer({ description: 'New people.' }),
    updated: Type.Integer({ description: 'Rows about people who were known.' }),
    failed: Type.Integer(),
    errors: Type.Array(closed({ index: Type.Integer(), email: Type.String(), error: Type.String() })),
  }),
  handler: (call, { subscribers, ...options }) => importRows(call, subscribers, options),
})

export const createImport = defineTool({
  name: 'create_import',
  title: 'Import a file',
  description:
    'Takes a CSV file of subscribers and imports it in the background; read its progress with get_import.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  listed: false,
  bodyLimit: IMPORT_BYTES,
  input: closed({
    mapping: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description:
          'Where columns go: {"E-mail": "email", "Plan": "fields.plan"}; left out, their names decide.',
      }),
    ),
    ...switches,
    status: Type.Optional(
      oneOf(IMPORTED_STATUSES, { description: 'Of every row that has no status of its own.' }),
    ),
    tags: Type.Optional(
      Type.Array(Type.String(), { maxItems: 20, description: 'Tags that every row gets beside its own.' }),
    ),
  }),
  output: Answer,
  receive: (call, input, body) => receiveFile(call, input, body),
  handler: async (call, _input, received: Received) => ({ import: await startImport(call, received) }),
})

export const getImport = defineTool({
  name: 'get_import',
  title: 'Get an import',
  description: 'Reads how far an import is, and why it failed if it did.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  listed: false,
  input: closed({ importId }),
  output: Answer,
  handler: async (call, input) => ({ import: presentImport(call, await findImport(call, input.importId)) }),
})

export const browseImports = defineTool({
  name: 'browse_imports',
  title: 'Browse imports',
  description: 'Lists imports of files, newest first, both ways.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  listed: false,
  input: closed(walkOf()),
  output: listOf('imports', SubscriberImport),
  handler: (call, input) => readPage(call, input),
})

export const cancelImport = defineTool({
  name: 'cancel_import',
  title: 'Cancel an import',
  description: 'Stops an import that is under way; rows that are applied stay.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  listed: false,
  input: closed({ importId }),
  output: Answer,
  handler: async (call, input) => ({ import: await cancel(call, input.importId) }),
})

export const listRejectedRows = defineTool({
  name: 'list_rejected_rows',
  title: 'List rejected rows',
  description: 'A page of the rows that an import refused, as CSV.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  listed: false,
  input: closed({
    importId,
    after: Type.Optional(Type.Integer({ description: 'next of the page before.' })),
  }),
  output: closed({ csv: Type.String(), next: nullable(Type.Integer()) }),
  handler: (call, input) => rejectedAsCsv(call, input.importId, input.after),
})
