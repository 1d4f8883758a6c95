import Type from 'typebox'

import { Filters } from '../../schema/audience.ts'
import { closed, limitOf, pageOf } from '../../schema/define.ts'
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

const segmentId = Type.String({ description: 'The id of a segment, seg_….' })
const name = Type.String({ description: `1 to ${SEGMENT_LIMITS.name} characters on one line.` })
const segmentOnly = closed({ segment: Segment })

export const listSegments = defineTool({
  name: 'list_segments',
  title: 'List segments',
  description: 'Lists saved segments with their filters, newest first. get_segment also counts who matches.',
  group: 'segments',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    query: Type.Optional(
      Type.String({ maxLength: 200, description: 'A part of the name, in any letter case.' }),
    ),
    limit: limitOf(20),
    cursor: Type.Optional(Type.String({ description: 'nextCursor of the page before.' })),
  }),
  output: pageOf('segments', Segment),
  handler: list,
})

export const getSegment = defineTool({
  name: 'get_segment',
  title: 'Get a segment',
  description: 'Reads a segment and counts, at this moment, the subscribers that match its filters.',
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
    'Saves filters under a name, for campaigns, workflows and other segments. It holds whoever matches when it is asked; without filters everybody.',
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
    'Changes the name, the filters (as a whole) or both. Everything that uses the segment uses the new filters from now on; nobody enters or leaves a workflow because of the edit itself.',
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
  description: 'Makes another segment with the same filters, to be changed on its own.',
  group: 'segments',
  effect: 'write',
  permission: 'subscribers',
  input: closed({
    segmentId,
    newName: Type.Optional(Type.String({ description: 'Without it, the name with "(copy)" after it.' })),
  }),
  output: segmentOnly,
  handler: async (call, input) => ({ segment: await duplicate(call, input.segmentId, input.newName) }),
})

export const deleteSegment = defineTool({
  name: 'delete_segment',
  title: 'Delete a segment',
  description:
    'Deletes a segment for good. Refused, naming them, while campaigns that are still to be sent, workflows or other segments use it. Needs a confirmation.',
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
