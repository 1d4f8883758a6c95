import Type from 'typebox'

import { closed, cursor, defaulted, limitOf, listOf, oneOf, pageOf } from '../../schema/define.ts'
import {
  contactDetails,
  Subscriber,
  SUBSCRIBER_LIMITS,
  subscriberChoice,
  SubscriberEmail,
} from '../../schema/subscriber.ts'
import { DELIVERY_STATUSES, SUBSCRIBER_STATUSES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { listEmails } from '../domain/subscribers/history.ts'
import { listSubscribers as readPage } from '../domain/subscribers/queries.ts'
import { reactivateSubscriber as reactivate } from '../domain/subscribers/reactivation.ts'
import { getSubscriber as readOne, readSubscriber } from '../domain/subscribers/records.ts'
import {
  findSubscriber,
  summarizeUnsubscribe,
  unsubscribeSubscriber,
  updateSubscriber as update,
  upsertSubscriber,
} from '../domain/subscribers/subscribers.ts'

const Answer = closed({ subscriber: Subscriber })

const details = {
  ...contactDetails,
  fields: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Custom field values by field name: text, a number, true or false, or an ISO 8601 date. Null clears a value. A new name creates a field with the type of its value.',
    }),
  ),
  ipAddress: Type.Optional(
    Type.String({ description: 'The IPv4 or IPv6 address from which the person signed up.' }),
  ),
  country: Type.Optional(
    Type.String({ description: 'The ISO 3166-1 alpha-2 country code in capital letters, such as FR.' }),
  ),
}

const tagNames = Type.Array(Type.String(), {
  maxItems: SUBSCRIBER_LIMITS.tags,
  description:
    'The names of tags to add. Missing tags are created. With `replaceTags`, they replace all current tags.',
})

export const listSubscribers = defineTool({
  name: 'list_subscribers',
  title: 'List subscribers',
  description:
    'Returns subscribers, newest first, optionally only those with a status, with a tag, or with a text in the email address, the name or a tag name. Continue with `nextCursor`.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    limit: limitOf(50, 500),
    status: defaulted(oneOf(['all', ...SUBSCRIBER_STATUSES]), 'all'),
    tag: Type.Optional(
      Type.String({ description: 'Only subscribers with this tag. Letter case is ignored.' }),
    ),
    query: Type.Optional(
      Type.String({
        maxLength: 200,
        description: 'Text to find in the email address, the name or a tag name.',
      }),
    ),
    cursor,
  }),
  output: pageOf('subscribers', Subscriber),
  handler: (call, input) => readPage(call, input),
})

export const getSubscriber = defineTool({
  name: 'get_subscriber',
  title: 'Get a subscriber',
  description:
    'Returns one subscriber with tags, custom fields, revenue, and numbers of emails, opens and clicks. Send exactly one of `subscriberId` and `email`.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed(subscriberChoice),
  output: Answer,
  handler: async (call, input) => ({ subscriber: await readOne(call, input) }),
})

export const addSubscriber = defineTool({
  name: 'add_subscriber',
  title: 'Add a subscriber',
  description:
    'Creates a subscriber, or updates the one with this email address. A new subscriber is SUBSCRIBED, or, if the organization uses double opt-in and `skipDoubleOptIn` is false, PENDING_CONFIRMATION: then a confirmation email is sent (when they are added again, at most once an hour), and its link subscribes them within seven days. Starts matching workflows unless `triggerWorkflows` is false. Returns the subscriber.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    email: Type.String({
      description: 'The email address. Addresses that differ only in letter case are the same subscriber.',
    }),
    ...details,
    tags: defaulted(tagNames, []),
    replaceTags: defaulted(
      Type.Boolean({ description: 'Whether to remove all tags that are not in `tags`.' }),
      false,
    ),
    resubscribe: defaulted(
      Type.Boolean({ description: 'Whether somebody UNSUBSCRIBED is subscribed again.' }),
      true,
    ),
    triggerWorkflows: defaulted(
      Type.Boolean({ description: 'Whether this change can start workflows.' }),
      true,
    ),
    skipDoubleOptIn: defaulted(
      Type.Boolean({
        description:
          'Whether to subscribe without a confirmation email. Does not by itself subscribe somebody UNSUBSCRIBED again.',
      }),
      false,
    ),
  }),
  output: closed({
    subscriber: Subscriber,
    created: Type.Boolean({
      description: 'Whether a new subscriber was created. False if the email address was already known.',
    }),
  }),
  handler: async (call, input) => {
    const { id, created } = await upsertSubscriber(call, input)
    return { subscriber: await readSubscriber(call, id), created }
  },
})

