import Type from 'typebox'

import { closed, defaulted, limitOf, listOf, oneOf, pageOf } from '../../schema/define.ts'
import { Subscriber, SUBSCRIBER_LIMITS, subscriberChoice, SubscriberEmail } from '../../schema/subscriber.ts'
import { DELIVERY_STATUSES, SUBSCRIBER_STATUSES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { reactivateSubscriber as reactivate } from '../domain/reactivation.ts'
import { listEmails } from '../domain/subscriber-history.ts'
import { listSubscribers as readPage } from '../domain/subscriber-queries.ts'
import { getSubscriber as readOne, readSubscriber } from '../domain/subscriber-records.ts'
import {
  findSubscriber,
  summarizeUnsubscribe,
  unsubscribeSubscriber,
  updateSubscriber as update,
  upsertSubscriber,
} from '../domain/subscribers.ts'

const Answer = closed({ subscriber: Subscriber })

const details = {
  name: Type.Optional(
    Type.String({ description: `Up to ${SUBSCRIBER_LIMITS.name} characters; empty clears.` }),
  ),
  phone: Type.Optional(
    Type.String({ description: `Up to ${SUBSCRIBER_LIMITS.phone} characters; empty clears.` }),
  ),
  fields: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Custom field values by name: text, number, true or false, or an ISO 8601 date; null clears. A new name makes a field of the type of its value.',
    }),
  ),
  ipAddress: Type.Optional(Type.String({ description: 'The IPv4 or IPv6 address they signed up from.' })),
  country: Type.Optional(Type.String({ description: 'ISO 3166-1 alpha-2 in capitals, such as FR.' })),
}

const tagNames = Type.Array(Type.String(), {
  maxItems: SUBSCRIBER_LIMITS.tags,
  description: 'Tag names to add; missing tags are made. With replaceTags they replace the ones there are.',
})

export const listSubscribers = defineTool({
  name: 'list_subscribers',
  title: 'List subscribers',
  description:
    'Lists subscribers, newest first, by status, tag, or a part of the email, the name or a tag name. Go on with nextCursor.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    limit: limitOf(50, 500),
    status: defaulted(oneOf(['all', ...SUBSCRIBER_STATUSES]), 'all'),
    tag: Type.Optional(Type.String({ description: 'A tag name, whatever its letter case.' })),
    query: Type.Optional(
      Type.String({ maxLength: 200, description: 'A part of the email, the name or a tag name.' }),
    ),
    cursor: Type.Optional(Type.String({ description: 'nextCursor of the page before.' })),
  }),
  output: pageOf('subscribers', Subscriber),
  handler: (call, input) => readPage(call, input),
})

export const getSubscriber = defineTool({
  name: 'get_subscriber',
  title: 'Get a subscriber',
  description: 'Reads one subscriber by id or email, with tags, custom fields and numbers.',
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
    'Creates a subscriber, or changes the one with this email. A newcomer is SUBSCRIBED, or PENDING_CONFIRMATION where the organization uses double opt-in and skipDoubleOptIn is false: they get the confirmation email, again at most once an hour when added again, and its link subscribes them within seven days. Starts matching workflows unless triggerWorkflows is false.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    email: Type.String({ description: 'The email address; letter case does not tell people apart.' }),
    ...details,
    tags: defaulted(tagNames, []),
    replaceTags: defaulted(Type.Boolean({ description: 'Take away the tags that are not named.' }), false),
    resubscribe: defaulted(Type.Boolean({ description: 'Subscribe somebody UNSUBSCRIBED again.' }), true),
    triggerWorkflows: defaulted(Type.Boolean({ description: 'Let workflows start from this change.' }), true),
    skipDoubleOptIn: defaulted(
      Type.Boolean({ description: 'Subscribe without a confirmation; does not resubscribe by itself.' }),
      false,
    ),
  }),
  output: closed({
    subscriber: Subscriber,
    created: Type.Boolean({ description: 'false where the email was known already.' }),
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
    'Changes what is sent and leaves the rest. Subscribes somebody UNSUBSCRIBED only with resubscribe: true. Starts matching workflows unless triggerWorkflows is false.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    subscriber: Type.String({ description: 'The id (sub_…) or the email address.' }),
    email: Type.Optional(Type.String({ description: 'A new email address that nobody else has.' })),
    ...details,
    tags: Type.Optional(tagNames),
    replaceTags: Type.Optional(Type.Boolean({ description: 'Take away the tags that are not named.' })),
    resubscribe: Type.Optional(Type.Boolean({ description: 'Subscribe somebody UNSUBSCRIBED again.' })),
    triggerWorkflows: Type.Optional(Type.Boolean({ description: 'false keeps workflows from starting.' })),
    skipDoubleOptIn: defaulted(
      Type.Boolean({ description: 'Subscribe somebody who has not confirmed yet; no evidence is kept.' }),
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
    'Ends the consent of a subscriber, whatever the status: no more marketing email, and workflows that leave on unsubscribe end. Asks for a confirmation code.',
  group: 'subscribers',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({
    ...subscriberChoice,
    reason: Type.Optional(Type.String({ maxLength: 500, description: 'Why; kept with the event.' })),
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
    'Subscribes somebody BOUNCED, COMPLAINED or UNSUBSCRIBED again and lifts what blocks their address. A hard bounce (the mailbox does not exist) is refused unless force is true; a suppression by hand is never lifted.',
  group: 'subscribers',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    subscriberId: Type.String({ description: 'The id (sub_…).' }),
    force: Type.Optional(Type.Boolean({ description: 'Also after a hard bounce.' })),
  }),
  output: Answer,
  handler: async (call, input) => ({ subscriber: await readSubscriber(call, await reactivate(call, input)) }),
})

export const getSubscriberEmails = defineTool({
  name: 'get_subscriber_emails',
  title: "Get a subscriber's emails",
  description:
    'Lists the emails of one subscriber, newest first, with campaign name, subject, delivery status and what last happened to each.',
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
