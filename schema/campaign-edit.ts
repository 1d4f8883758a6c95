import Type, { type Static } from 'typebox'

import { closed, oneOf } from './define.ts'

/** The operations of `edit_campaign` on content (decisions, section 5). */
const OPERATION_TYPES = [
  'replace_text',
  'insert_node',
  'append_node',
  'prepend_node',
  'remove_node',
  'replace_node',
] as const
export type OperationType = (typeof OPERATION_TYPES)[number]

/** The most operations in one call. */
export const MAXIMUM_OPERATIONS = 100

const path = Type.Array(Type.Integer({ minimum: 0 }), {
  minItems: 1,
  maxItems: 100,
  description:
    'A path of positions from the top of the document down, each starting at 0: [2, 0] is the first node in the third block.',
})

const NodeTarget = closed(
  {
    nodeId: Type.Optional(Type.String({ minLength: 1 })),
    path: Type.Optional(path),
    type: Type.Optional(Type.String({ minLength: 1 })),
    index: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  {
    description:
      'A single node: {nodeId}, the value of its `id` attribute; {path}; or {type, index}, the node of that type at this index in document order, starting at 0.',
  },
)

const node = Type.Record(Type.String(), Type.Unknown(), { description: 'A complete document node.' })

/** An operation on the wire. `readOperations` checks which members belong to which type. */
export const WireOperation = closed({
  type: oneOf(OPERATION_TYPES),
  find: Type.Optional(
    Type.String({ minLength: 1, description: 'For `replace_text`: the exact text to find.' }),
  ),
  replace: Type.Optional(
    Type.String({ description: 'For `replace_text`: the replacement; it may be empty.' }),
  ),
  occurrence: Type.Optional(
    oneOf(['first', 'all'], {
      description: 'For `replace_text`: which occurrences to replace. Defaults to all.',
    }),
  ),
  target: Type.Optional(NodeTarget),
  node: Type.Optional(node),
  before: Type.Optional(NodeTarget),
  after: Type.Optional(NodeTarget),
  at: Type.Optional(path),
  parent: Type.Optional(NodeTarget),
})
export type WireOperation = Static<typeof WireOperation>

/** The result of an operation: how many texts it replaced, or 1 for the node it changed. */
export const AppliedOperation = closed({ index: Type.Integer(), matched: Type.Integer() })
export type AppliedOperation = Static<typeof AppliedOperation>
