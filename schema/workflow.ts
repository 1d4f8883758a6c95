import Type, { type Static } from 'typebox'

import { SuccessGoal } from './automation-goals.ts'
import { Draft, Settings } from './automation.ts'
import { closed, nullable, oneOf } from './define.ts'
import { WORKFLOW_STATUSES } from './values.ts'

/** Bounds of a workflow's name, in characters. */
export const WORKFLOW_LIMITS = { name: 200 } as const

/** What update_workflow_status can set; a draft becomes live by publishing. */
export const SETTABLE_STATUSES = ['ACTIVE', 'PAUSED', 'ARCHIVED'] as const
export type SettableStatus = (typeof SETTABLE_STATUSES)[number]

/** An immutable published version. */
export const PublishedVersion = closed({
  id: Type.String(),
  number: Type.Integer(),
  publishedAt: Type.String(),
  publishedBy: nullable(Type.String()),
})
export type PublishedVersion = Static<typeof PublishedVersion>

/** Where others start a workflow by an INBOUND_WEBHOOK trigger; the secret is told when the address is made, once. */
export const InboundWebhook = closed({
  stepId: Type.String(),
  slug: Type.String(),
  url: Type.String(),
  secret: nullable(Type.String({ description: 'whsec_…; null where it was told already.' })),
})
export type InboundWebhook = Static<typeof InboundWebhook>

/** A workflow on the wire. `updatedAt` is what a draft write names as `expectedUpdatedAt`. */
export const Workflow = closed({
  id: Type.String(),
  name: Type.String(),
  status: oneOf(WORKFLOW_STATUSES),
  draft: Draft,
  settings: Settings,
  successGoals: Type.Array(SuccessGoal),
  publishedVersion: nullable(PublishedVersion),
  activeSubscribers: Type.Integer(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})
export type Workflow = Static<typeof Workflow>

/** A workflow in a list: without its graph. */
export const WorkflowSummary = closed({
  id: Type.String(),
  name: Type.String(),
  status: oneOf(WORKFLOW_STATUSES),
  publishedVersion: nullable(PublishedVersion),
  activeSubscribers: Type.Integer(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})
export type WorkflowSummary = Static<typeof WorkflowSummary>
