import Type from 'typebox'

import { Filters } from '../../schema/audience.ts'
import { closed, cursor, limitOf, pageOf } from '../../schema/define.ts'
import { CountedSegment, Segment, SEGMENT_LIMITS } from '../../schema/segment.ts'
import { defineTool } from '../catalogue/tool.ts'
import {
  createSegment as create,
  deleteSegment as remove,
  duplicateSegment as duplicate,
  getSegment as get,
  listSegments as list,
  summarizeSegmentDeletion,
  updateSegment as update,
} from '../domain/segments/records.ts'

const segmentId = Type.String({ description: 'The id of a segment (`seg_…`).' })
const name = Type.String({ description: `The name, 1 to ${SEGMENT_LIMITS.name} characters on one line.` })
const segmentOnly = closed({ segment: Segment })

export const listSegments = defineTool({
  name: 'list_segments',
  title: 'List segments',
  description:
    'Returns saved segments with their filters, newest first. `get_segment` also counts the matching subscribers. Continue with `nextCursor`.',
  group: 'segments',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    query: Type.Optional(
      Type.String({ maxLength: 200, description: 'Text to find in the name; letter case is ignored.' }),
    ),
    limit: limitOf(20),
    cursor,
  }),
  output: pageOf('segments', Segment),
  handler: list,
})

export const getSegment = defineTool({
  name: 'get_segment',
  title: 'Get a segment',
  description: 'Returns a segment with the number of subscribers that match its filters now.',
  group: 'segments',
  effect: 'read',
  permission: 'subscribers',
  input: closed({ segmentId }),
  output: closed({ segment: CountedSegment }),
  handler: async (call, input) => ({ segment: await get(call, input.segmentId) }),
})

export const createSegment = defineTool({
  name: 'create_segment',
  title: 'Create a segment',
  description:
    'Saves filters under a name, for use in campaigns, workflows and other segments. Membership is computed whenever the segment is used. An empty list of filters matches every subscriber. Returns the segment.',
  group: 'segments',
  effect: 'write',
  permission: 'subscribers',
  input: closed({ name, filters: Filters }),
  output: segmentOnly,
  handler: async (call, input) => ({ segment: await create(call, input.name, input.filters) }),
})

export const updateSegment = defineTool({
  name: 'update_segment',
  title: 'Update a segment',
  description:
    'Changes the name of a segment, replaces its filters, or both. Everything that uses the segment uses the new filters from then on. The change itself starts no workflow and ends no run. Returns the segment.',
  group: 'segments',
  effect: 'write',
  permission: 'subscribers',
  input: closed({ segmentId, name: Type.Optional(name), filters: Type.Optional(Filters) }),
  output: segmentOnly,
  handler: async (call, { segmentId: id, ...change }) => ({ segment: await update(call, id, change) }),
})

export const duplicateSegment = defineTool({
  name: 'duplicate_segment',
  title: 'Duplicate a segment',
  description:
    'Creates a copy of a segment with the same filters, which can be changed independently. Returns the copy.',
  group: 'segments',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    segmentId,
    newName: Type.Optional(
      Type.String({
        description: 'The name of the copy. Defaults to the original name followed by "(copy)".',
      }),
    ),
  }),
  output: segmentOnly,
  handler: async (call, input) => ({ segment: await duplicate(call, input.segmentId, input.newName) }),
})

export const deleteSegment = defineTool({
  name: 'delete_segment',
  title: 'Delete a segment',
  description:
    'Permanently deletes a segment. Refused while workflows, other segments, or campaigns that are not sent yet use it; the error names them. Requires a confirmation code.',
  group: 'segments',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({ segmentId }),
  output: closed({ segmentId: Type.String() }),
  summarize: (call, input) => summarizeSegmentDeletion(call, input.segmentId),
  handler: async (call, input) => {
    await remove(call, input.segmentId)
    return { segmentId: input.segmentId }
  },
})
