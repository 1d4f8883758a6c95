import Type, { type Static } from 'typebox'

import { closed } from './define.ts'

/** Limits of tags: characters of a name, and the subscribers and tags of one bulk call (contract, "Limits"). */
export const TAG_LIMITS = { name: 100, names: 100, bulkSubscribers: 100, bulkTags: 20 } as const

/** A tag with the number of subscribers who have it. */
export const Tag = closed({
  id: Type.String(),
  name: Type.String(),
  subscriberCount: Type.Integer(),
  createdAt: Type.String(),
})
export type Tag = Static<typeof Tag>
