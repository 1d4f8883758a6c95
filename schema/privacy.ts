import Type, { type Static } from 'typebox'

import { closed, nullable } from './define.ts'
import { SubscriberEvent } from './event.ts'
import { Run } from './run.ts'
import { Subscriber } from './subscriber.ts'

/** An email to a person, with its content if that is stored for this email alone. */
export const PersonalEmail = closed({
  id: Type.String({ description: 'eml_…' }),
  recipient: Type.String(),
  from: Type.String(),
  subject: nullable(Type.String()),
  content: nullable(
    Type.String({ description: 'Its own source; null where it came from a campaign or workflow.' }),
  ),
  status: Type.String(),
  reason: nullable(Type.String()),
  createdAt: Type.String(),
  sentAt: nullable(Type.String()),
})

/** An open or a click, including those attributed to machines. */
const PersonalVisit = closed({
  emailId: Type.String({ description: 'eml_…' }),
  kind: Type.String({ description: 'OPEN or CLICK.' }),
  human: Type.Boolean(),
  url: nullable(Type.String()),
  userAgent: nullable(Type.String()),
  createdAt: Type.String(),
})

/** A report about an email: a bounce, a delay, a complaint or a reply. */
const PersonalReport = closed({
  emailId: Type.String({ description: 'eml_…' }),
  kind: Type.String({ description: 'BOUNCE, DELAY, COMPLAINT, REPLY or AUTOMATIC.' }),
  category: nullable(Type.String()),
  status: nullable(Type.String()),
  diagnostic: nullable(Type.String()),
  raw: Type.String({ description: 'The message as it came, read as UTF-8.' }),
  createdAt: Type.String(),
})

/** All stored data about one person (GDPR, articles 15 and 20). */
export const PersonalData = closed({
  exportedAt: Type.String(),
  subscriber: Subscriber,
  ipAddress: nullable(Type.String()),
  bounceCategory: nullable(Type.String()),
  consent: closed({
    requestedAt: nullable(Type.String({ description: 'When double opt-in last asked them.' })),
    confirmedAt: nullable(Type.String({ description: 'When they confirmed by double opt-in.' })),
    history: Type.Array(SubscriberEvent, {
      description: 'Every SUBSCRIBED and UNSUBSCRIBED with its cause and evidence, oldest first.',
    }),
  }),
  suppression: nullable(closed({ reason: Type.String(), source: Type.String(), createdAt: Type.String() })),
  events: Type.Array(SubscriberEvent, { description: 'Oldest first.' }),
  emails: Type.Array(PersonalEmail, { description: 'Oldest first.' }),
  reports: Type.Array(PersonalReport, { description: 'Oldest first; kept for 90 days.' }),
  visits: Type.Array(PersonalVisit, { description: 'Oldest first.' }),
  runs: Type.Array(Run, { description: 'Workflows they went through, oldest first.' }),
})
export type PersonalData = Static<typeof PersonalData>
