import Type from 'typebox'

import { closed, defaulted, oneOf } from '../../schema/define.ts'
import { subscriberChoice } from '../../schema/subscriber.ts'
import { Failure } from '../catalogue/failure.ts'
import { defineTool } from '../catalogue/tool.ts'
import type { MessageSource } from '../domain/messages.ts'
import { type PersonalEmail, sendEmail as send, summarizeEmail } from '../domain/send-email.ts'
import { sendTransactional } from '../domain/transactional.ts'
import { encodeId } from '../ids.ts'

const MAXIMUM_LINE = 998
const CONTENT_TYPES = ['MARKDOWN', 'HTML', 'TIPTAP'] as const

const written = {
  subject: Type.String({ minLength: 1, maxLength: MAXIMUM_LINE, description: 'May hold {{variables}}.' }),
  content: Type.String({ minLength: 1, description: 'Markdown or HTML, as contentType says.' }),
  contentType: defaulted(oneOf(CONTENT_TYPES), 'MARKDOWN'),
  replyTo: Type.Optional(Type.String({ description: 'Where answers go.' })),
  preview: Type.Optional(Type.String({ maxLength: MAXIMUM_LINE, description: 'The preheader.' })),
}
const id = Type.String({ description: 'eml_…' })

/** One transactional email through the frozen v1 door (contract, "Transactional send v1"). */
export const sendTransactionalEmail = defineTool({
  name: 'send_transactional_email',
  title: 'Send a transactional email',
  description:
    'Accepts one email to one person for sending. It is stored when this answers, and sent by the transactional lane.',
  group: 'emails',
  effect: 'write',
  permission: 'emails',
  listed: false,
  counted: false,
  singleStatement: true,
  checksToken: true,
  input: closed({
    to: Type.String({ description: 'The address of the recipient.' }),
    ...written,
    from: Type.Optional(
      Type.String({ description: '"hello@example.com" or "Name <hello@example.com>" on a verified domain.' }),
    ),
    tracking: defaulted(Type.Boolean({ description: 'Counts opens and clicks.' }), true),
  }),
  output: closed({ id }),
  handler: async (call, { to, from, replyTo, tracking, ...rest }) => ({
    id: encodeId('eml', await sendTransactional(call, { ...sourceOf(rest), to, from, replyTo, tracking })),
  }),
})

/** One transactional email to a subscriber, asked for by a tool. */
export const sendEmail = defineTool({
  name: 'send_email',
  title: 'Send an email to a person',
  description:
    'Sends one transactional email to a subscriber, or to an address, which becomes a TRANSACTIONAL subscriber when nobody has it yet. For what the person needs whether or not they take marketing. Asks for a confirmation code.',
  group: 'emails',
  effect: 'impact',
  permission: 'emails',
  counted: false,
  input: closed({
    ...subscriberChoice,
    ...written,
    senderId: Type.Optional(
      Type.String({ description: 'Who it comes from, snd_…; the default sender without it.' }),
    ),
  }),
  output: closed({ email: closed({ id }) }),
  summarize: (call, input) => summarizeEmail(call, personal(input)),
  handler: async (call, input) => ({ email: { id: encodeId('eml', await send(call, personal(input))) } }),
})

type Written = {
  subject: string
  content: string
  contentType: (typeof CONTENT_TYPES)[number]
  preview?: string
}

function personal({
  subject,
  content,
  contentType,
  preview,
  ...rest
}: Written & Omit<PersonalEmail, 'source'>): PersonalEmail {
  return {
    ...rest,
    source: sourceOf({ subject, content, contentType, ...(preview !== undefined && { preview }) }),
  }
}

/** What mail keeps, or INVALID_INPUT where it cannot be rendered yet. */
function sourceOf({ subject, content, contentType, preview }: Written): MessageSource {
  if (contentType === 'TIPTAP') {
    throw new Failure(
      'INVALID_INPUT',
      'contentType TIPTAP is not available yet; send the content as MARKDOWN or HTML.',
      { details: [{ path: 'contentType', message: 'TIPTAP is not available yet' }] },
    )
  }
  return { subject, content, contentType, preview: preview ?? null }
}
