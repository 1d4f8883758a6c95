import Type from 'typebox'

import { closed, defaulted, listOf, nullable, oneOf, walkOf } from '../../schema/define.ts'
import { IMPORTED_STATUSES, SubscriberImport } from '../../schema/import.ts'
import { contactDetails, SUBSCRIBER_LIMITS } from '../../schema/subscriber.ts'
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
const importId = Type.String({ description: 'The id of the import (`imp_…`).' })

const switches = {
  resubscribe: defaulted(
    Type.Boolean({ description: 'Whether subscribers with the status UNSUBSCRIBED are subscribed again.' }),
    false,
  ),
  triggerWorkflows: defaulted(
    Type.Boolean({ description: 'Whether the import starts matching workflows.' }),
    false,
  ),
}

const ImportElement = closed({
  email: Type.String({ description: 'The email address. A subscriber who already has it is updated.' }),
  ...contactDetails,
  tags: Type.Optional(
    Type.Array(Type.String(), {
      description: `The names of up to ${SUBSCRIBER_LIMITS.tags} tags to add. Missing tags are created.`,
    }),
  ),
  fields: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Custom field values by field name. Null clears a value. A new name creates a field with the type of its first value.',
    }),
  ),
  status: Type.Optional(
    oneOf(IMPORTED_STATUSES, {
      description:
        'The status of a new subscriber. Required for new subscribers if the organization uses double opt-in: it declares that you have their consent.',
    }),
  ),
})

export const importSubscribers = defineTool({
  name: 'import_subscribers',
  title: 'Import subscribers',
  description:
    'Creates or updates up to 500 subscribers in one call. For longer lists, POST a CSV file to /api/v2/imports. A refused row is listed in `errors` and does not affect the others. If two rows have the same address, the later one updates the earlier one. Sends no confirmation emails, starts no workflows unless `triggerWorkflows` is true, and never overrides a bounce, a complaint or a ban. Returns the numbers of created, updated and failed rows.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  bodyLimit: 5_000_000,
  input: closed({
    subscribers: Type.Array(ImportElement, { maxItems: 500 }),
    ...switches,
  }),
  rows: 'subscribers',
  output: closed({
    imported: Type.Integer({ description: 'The number of subscribers that were created.' }),
    updated: Type.Integer({ description: 'The number of rows about subscribers who already existed.' }),
    failed: Type.Integer(),
    errors: Type.Array(closed({ index: Type.Integer(), email: Type.String(), error: Type.String() })),
  }),
  handler: (call, { subscribers, ...options }) => importRows(call, subscribers, options),
})

export const createImport = defineTool({
  name: 'create_import',
  title: 'Import a file',
  description:
    'Accepts a CSV file of subscribers and imports it in the background. Returns the import; `get_import` returns its progress.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  listed: false,
  bodyLimit: IMPORT_BYTES,
  input: closed({
    mapping: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description:
          'The target of each column, such as {"E-mail": "email", "Plan": "fields.plan"}. Defaults to targets that follow from the column names.',
      }),
    ),
    ...switches,
    status: Type.Optional(
      oneOf(IMPORTED_STATUSES, { description: 'The status for every row that does not have its own.' }),
    ),
    tags: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 20,
        description: 'Names of tags that are added to every row in addition to its own.',
      }),
    ),
  }),
  output: Answer,
  receive: (call, input, body) => receiveFile(call, input, body),
  handler: async (call, _input, received: Received) => ({ import: await startImport(call, received) }),
})

export const getImport = defineTool({
  name: 'get_import',
  title: 'Get an import',
  description: 'Returns an import with its progress and, if it failed, the reason.',
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
  description: 'Returns file imports, newest first. Page in either direction with `after` or `before`.',
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
  description: 'Cancels an import that is in progress. Rows that were already imported are kept.',
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
  description: 'Returns a page of the rows that an import refused, as CSV.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  listed: false,
  input: closed({
    importId,
    after: Type.Optional(Type.Integer({ description: '`next` of the previous page.' })),
  }),
  output: closed({ csv: Type.String(), next: nullable(Type.Integer()) }),
  handler: (call, input) => rejectedAsCsv(call, input.importId, input.after),
})
