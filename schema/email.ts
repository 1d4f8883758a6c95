import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { LAST_EVENTS } from './subscriber.ts'
import { EMAIL_LINE } from './values.ts'

const summary = {
  id: Type.String({ description: 'The id of the email (`eml_…`).' }),
  from: Type.String({ description: 'The sender, as "Name <address>" or as the address alone.' }),
  to: Type.Array(Type.String()),
  reply_to: nullable(Type.String()),
  subject: nullable(
    Type.String({
      description: 'The subject as it was sent, or as it was written if the email is not sent yet.',
    }),
  ),
  created_at: Type.String(),
  last_event: oneOf(LAST_EVENTS),
}

/** An email in a list of REST v2, without its bodies. The members are in snake_case (decisions, section 1). */
export const EmailSummary = closed(summary)
export type EmailSummary = Static<typeof EmailSummary>

/** The events that an email can have after it was accepted. */
const EMAIL_EVENTS = [...LAST_EVENTS, 'replied', 'auto_replied'] as const

/** One event of an email. Members that do not apply to the event are null. */
export const EmailMoment = closed({
  event: oneOf(EMAIL_EVENTS),
  created_at: Type.String(),
  detail: nullable(
    Type.String({
      description: 'The response of the mail server, or the reason why the email was not sent.',
    }),
  ),
  url: nullable(Type.String({ description: 'For a click: the target of the link.' })),
  machine: nullable(
    Type.Boolean({ description: 'For an open or a click: whether a scanner or proxy caused it.' }),
  ),
  raw: nullable(Type.String({ description: 'For a report: the received message, kept for 90 days.' })),
})
export type EmailMoment = Static<typeof EmailMoment>

/** The content of an email as its author wrote it, if that is kept. */
export const EmailSource = closed({
  content_type: Type.String({ description: 'The format of the content: HTML, MARKDOWN, TIPTAP or PLATE.' }),
  content: Type.Unknown({ description: 'The content: text, or a document.' }),
  text: nullable(Type.String({ description: 'The plain text part, if one was written.' })),
  preview: nullable(Type.String()),
})
export type EmailSource = Static<typeof EmailSource>

/** One email of REST v2. */
export const Email = closed({
  ...summary,
  html: nullable(Type.String({ description: 'The HTML body. Null if the content is no longer stored.' })),
  text: nullable(Type.String()),
  source: nullable(EmailSource),
  events: Type.Array(EmailMoment, { description: 'The events, oldest first; at most the first 500.' }),
})
export type Email = Static<typeof Email>

/**
 * An email as a caller of REST v2 sends it (contract, "Send email (v2)"), with exactly one of html, tiptap and
 * markdown.
 */
export const NewEmail = closed({
  from: Type.String({
    description: 'The sender, as "hello@example.com" or "Name <hello@example.com>", on a verified domain.',
  }),
  to: Type.Union([Type.String(), Type.Array(Type.String())], {
    description: 'The recipient: one address, as a string or as a list with one entry.',
  }),
  subject: Type.String({
    minLength: 1,
    maxLength: EMAIL_LINE,
    description: 'The subject. It may contain {{variables}}.',
  }),
  html: Type.Optional(Type.String({ minLength: 1 })),
  tiptap: Type.Optional(
    Type.Unknown({ description: 'A document {"type": "doc", "content": […]}, or its JSON text.' }),
  ),
  markdown: Type.Optional(Type.String({ minLength: 1 })),
  reply_to: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], {
      description: 'The address that replies go to, as a string or as a list with one entry.',
    }),
  ),
  preview: Type.Optional(
    Type.String({
      maxLength: EMAIL_LINE,
      description: 'The preview text that inboxes show next to the subject.',
    }),
  ),
})
export type NewEmail = Static<typeof NewEmail>

/** The most emails in one batch. */
export const BATCH_EMAILS = 100
