import Type, { type Static } from 'typebox'

import { Duration } from './automation-parts.ts'
import { closed, nullable, oneOf } from './define.ts'
import { WORKFLOW_STATUSES } from './values.ts'

/** Bounds of a group: characters of its name, and how many an organization has. */
export const GROUP_LIMITS = { name: 200, groups: 200 } as const

/** What becomes of a subscriber who would enter a second workflow of the group. */
export const CONFLICT_STRATEGIES = ['FIRST_WINS', 'LAST_WINS', 'PRIORITY', 'QUEUE'] as const
export type ConflictStrategy = (typeof CONFLICT_STRATEGIES)[number]

/** A group of workflows on the wire: a subscriber has at most one active run in it. */
export const WorkflowGroup = closed({
  id: Type.String({ description: 'grp_…' }),
  name: Type.String(),
  conflictStrategy: oneOf(CONFLICT_STRATEGIES),
  maxQueueAge: nullable(Duration),
  workflows: Type.Array(
    closed({
      id: Type.String({ description: 'wf_…' }),
      name: Type.String(),
      status: oneOf(WORKFLOW_STATUSES),
    }),
  ),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})
export type WorkflowGroup = Static<typeof WorkflowGroup>
