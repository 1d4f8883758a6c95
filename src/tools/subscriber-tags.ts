import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Subscriber, SUBSCRIBER_LIMITS, subscriberChoice } from '../../schema/subscriber.ts'
import { TAG_LIMITS } from '../../schema/tag.ts'
import { defineTool } from '../catalogue/tool.ts'
import { findSubscriber, findSubscriberIds, readSubscriber } from '../domain/subscribers/records.ts'
import { addTags, removeTags } from '../domain/subscribers/tags.ts'

const bulkInput = {
  subscriberIds: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: TAG_LIMITS.bulkSubscribers,
    description: 'The ids of the subscribers (`sub_…`).',
  }),
  tagNames: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: TAG_LIMITS.bulkTags,
    description: 'The names of the tags; letter case is ignored.',
  }),
}

export const bulkAddTags = defineTool({
  name: 'bulk_add_tags',
  title: 'Add tags to subscribers',
  description:
    'Adds tags to subscribers and creates missing tags, all or none. Every newly added tag records one TAG_ADDED event, which can start workflows.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  input: closed(bulkInput),
  output: closed({
    added: Type.Integer({ description: 'The number of tags newly added, summed over all subscribers.' }),
  }),
  handler: async (call, { subscriberIds, tagNames }) => {
    const ids = await findSubscriberIds(call, subscriberIds)
    return { added: (await addTags(call, ids, tagNames)).length }
  },
})

export const bulkRemoveTags = defineTool({
  name: 'bulk_remove_tags',
  title: 'Remove tags from subscribers',
  description:
    'Removes tags from subscribers, all or none. Every removed tag records one TAG_REMOVED event, which can start workflows.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  input: closed(bulkInput),
  output: closed({
    removed: Type.Integer({ description: 'The number of tags removed, summed over all subscribers.' }),
  }),
  handler: async (call, { subscriberIds, tagNames }) => {
    const ids = await findSubscriberIds(call, subscriberIds)
    return { removed: (await removeTags(call, ids, tagNames)).length }
  },
})

const ofOne = {
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  listed: false,
  input: closed({
    ...subscriberChoice,
    tags: Type.Array(Type.String(), {
      minItems: 1,
      maxItems: SUBSCRIBER_LIMITS.tags,
      description: 'The names of the tags; letter case is ignored.',
    }),
  }),
  output: closed({ subscriber: Subscriber }),
} as const

export const addSubscriberTags = defineTool({
  ...ofOne,
  name: 'add_subscriber_tags',
  title: 'Add tags to a subscriber',
  description:
    'Adds tags to one subscriber and creates missing tags, as `bulk_add_tags` does for many. Returns the subscriber.',
  handler: async (call, { tags, ...choice }) => {
    const { id } = await findSubscriber(call, choice)
    await addTags(call, [id], tags, { path: 'tags' })
    return { subscriber: await readSubscriber(call, id) }
  },
})

export const removeSubscriberTags = defineTool({
  ...ofOne,
  name: 'remove_subscriber_tags',
  title: 'Remove tags from a subscriber',
  description:
    'Removes tags from one subscriber, as `bulk_remove_tags` does for many. Returns the subscriber.',
  handler: async (call, { tags, ...choice }) => {
    const { id } = await findSubscriber(call, choice)
    await removeTags(call, [id], tags, { path: 'tags' })
    return { subscriber: await readSubscriber(call, id) }
  },
})
