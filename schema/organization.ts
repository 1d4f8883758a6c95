import Type, { type Static } from 'typebox'

import { closed, oneOf } from './define.ts'
import { FIELD_TYPES, PLANS, SUBSCRIBER_STATUSES, type SubscriberStatus } from './values.ts'

/** Numbers of an organization at the moment of the call. */
export const OrganizationStats = closed({
  name: Type.String(),
  plan: oneOf(PLANS),
  subscribers: Type.Integer(),
  subscribersByStatus: closed(
    // fromEntries forgets which keys it was given; they are exactly the statuses.
    Object.fromEntries(SUBSCRIBER_STATUSES.map((status) => [status, Type.Integer()])) as Record<
      SubscriberStatus,
      Type.TInteger
    >,
  ),
  tags: Type.Integer(),
  segments: Type.Integer(),
  customFields: Type.Integer(),
  campaigns: Type.Integer({ description: 'Broadcasts; emails inside workflows are not counted.' }),
  workflows: Type.Integer(),
  activeWorkflows: Type.Integer(),
  activeRuns: Type.Integer(),
  emailsLast30Days: closed({
    total: Type.Integer(),
    delivered: Type.Integer(),
    opened: Type.Integer(),
    clicked: Type.Integer(),
    bounced: Type.Integer(),
    complained: Type.Integer(),
  }),
})
export type OrganizationStats = Static<typeof OrganizationStats>

/** A variable for email content; `syntax` is what to write into it. */
export const Variable = closed({
  name: Type.String(),
  label: Type.String(),
  description: Type.String(),
  example: Type.String(),
  syntax: Type.String(),
})
export type Variable = Static<typeof Variable>

/** A variable that a custom field gives. */
export const FieldVariable = closed({
  name: Type.String(),
  type: oneOf(FIELD_TYPES),
  syntax: Type.String(),
})
export type FieldVariable = Static<typeof FieldVariable>
