import Type from 'typebox'

import { closed, defaulted, oneOf } from '../../schema/define.ts'
import { SUBSCRIBER_LIMITS } from '../../schema/subscriber.ts'
import { defineTool } from '../catalogue/tool.ts'
import { importRows } from '../domain/imports/import-rows.ts'
import { IMPORTED_STATUSES } from '../domain/imports/read-rows.ts'

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
    resubscribe: defaulted(
      Type.Boolean({ description: 'Subscribe those again who are UNSUBSCRIBED.' }),
      false,
    ),
    triggerWorkflows: defaulted(Type.Boolean({ description: 'Start matching workflows.' }), false),
  }),
  output: closed({
    imported: Type.Integer({ description: 'New people.' }),
    updated: Type.Integer({ description: 'Rows about people who were known.' }),
    failed: Type.Integer(),
    errors: Type.Array(closed({ index: Type.Integer(), email: Type.String(), error: Type.String() })),
  }),
  handler: (call, { subscribers, ...options }) => importRows(call, subscribers, options),
})
