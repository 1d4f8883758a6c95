import Type, { type Static } from 'typebox'

import { Filters } from './audience.ts'
import { closed, nullable } from './define.ts'

/** Limits of a segment's name, in characters. */
export const SEGMENT_LIMITS = { name: 200 } as const

const members = {
  id: Type.String(),
  name: Type.String(),
  filters: Filters,
  createdAt: Type.String(),
  updatedAt: Type.String(),
}

/** A saved audience. Its members are the subscribers that match its filters at the time of the query. */
export const Segment = closed(members)
export type Segment = Static<typeof Segment>

/** A segment with the number of subscribers that match it now. */
export const CountedSegment = closed({
  ...members,
  subscriberCount: nullable(
    Type.Integer({
      description: 'The number of matching subscribers. Null if the filters cannot be evaluated.',
    }),
  ),
  countedAt: Type.String(),
  problem: nullable(
    Type.String({
      description:
        'The reason why the subscribers cannot be counted: the filters refer to something that was deleted.',
    }),
  ),
})
export type CountedSegment = Static<typeof CountedSegment>
