import Type from 'typebox'

import { closed, defaulted, oneOf } from '../../schema/define.ts'
import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { EmailVerification } from '../../schema/email-verification.ts'
import { subscriberChoice } from '../../schema/subscriber.ts'
import { EMAIL_LINE } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { sentAnswer } from '../domain/emails/acceptance.ts'
import { sendEmail as send, summarizeEmail } from '../domain/emails/send.ts'
import { lookUpMailServer, verifyEmailAddress as verify } from '../domain/emails/verification.ts'
import { isWrittenHere, sendWritten, WRITTEN_TYPES } from '../domain/emails/written.ts'
import { encodeId } from '../ids.ts'

const written = {
  subject: Type.String({
    minLength: 1,
    maxLength: EMAIL_LINE,
    description: 'The subject. It may contain {{variables}}.',
  }),
  content: Type.String({
    minLength: 1,
    description:
      'The content: Markdown, HTML, or the JSON text of a TipTap document, according to `contentType`.',
  }),
  contentType: defaulted(oneOf(WRITTEN_TYPES), 'MARKDOWN'),
  replyTo: Type.Optional(Type.String({ description: 'The address that replies go to.' })),
  preview: Type.Optional(
    Type.String({
      maxLength: EMAIL_LINE,
      description: 'The preview text that inboxes show next to the subject.',
    }),
  ),
}
const asV1 = {
  to: Type.String({ description: 'The email address of the recipient.' }),
  ...written,
  from: Type.Optional(
    Type.String({
      description: 'The sender, as "hello@example.com" or "Name <hello@example.com>", on a verified domain.',
    }),
  ),
  tracking: defaulted(Type.Boolean({ description: 'Whether opens and clicks are tracked.' }), true),
}
const emailId = Type.String({ description: 'The id of the email (`eml_…`).' })

const transactional = {
  group: 'emails',
  effect: 'write',
  permission: 'emails',
  listed: false,
  counted: false,
  singleStatement: isWrittenHere,
  bodyLimit: DOCUMENT_LIMITS.bytes,
  output: closed({ id: emailId }),
} as const

/** One transactional email through the frozen v1 door (contract, "Transactional send v1"). */
export const sendTransactionalEmail = defineTool({
  ...transactional,
  name: 'send_transactional_email',
  title: 'Send a transactional email',
  description:
    'Accepts one transactional email to one recipient for sending, ahead of campaign email. The email is stored before the answer is returned.',
  input: closed(asV1),
  handler: async (call, input) => sentAnswer(await sendWritten(call, input)),
})

/** The same for our SMTP door, whose emails bring their own text part. */
export const submitEmail = defineTool({
  ...transactional,
  name: 'submit_email',
  title: 'Submit an email that came by SMTP',
  description:
    'Accepts one email as `send_transactional_email` does, with the text part of the original message.',
  input: closed({
    ...asV1,
    text: Type.Optional(
      Type.String({ description: 'The plain text part. Defaults to text generated from the HTML.' }),
    ),
  }),
  handler: async (call, input) => sentAnswer(await sendWritten(call, input)),
})

/** One transactional email to a subscriber, asked for by a tool. */
export const sendEmail = defineTool({
  name: 'send_email',
  title: 'Send an email to a person',
  description:
    'Sends one transactional email to a subscriber or an address, and returns its id. An address that no subscriber has becomes a subscriber with the status TRANSACTIONAL. Use it for email that a person needs even without consent to marketing. Requires a confirmation code.',
  group: 'emails',
  effect: 'impact',
  permission: 'emails',
  counted: false,
  bodyLimit: DOCUMENT_LIMITS.bytes,
  input: closed({
    ...subscriberChoice,
    ...written,
    senderId: Type.Optional(
      Type.String({
        description: 'The id of the sender (`snd_…`). Defaults to the default sender of the organization.',
      }),
    ),
  }),
  output: closed({ email: closed({ id: emailId }) }),
  summarize: summarizeEmail,
  handler: async (call, input) => ({ email: { id: encodeId('eml', await send(call, input)) } }),
})

/** What an address is worth before anything is sent to it. */
export const verifyEmailAddress = defineTool({
  name: 'verify_email_address',
  title: 'Verify an email address',
  description:
    'Checks whether an address can receive email: its syntax, whether its domain accepts email, and what this organization knows about the address. Only DNS is queried; no mail server is contacted.',
  group: 'emails',
  effect: 'read',
  permission: 'emails',
  listed: false,
  input: closed({
    email: Type.String({ maxLength: EMAIL_LINE, description: 'The email address to check.' }),
  }),
  output: closed({ verification: EmailVerification }),
  prepare: lookUpMailServer,
  handler: async (call, input, hasMailServer) => ({ verification: await verify(call, input, hasMailServer) }),
})
