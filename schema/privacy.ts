import Type, { type Static } from 'typebox'

import { closed, nullable } from './define.ts'
import { SubscriberEvent } from './event.ts'
import { Run } from './run.ts'
import { Subscriber } from './subscriber.ts'

/** An email to a person, with its content if that is stored for this email alone. */
export const PersonalEmail = closed({
  id: Type.String({ description: 'The id of the email (`eml_…`).' }),
  recipient: Type.String(),
  from: Type.String(),
  subject: nullable(Type.String()),
  content: nullable(
    Type.String({ description: 'The source of this email. Null if it came from a campaign or workflow.' }),
  ),
  status: Type.String(),
  reason: nullable(Type.String()),
  createdAt: Type.String(),
  sentAt: nullable(Type.String()),
})

/** An open or a click, including those attributed to machines. */
const PersonalVisit = closed({
  emailId: Type.String({ description: 'The id of the email (`eml_…`).' }),
  kind: Type.String({ description: 'The kind of visit: OPEN or CLICK.' }),
  human: Type.Boolean(),
  url: nullable(Type.String()),
  userAgent: nullable(Type.String()),
  createdAt: Type.String(),
})

/** A report about an email: a bounce, a delay, a complaint or a reply. */
const PersonalReport = closed({
  emailId: Type.String({ description: 'The id of the email (`eml_…`).' }),
  kind: Type.String({ description: 'The kind of report: BOUNCE, DELAY, COMPLAINT, REPLY or AUTOMATIC.' }),
  category: nullable(Type.String()),
  status: nullable(Type.String()),
  diagnostic: nullable(Type.String()),
  raw: Type.String({ description: 'The received message, decoded as UTF-8.' }),
  createdAt: Type.String(),
})

/** A workflow run with its data about the person. */
const PersonalRun = closed({
  ...Run.properties,
  entry: Type.Record(Type.String(), Type.Unknown(), {
    description: 'The data that the run was started with, and the responses of webhooks that it saved.',
  }),
})

/** All stored data about one person (GDPR, articles 15 and 20). */
export const PersonalData = closed({
  exportedAt: Type.String(),
  subscriber: Subscriber,
  ipAddress: nullable(Type.String()),
  bounceCategory: nullable(Type.String()),
  consent: closed({
    requestedAt: nullable(
      Type.String({
        description: 'The time at which the last confirmation email was requested (double opt-in).',
      }),
    ),
    confirmedAt: nullable(
      Type.String({ description: 'The time at which the subscriber confirmed (double opt-in).' }),
    ),
    history: Type.Array(SubscriberEvent, {
      description: 'All SUBSCRIBED and UNSUBSCRIBED events with cause and evidence, oldest first.',
    }),
  }),
  suppression: nullable(closed({ reason: Type.String(), source: Type.String(), createdAt: Type.String() })),
  events: Type.Array(SubscriberEvent, { description: 'The events, oldest first.' }),
  emails: Type.Array(PersonalEmail, { description: 'The emails, oldest first.' }),
  reports: Type.Array(PersonalReport, {
    description: 'The reports about their emails, oldest first. Reports are kept for 90 days.',
  }),
  visits: Type.Array(PersonalVisit, { description: 'The opens and clicks, oldest first.' }),
  runs: Type.Array(PersonalRun, { description: 'The workflow runs, oldest first.' }),
})
export type PersonalData = Static<typeof PersonalData>
