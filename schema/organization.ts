import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { StatusCounts } from './subscriber.ts'
import { EMAIL_LINE, FIELD_TYPES, PLANS } from './values.ts'

/** Counts of an organization at the time of the call. */
export const OrganizationStats = closed({
  name: Type.String(),
  plan: oneOf(PLANS),
  subscribers: Type.Integer(),
  subscribersByStatus: StatusCounts,
  tags: Type.Integer(),
  segments: Type.Integer(),
  customFields: Type.Integer(),
  campaigns: Type.Integer({
    description: 'The number of campaigns, without the internal emails of workflows.',
  }),
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
  emailsThisMonth: closed(
    {
      used: Type.Integer(),
      limit: nullable(Type.Integer({ description: 'The limit of the plan. Null means no limit.' })),
    },
    { description: 'Emails since the first of the month (UTC), without test emails.' },
  ),
})
export type OrganizationStats = Static<typeof OrganizationStats>

/** A variable for email content. `syntax` is the text to write into the content. */
export const Variable = closed({
  name: Type.String(),
  label: Type.String(),
  description: Type.String(),
  example: Type.String(),
  syntax: Type.String(),
})
export type Variable = Static<typeof Variable>

/** A variable for a custom field. */
export const FieldVariable = closed({
  name: Type.String(),
  type: oneOf(FIELD_TYPES),
  syntax: Type.String(),
})
export type FieldVariable = Static<typeof FieldVariable>

/** Limits of the organization's texts, in characters. */
export const ORGANIZATION_LIMITS = {
  name: 100,
  confirmationSubject: EMAIL_LINE,
  confirmationMarkdown: 20_000,
  writingStyle: 5_000,
} as const

/** The email that asks a subscriber to confirm when double opt-in is on. */
export const ConfirmationEmail = closed({
  subject: Type.String({ description: 'The subject, on one line. It may contain variables.' }),
  markdown: Type.String({
    description:
      'The body in Markdown. It may contain variables. {{confirmUrl}} is the confirmation link; it is added at the end if it is missing.',
  }),
})
export type ConfirmationEmail = Static<typeof ConfirmationEmail>

/** The organization as its members see it. `confirmationEmail` is null while the standard email is used. */
export const OrganizationSettings = closed({
  id: Type.String(),
  name: Type.String(),
  slug: Type.String(),
  timezone: Type.String(),
  plan: oneOf(PLANS),
  doubleOptIn: Type.Boolean(),
  confirmationEmail: nullable(ConfirmationEmail),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})
export type OrganizationSettings = Static<typeof OrganizationSettings>

/** The writing style of the organization. A null member is not set. */
export const WritingStyle = closed({
  persona: nullable(Type.String()),
  audience: nullable(Type.String()),
  vocabulary: nullable(Type.String()),
})
export type WritingStyle = Static<typeof WritingStyle>
