import Type from 'typebox'

import { AvailableFilters } from '../../schema/audience-description.ts'
import { Filters } from '../../schema/audience.ts'
import { closed, defaulted, limitOf, oneOf, pageOf } from '../../schema/define.ts'
import {
  ExportedSubscriber,
  QUERY_FIELDS,
  SelectedSubscriber,
  StatusCounts,
  Subscriber,
  SuppressedSubscriber,
} from '../../schema/subscriber.ts'
import { SUBSCRIBER_STATUSES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { describeFilters } from '../domain/audience/describe.ts'
import { toCsv } from '../domain/subscriber-export.ts'
import {
  countByStatus,
  countSubscribers as countPeople,
  exportedSubscribers,
  listByTag,
  listSuppressed,
  querySubscribers as queryPeople,
} from '../domain/subscriber-queries.ts'

const query = Type.Optional(
  Type.String({ maxLength: 200, description: 'A part of the email, the name or the name of a tag.' }),
)
const cursor = Type.Optional(Type.String({ description: 'nextCursor of the page before, same query.' }))
const question = {
  filters: defaulted(Filters, []),
  status: defaulted(
    oneOf([...SUBSCRIBER_STATUSES, 'ALL'], { description: 'Applies in addition to filters.' }),
    'ALL',
  ),
  query,
}

export const querySubscribers = defineTool({
  name: 'query_subscribers',
  title: 'Query subscribers',
  description:
    'Finds subscribers by composed filters, status and free text, newest first, with the fields that are asked for. get_available_filters says what filters can be. Go on with nextCursor.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    ...question,
    limit: limitOf(50, 500),
    cursor,
    fields: defaulted(
      Type.Array(oneOf(QUERY_FIELDS), {
        minItems: 1,
        uniqueItems: true,
        description: 'What to return of each.',
      }),
      ['id', 'email', 'name', 'status', 'createdAt', 'tags'],
    ),
  }),
  output: pageOf('subscribers', SelectedSubscriber),
  handler: (call, input) => queryPeople(call, input),
})

export const countSubscribers = defineTool({
  name: 'count_subscribers',
  title: 'Count subscribers',
  description: 'Counts the subscribers that query_subscribers would find for the same question.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed(question),
  output: closed({ total: Type.Integer() }),
  handler: async (call, input) => ({ total: await countPeople(call, input) }),
})

export const countSubscribersByStatus = defineTool({
  name: 'count_subscribers_by_status',
  title: 'Count subscribers by status',
  description: 'Counts subscribers by status; filters and free text narrow who is counted.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({ filters: defaulted(Filters, []), query }),
  output: closed({ total: Type.Integer(), byStatus: StatusCounts }),
  handler: async (call, input) => {
    const byStatus = await countByStatus(call, input)
    return { total: Object.values(byStatus).reduce((sum, count) => sum + count, 0), byStatus }
  },
})

export const getSubscribersByTag = defineTool({
  name: 'get_subscribers_by_tag',
  title: 'Get subscribers by tag',
  description: 'Lists the subscribers that have a tag, newest first. Go on with nextCursor.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    tagId: Type.Optional(Type.String({ description: 'The id (tag_…). Send this or name, not both.' })),
    name: Type.Optional(Type.String({ description: 'The name, whatever its letter case.' })),
    limit: limitOf(50, 500),
    cursor,
  }),
  output: pageOf('subscribers', Subscriber),
  handler: (call, input) => listByTag(call, input),
})

export const getAvailableFilters = defineTool({
  name: 'get_available_filters',
  title: 'Get available filters',
  description:
    'Says what filters can be made of: the fields of this organization with their operators, values and an example each, the limits, and a JSON Schema.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({}),
  output: AvailableFilters,
  handler: (call) => describeFilters(call),
})

export const listSuppressedSubscribers = defineTool({
  name: 'list_suppressed_subscribers',
  title: 'List suppressed subscribers',
  description:
    'Lists subscribers who bounced or complained, newest first, with the reason. Go on with nextCursor.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    statuses: defaulted(Type.Array(oneOf(['BOUNCED', 'COMPLAINED']), { minItems: 1, uniqueItems: true }), [
      'BOUNCED',
      'COMPLAINED',
    ]),
    limit: limitOf(50, 500),
    cursor,
  }),
  output: pageOf('subscribers', SuppressedSubscriber),
  handler: (call, input) => listSuppressed(call, input),
})

export const exportSubscribers = defineTool({
  name: 'export_subscribers',
  title: 'Export subscribers',
  description:
    'Exports the newest subscribers with tags and custom fields as JSON objects, or as a CSV string that is safe to open in a spreadsheet.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    status: Type.Optional(oneOf(SUBSCRIBER_STATUSES)),
    tag: Type.Optional(Type.String({ description: 'A tag name, whatever its letter case.' })),
    format: defaulted(oneOf(['json', 'csv']), 'json'),
    limit: limitOf(1_000, 10_000),
  }),
  output: closed({
    subscribers: Type.Optional(Type.Array(ExportedSubscriber)),
    csv: Type.Optional(Type.String()),
  }),
  handler: async (call, { format, ...asked }) => {
    const subscribers = await exportedSubscribers(call, asked)
    return format === 'json' ? { subscribers } : { csv: await toCsv(call, subscribers) }
  },
})
