import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Tag, TAG_LIMITS } from '../../schema/tag.ts'
import { defineTool } from '../catalogue/tool.ts'
import {
  createTag as create,
  deleteTag as remove,
  getOrCreateTags as getOrCreate,
  getTag as read,
  listTags as list,
  renameTag as rename,
  summarizeTagDeletion,
} from '../domain/subscribers/tag-records.ts'
import { encodeId } from '../ids.ts'

export const listTags = defineTool({
  name: 'list_tags',
  title: 'List tags',
  description: 'Returns all tags in alphabetical order with the number of subscribers that have each.',
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
    'Creates a tag and returns it. A name that is in use, in any letter case, is refused; `get_or_create_tags` returns the existing tag instead.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    name: Type.String({ description: `The name of the tag, 1 to ${TAG_LIMITS.name} characters.` }),
  }),
  output: closed({ tag: Tag }),
  handler: async (call, { name }) => ({ tag: await create(call, name) }),
})

export const deleteTag = defineTool({
  name: 'delete_tag',
  title: 'Delete a tag',
  description:
    'Deletes a tag and removes it from all subscribers. This starts no workflows. Send exactly one of `tagId` and `name`. Requires a confirmation code.',
  group: 'tags',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({
    tagId: Type.Optional(
      Type.String({ description: 'The id of the tag (`tag_…`). Send this or `name`, not both.' }),
    ),
    name: Type.Optional(Type.String({ description: 'The name of the tag. Send this or `tagId`, not both.' })),
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
  description: 'Returns tags by name and creates the missing ones.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    names: Type.Array(Type.String(), {
      minItems: 1,
      maxItems: TAG_LIMITS.names,
      description: 'The names of the tags.',
    }),
  }),
  output: closed({
    tags: Type.Array(Tag),
    created: Type.Integer({ description: 'The number of tags that were created.' }),
  }),
  handler: (call, { names }) => getOrCreate(call, names),
})

const tag = Type.String({ description: 'The id (`tag_…`) or the name of the tag; letter case is ignored.' })

export const getTag = defineTool({
  name: 'get_tag',
  title: 'Get a tag',
  description: 'Returns one tag by id or name, with the number of subscribers that have it.',
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
    'Renames a tag; subscribers who have it keep it. Refused while a workflow, a segment or a campaign uses the tag by its name. Returns the tag.',
  group: 'tags',
  effect: 'write',
  permission: 'subscribers',
  listed: false,
  input: closed({
    tag,
    name: Type.String({ description: `The name of the tag, 1 to ${TAG_LIMITS.name} characters.` }),
  }),
  output: closed({ tag: Tag }),
  handler: async (call, input) => ({ tag: await rename(call, input.tag, input.name) }),
})
