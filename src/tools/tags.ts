import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Subscriber, SUBSCRIBER_LIMITS, subscriberChoice } from '../../schema/subscriber.ts'
import { Tag, TAG_LIMITS } from '../../schema/tag.ts'
import { defineTool } from '../catalogue/tool.ts'
import { findSubscriber, findSubscriberIds, readSubscriber } from '../domain/subscriber-records.ts'
import {
  createTag as create,
  deleteTag as remove,
  getOrCreateTags as getOrCreate,
  getTag as read,
  listTags as list,
  renameTag as rename,
  summarizeTagDeletion,
} from '../domain/tag-records.ts'
import { addTags, removeTags } from '../domain/tags.ts'
import { encodeId } from '../ids.ts'

const bulkInput = {
  subscriberIds: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: TAG_LIMITS.bulkSubscribers,
    description: 'Ids of subscribers (sub_…).',
  }),
  tagNames: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: TAG_LIMITS.bulkTags,
    description: 'Tag names, whatever their letter case.',
  }),
}

export const listTags = defineTool({
  name: 'list_tags',
  title: 'List tags',
  description: 'Lists every tag in alphabetical order with the number of subscribers that have it.',
  group: 'tags',
  effect: 'read',
  permission: 'subscribers',
  input: closed({}),
  output: closed({ tags: Type.Array(Tag) }),
  handler: async (call) => ({ tags: await list(call) }),
})

export const createTag = defineTool({
  name: 'create_tag',
  title: 'Create a tag',
  description:
    'Makes a tag. A name in use, whatever its letter case, is refused; get_or_create_tags is not so strict.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  input: closed({ name: Type.String({ description: `1 to ${TAG_LIMITS.name} characters.` }) }),
  output: closed({ tag: Tag }),
  handler: async (call, { name }) => ({ tag: await create(call, name) }),
})

export const deleteTag = defineTool({
  name: 'delete_tag',
  title: 'Delete a tag',
  description:
    'Deletes a tag, by id or name, and takes it from every subscriber. No workflow starts because of it. Asks for a confirmation code.',
  group: 'tags',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({
    tagId: Type.Optional(Type.String({ description: 'The id (tag_…). Send this or name, not both.' })),
    name: Type.Optional(Type.String({ description: 'The name. Send this or tagId, not both.' })),
  }),
  output: closed({ tagId: Type.String(), name: Type.String(), subscriberCount: Type.Integer() }),
  summarize: (call, input) => summarizeTagDeletion(call, input),
  handler: async (call, input) => {
    const { tag, removed } = await remove(call, input)
    return { tagId: encodeId('tag', tag.id), name: tag.name, subscriberCount: removed }
  },
})

export const getOrCreateTags = defineTool({
  name: 'get_or_create_tags',
  title: 'Get or create tags',
  description: 'Reads tags by name and makes the missing ones.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    names: Type.Array(Type.String(), { minItems: 1, maxItems: TAG_LIMITS.names, description: 'Tag names.' }),
  }),
  output: closed({ tags: Type.Array(Tag), created: Type.Integer({ description: 'How many were made.' }) }),
  handler: (call, { names }) => getOrCreate(call, names),
})

export const bulkAddTags = defineTool({
  name: 'bulk_add_tags',
  title: 'Add tags to subscribers',
  description:
    'Adds tags to subscribers, making missing tags. Each tag that somebody did not have is one TAG_ADDED event and may start workflows. All or nothing.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  input: closed(bulkInput),
  output: closed({
    added: Type.Integer({ description: 'How many tags were newly given, over all subscribers.' }),
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
    'Takes tags from subscribers. Each tag that somebody had is one TAG_REMOVED event and may start workflows. All or nothing.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  input: closed(bulkInput),
  output: closed({
    removed: Type.Integer({ description: 'How many tags were taken, over all subscribers.' }),
  }),
  handler: async (call, { subscriberIds, tagNames }) => {
    const ids = await findSubscriberIds(call, subscriberIds)
    return { removed: (await removeTags(call, ids, tagNames)).length }
  },
})

const tag = Type.String({ description: 'The id (tag_…) or the name, whatever its letter case.' })

export const getTag = defineTool({
  name: 'get_tag',
  title: 'Get a tag',
  description: 'Reads one tag by id or name, with the number of subscribers that have it.',
  group: 'tags',
  effect: 'read',
  permission: 'subscribers',
  listed: false,
  input: closed({ tag }),
  output: closed({ tag: Tag }),
  handler: async (call, input) => ({ tag: await read(call, input.tag) }),
})

export const renameTag = defineTool({
  name: 'rename_tag',
  title: 'Rename a tag',
  description:
    'Gives a tag another name; everybody who has it keeps it. Refused while a workflow, a segment or a campaign names it.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  listed: false,
  input: closed({ tag, name: Type.String({ description: `1 to ${TAG_LIMITS.name} characters.` }) }),
  output: closed({ tag: Tag }),
  handler: async (call, input) => ({ tag: await rename(call, input.tag, input.name) }),
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
      description: 'Tag names, whatever their letter case.',
    }),
  }),
  output: closed({ subscriber: Subscriber }),
} as const

export const addSubscriberTags = defineTool({
  ...ofOne,
  name: 'add_subscriber_tags',
  title: 'Add tags to a subscriber',
  description: 'Adds tags to one subscriber as bulk_add_tags does to many, making missing tags.',
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
  description: 'Takes tags from one subscriber as bulk_remove_tags does from many.',
  handler: async (call, { tags, ...choice }) => {
    const { id } = await findSubscriber(call, choice)
    await removeTags(call, [id], tags, { path: 'tags' })
    return { subscriber: await readSubscriber(call, id) }
  },
})
