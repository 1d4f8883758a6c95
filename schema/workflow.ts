import Type, { type Static } from 'typebox'

import { SuccessGoal } from './automation-goals.ts'
import { Draft, Settings } from './automation.ts'
import { closed, nullable, oneOf } from './define.ts'
import { WORKFLOW_STATUSES } from './values.ts'

/** Limits of a workflow's name, in characters. */
export const WORKFLOW_LIMITS = { name: 200 } as const

/** The statuses that `update_workflow_status` can set. Publishing turns a draft into a live workflow. */
export const SETTABLE_STATUSES = ['ACTIVE', 'PAUSED', 'ARCHIVED'] as const
export type SettableStatus = (typeof SETTABLE_STATUSES)[number]

/** An immutable published version. */
export const PublishedVersion = closed({
  id: Type.String(),
  number: Type.Integer({ description: 'The number of the version, counted from 1.' }),
  publishedAt: Type.String(),
  publishedBy: nullable(Type.String({ description: 'The name of the token that published it.' })),
})
export type PublishedVersion = Static<typeof PublishedVersion>

/**
 * The URL at which other systems start a workflow by its INBOUND_WEBHOOK trigger. The secret is returned only once,
 * when the address is created.
 */
export const InboundWebhook = closed({
  stepId: Type.String(),
  slug: Type.String(),
  url: Type.String(),
  secret: nullable(
    Type.String({ description: 'The signing secret (`whsec_…`). Null if it was already returned once.' }),
  ),
})
export type InboundWebhook = Static<typeof InboundWebhook>

const summary = {
  id: Type.String(),
  name: Type.String(),
  status: oneOf(WORKFLOW_STATUSES),
  publishedVersion: nullable(PublishedVersion),
  activeSubscribers: Type.Integer({ description: 'The number of subscribers with an active run.' }),
  createdAt: Type.String(),
  updatedAt: Type.String({
    description: 'Changes with each write; writes to the draft send it back as `expectedUpdatedAt`.',
  }),
}

/** A workflow in a list, without its graph. */
export const WorkflowSummary = closed(summary)
export type WorkflowSummary = Static<typeof WorkflowSummary>

/** A workflow on the wire. */
export const Workflow = closed({
  ...summary,
  draft: Draft,
  settings: Settings,
  successGoals: Type.Array(SuccessGoal),
})
export type Workflow = Static<typeof Workflow>
