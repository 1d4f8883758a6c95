import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { DELIVERY_STATUSES, FIELD_TYPES, SUBSCRIBER_STATUSES, type SubscriberStatus } from './values.ts'

/** Limits of a subscriber's data. Text is counted in characters. */
export const SUBSCRIBER_LIMITS = {
  /** RFC 5321 4.5.3.1.3: a path has at most 256 octets, including its two angle brackets. */
  email: 254,
  name: 200,
  phone: 40,
  /** The text value of a custom field. */
  fieldText: 2_000,
  /** Custom field definitions in an organization. */
  fieldDefinitions: 200,
  /** Tags in one call that names a single subscriber. */
  tags: 100,
} as const

/** The input members that identify one subscriber. Callers send exactly one of the two. */
export const subscriberChoice = {
  subscriberId: Type.Optional(
    Type.String({ description: 'The id of the subscriber (`sub_…`). Send this or `email`, not both.' }),
  ),
  email: Type.Optional(
    Type.String({
      description: 'The email address of the subscriber. Send this or `subscriberId`, not both.',
    }),
  ),
}

/** The input members with a person's name and phone number. */
export const contactDetails = {
  name: Type.Optional(
    Type.String({
      description: `The name, up to ${SUBSCRIBER_LIMITS.name} characters. An empty string clears it.`,
    }),
  ),
  phone: Type.Optional(
    Type.String({
      description: `The phone number, up to ${SUBSCRIBER_LIMITS.phone} characters. An empty string clears it.`,
    }),
  ),
}

/** The value of a custom field. Dates are ISO 8601 text. */
export const FieldValue = Type.Union([Type.String(), Type.Number(), Type.Boolean()])

/** A subscriber on the wire (contract, "Subscriber"). */
export const Subscriber = closed({
  id: Type.String(),
  email: Type.String(),
  name: nullable(Type.String()),
  phone: nullable(Type.String()),
  status: oneOf(SUBSCRIBER_STATUSES),
  country: nullable(Type.String({ description: 'The ISO 3166-1 alpha-2 country code.' })),
  tags: Type.Array(Type.String(), { description: 'The names of the tags, in alphabetical order.' }),
  customFields: Type.Record(Type.String(), FieldValue, {
    description: 'The values of custom fields by field name.',
  }),
  revenue: Type.Number({
    description: 'Payments minus refunds: the sum of the recorded amounts, whatever their currency.',
  }),
  emailCount: Type.Integer({ description: 'The number of emails sent to them, without test emails.' }),
  openCount: Type.Integer({ description: 'The number of their EMAIL_OPENED events.' }),
  clickCount: Type.Integer({ description: 'The number of their EMAIL_CLICKED events.' }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})
export type Subscriber = Static<typeof Subscriber>

/** The members of a subscriber that callers of `query_subscribers` can select. */
export const QUERY_FIELDS = [
  'id',
  'email',
  'name',
  'phone',
  'status',
  'createdAt',
  'updatedAt',
  'tags',
  'customFields',
  'revenue',
  'emailCount',
  'openCount',
  'clickCount',
] as const
export type QueryField = (typeof QUERY_FIELDS)[number]

/** A subscriber with only the selected members. */
export const SelectedSubscriber = Type.Partial(Type.Pick(Subscriber, QUERY_FIELDS), {
  additionalProperties: false,
})

/** A subscriber who gets no email because an email to them bounced or because they complained about one. */
export const SuppressedSubscriber = closed({
  id: Type.String(),
  email: Type.String(),
  name: nullable(Type.String()),
  status: oneOf(['BOUNCED', 'COMPLAINED']),
  bounceCategory: nullable(
    Type.String({ description: 'The category of the bounce. NO_SUCH_USER and INTERNAL are hard bounces.' }),
  ),
  reason: nullable(
    Type.String({
      description: 'The reason for the suppression of the address. Null if it is not suppressed.',
    }),
  ),
  suppressedAt: nullable(Type.String()),
  createdAt: Type.String(),
})
export type SuppressedSubscriber = Static<typeof SuppressedSubscriber>

/** A subscriber in an export. */
export const ExportedSubscriber = Type.Pick(
  Subscriber,
  ['email', 'name', 'phone', 'status', 'tags', 'customFields', 'createdAt'],
  { additionalProperties: false },
)
export type ExportedSubscriber = Static<typeof ExportedSubscriber>

/** The number of subscribers in each status. */
export const StatusCounts = closed(
  // `Object.fromEntries` loses the key type; the keys are exactly the statuses.
  Object.fromEntries(SUBSCRIBER_STATUSES.map((status) => [status, Type.Integer()])) as Record<
    SubscriberStatus,
    Type.TInteger
  >,
)
export type StatusCounts = Static<typeof StatusCounts>

/** A custom field definition on the wire. */
export const CustomField = closed({
  id: Type.String(),
  name: Type.String(),
  type: oneOf(FIELD_TYPES),
  createdAt: Type.String(),
})
export type CustomField = Static<typeof CustomField>

/** The last event of an email; finer than its delivery status. */
export const LAST_EVENTS = [
  'queued',
  'sent',
  'delivered',
  'delivery_delayed',
  'bounced',
  'complained',
  'opened',
  'clicked',
  'failed',
  'suppressed',
] as const
export type LastEvent = (typeof LAST_EVENTS)[number]

/** An email to one subscriber that was sent or is about to be. */
export const SubscriberEmail = closed({
  id: Type.String(),
  campaignId: nullable(Type.String()),
  campaignName: nullable(Type.String()),
  subject: nullable(Type.String()),
  from: Type.String({ description: 'The from-address; the email is signed (DKIM) for its domain.' }),
  stoodInFor: nullable(
    Type.String({
      description:
        'The address of the configured sender, if its domain was not VERIFIED and another domain was used instead. Null otherwise.',
    }),
  ),
  status: oneOf(DELIVERY_STATUSES),
  lastEvent: oneOf(LAST_EVENTS),
  reason: nullable(Type.String({ description: 'The reason why the email was not delivered.' })),
  bounceCategory: nullable(Type.String()),
  createdAt: Type.String(),
  sentAt: nullable(Type.String()),
  deliveredAt: nullable(Type.String()),
  openedAt: nullable(Type.String()),
  clickedAt: nullable(Type.String()),
})
export type SubscriberEmail = Static<typeof SubscriberEmail>
