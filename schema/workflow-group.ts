import Type, { type Static } from 'typebox'

import { Duration } from './automation-parts.ts'
import { closed, nullable, oneOf } from './define.ts'
import { WORKFLOW_STATUSES } from './values.ts'

/** Limits of groups: characters of a name, and groups per organization. */
export const GROUP_LIMITS = { name: 200, groups: 200 } as const

/** What happens when a subscriber enters a second workflow of the same group. */
export const CONFLICT_STRATEGIES = ['FIRST_WINS', 'LAST_WINS', 'PRIORITY', 'QUEUE'] as const
export type ConflictStrategy = (typeof CONFLICT_STRATEGIES)[number]

/** A group of workflows. A subscriber has at most one active run in a group. */
export const WorkflowGroup = closed({
  id: Type.String({ description: 'The id of the workflow group (`grp_…`).' }),
  name: Type.String(),
  conflictStrategy: oneOf(CONFLICT_STRATEGIES, {
    description: 'What happens when a subscriber enters a second workflow of the group.',
  }),
  maxQueueAge: nullable(Duration, {
    description: 'With QUEUE, the time after which a queued run is dropped. Null means never.',
  }),
  workflows: Type.Array(
    closed({
      id: Type.String({ description: 'The id of the workflow (`wf_…`).' }),
      name: Type.String(),
      status: oneOf(WORKFLOW_STATUSES),
    }),
  ),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})
export type WorkflowGroup = Static<typeof WorkflowGroup>
