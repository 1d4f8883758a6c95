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
import { toCsv } from '../domain/subscribers/export.ts'
import {
  countByStatus,
  countSubscribers as countPeople,
  exportedSubscribers,
  listByTag,
  listSuppressed,
  querySubscribers as queryPeople,
} from '../domain/subscribers/queries.ts'

const query = Type.Optional(
  Type.String({ maxLength: 200, description: 'Text to find in the email address, the name or a tag name.' }),
)
const cursor = Type.Optional(
  Type.String({ description: '`nextCursor` of the previous page, for the same query.' }),
)
const question = {
  filters: defaulted(Filters, []),
  status: defaulted(
    oneOf([...SUBSCRIBER_STATUSES, 'ALL'], {
      description: 'Only subscribers with this status, in addition to `filters`.',
    }),
    'ALL',
  ),
  query,
}

export const querySubscribers = defineTool({
  name: 'query_subscribers',
  title: 'Query subscribers',
  description:
    'Returns the subscribers that match filters, a status and free text, newest first, with the selected fields. Call `get_available_filters` first to learn the filter language. Continue with `nextCursor`.',
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
        description: 'The fields to return for each subscriber.',
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
  description:
    'Counts the subscribers that `query_subscribers` would return for the same filters, status and text.',
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
  description:
    'Counts the subscribers in each status. `filters` and `query` limit which subscribers are counted.',
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
  description:
    'Returns the subscribers that have a tag, newest first. Send exactly one of `tagId` and `name`. Continue with `nextCursor`.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    tagId: Type.Optional(
      Type.String({ description: 'The id of the tag (`tag_…`). Send this or `name`, not both.' }),
    ),
    name: Type.Optional(
      Type.String({
        description: 'The name of the tag; letter case is ignored. Send this or `tagId`, not both.',
      }),
    ),
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
    'Describes the filter language for this organization: the fields with their operators, possible values and an example each, the limits, and a JSON Schema. Call it before writing filters.',
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
    'Returns the subscribers with status BOUNCED or COMPLAINED, newest first, with the reason. Continue with `nextCursor`. `list_suppressions` lists blocked addresses instead.',
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
    'Returns the newest subscribers with their tags and custom fields, either as JSON objects or as one CSV string that is safe to open in a spreadsheet.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    status: Type.Optional(oneOf(SUBSCRIBER_STATUSES)),
    tag: Type.Optional(
      Type.String({ description: 'Only subscribers with this tag. Letter case is ignored.' }),
    ),
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
