import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Tag, TAG_LIMITS } from '../../schema/tag.ts'
import { defineTool } from '../catalogue/tool.ts'
import { findSubscriberIds } from '../domain/subscriber-records.ts'
import {
  createTag as create,
  deleteTag as remove,
  getOrCreateTags as getOrCreate,
  listTags as list,
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