export const updateSubscriber = defineTool({
  name: 'update_subscriber',
  title: 'Update a subscriber',
  description:
    'Changes the given data of a subscriber; omitted fields keep their values. Somebody UNSUBSCRIBED is only subscribed again with `resubscribe: true`. Starts matching workflows unless `triggerWorkflows` is false. Returns the subscriber.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    subscriber: Type.String({ description: 'The id (`sub_…`) or the email address of the subscriber.' }),
    email: Type.Optional(
      Type.String({ description: 'The new email address. No other subscriber may have it.' }),
    ),
    ...details,
    tags: Type.Optional(tagNames),
    replaceTags: Type.Optional(
      Type.Boolean({ description: 'Whether to remove all tags that are not in `tags`.' }),
    ),
    resubscribe: Type.Optional(
      Type.Boolean({ description: 'Whether somebody UNSUBSCRIBED is subscribed again.' }),
    ),
    triggerWorkflows: Type.Optional(
      Type.Boolean({ description: 'Whether this change can start workflows. Defaults to true.' }),
    ),
    skipDoubleOptIn: defaulted(
      Type.Boolean({
        description:
          'Whether to subscribe somebody who has not confirmed yet. No evidence of consent is recorded.',
      }),
      false,
    ),
  }),
  output: Answer,
  handler: async (call, { subscriber, ...changes }) => {
    const { id } = await update(call, subscriber, changes)
    return { subscriber: await readSubscriber(call, id) }
  },
})

export const unsubscribe = defineTool({
  name: 'unsubscribe',
  title: 'Unsubscribe',
  description:
    'Unsubscribes a subscriber, whatever their status. Marketing email to them stops, and their runs end in workflows that exit on unsubscribe. Returns the subscriber. Requires a confirmation code.',
  group: 'subscribers',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({
    ...subscriberChoice,
    reason: Type.Optional(
      Type.String({ maxLength: 500, description: 'The reason, which is kept with the event.' }),
    ),
  }),
  output: Answer,
  summarize: (call, input) => summarizeUnsubscribe(call, input),
  handler: async (call, { reason, ...input }) => {
    const { id } = await findSubscriber(call, input)
    await unsubscribeSubscriber(call, id, { reason, source: 'api' })
    return { subscriber: await readSubscriber(call, id) }
  },
})

export const reactivateSubscriber = defineTool({
  name: 'reactivate_subscriber',
  title: 'Reactivate a subscriber',
  description:
    'Subscribes somebody BOUNCED, COMPLAINED or UNSUBSCRIBED again and removes the suppressions of their address. After a hard bounce (the mailbox does not exist), it is refused unless `force` is true. A MANUAL suppression is never removed. Returns the subscriber.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    subscriberId: Type.String({ description: 'The id of the subscriber (`sub_…`).' }),
    force: Type.Optional(Type.Boolean({ description: 'Whether to reactivate even after a hard bounce.' })),
  }),
  output: Answer,
  handler: async (call, input) => ({ subscriber: await readSubscriber(call, await reactivate(call, input)) }),
})

export const getSubscriberEmails = defineTool({
  name: 'get_subscriber_emails',
  title: "Get a subscriber's emails",
  description:
    'Returns the emails of one subscriber, newest first, with the campaign name, the subject, the delivery status and the last event of each.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    ...subscriberChoice,
    status: Type.Optional(oneOf(DELIVERY_STATUSES)),
    limit: limitOf(20),
  }),
  output: listOf('emails', SubscriberEmail),
  handler: (call, { status, limit, ...input }) => listEmails(call, input, { status, limit }),
})
