import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { LAST_EVENTS } from './subscriber.ts'
import { EMAIL_LINE } from './values.ts'

const summary = {
  id: Type.String({ description: 'eml_…' }),
  from: Type.String({ description: 'Name <address>, or the address alone.' }),
  to: Type.Array(Type.String()),
  reply_to: nullable(Type.String()),
  subject: nullable(Type.String({ description: 'As it was sent; before that, as it was written.' })),
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
  detail: nullable(Type.String({ description: 'What the server said, or why there was no sending.' })),
  url: nullable(Type.String({ description: 'Of a click: where the link leads.' })),
  machine: nullable(Type.Boolean({ description: 'Of an open or click: whether a scanner or proxy did it.' })),
  raw: nullable(Type.String({ description: 'Of a report: the message as it came, for 90 days.' })),
})
export type EmailMoment = Static<typeof EmailMoment>

/** The content of an email as its author wrote it, if that is kept. */
export const EmailSource = closed({
  content_type: Type.String({ description: 'HTML, MARKDOWN, TIPTAP or PLATE.' }),
  content: Type.Unknown({ description: 'Text, or the document.' }),
  text: nullable(Type.String({ description: 'The text part, where one was written.' })),
  preview: nullable(Type.String()),
})
export type EmailSource = Static<typeof EmailSource>

/** One email of REST v2. */
export const Email = closed({
  ...summary,
  html: nullable(Type.String({ description: 'Null once its content is gone.' })),
  text: nullable(Type.String()),
  source: nullable(EmailSource),
  events: Type.Array(EmailMoment, { description: 'Oldest first; of many, the first 500.' }),
})
export type Email = Static<typeof Email>

/**
 * An email as a caller of REST v2 sends it (contract, "Send email (v2)"), with exactly one of html, tiptap and
 * markdown.
 */
export const NewEmail = closed({
  from: Type.String({
    description: '"hello@example.com" or "Name <hello@example.com>" on a verified domain.',
  }),
  to: Type.Union([Type.String(), Type.Array(Type.String())], {
    description: 'One address, by itself or as a list of one.',
  }),
  subject: Type.String({ minLength: 1, maxLength: EMAIL_LINE, description: 'May hold {{variables}}.' }),
  html: Type.Optional(Type.String({ minLength: 1 })),
  tiptap: Type.Optional(
    Type.Unknown({ description: 'A document, {"type": "doc", "content": […]}, or its JSON text.' }),
  ),
  markdown: Type.Optional(Type.String({ minLength: 1 })),
  reply_to: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], {
      description: 'Where answers go: one address, by itself or as a list of one.',
    }),
  ),
  preview: Type.Optional(Type.String({ maxLength: EMAIL_LINE, description: 'The preheader.' })),
})
export type NewEmail = Static<typeof NewEmail>

/** The most emails in one batch. */
export const BATCH_EMAILS = 100
