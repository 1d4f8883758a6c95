import Type, { type Static } from 'typebox'

import { closed } from './define.ts'

/** Bounds of tags: characters of a name, and how much one bulk call may touch (contract, "Limits"). */
export const TAG_LIMITS = { name: 100, names: 100, bulkSubscribers: 100, bulkTags: 20 } as const

/** A tag on the wire, with how many subscribers carry it. */
export const Tag = closed({
  id: Type.String(),
  name: Type.String(),
  subscriberCount: Type.Integer(),
  createdAt: Type.String(),
})
export type Tag = Static<typeof Tag>
