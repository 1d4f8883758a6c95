import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { BATCH_EMAILS, Email, NewEmail } from '../../schema/email.ts'
import { defineTool } from '../catalogue/tool.ts'
import { sentAnswer } from '../domain/emails/acceptance.ts'
import { createEmail as create, createEmails as createAll, isReadAtOnce } from '../domain/emails/create.ts'
import { getEmail as read } from '../domain/emails/records.ts'

const id = Type.String({ description: 'The id of the email (`eml_…`).' })

const sending = {
  group: 'emails',
  effect: 'write',
  permission: 'emails',
  listed: false,
  counted: false,
  bodyLimit: DOCUMENT_LIMITS.bytes,
  jsonDepth: DOCUMENT_LIMITS.jsonDepth,
} as const

/** One transactional email as REST v2 takes it; the same acceptance as every other door's. */
export const createEmail = defineTool({
  ...sending,
  name: 'create_email',
  title: 'Send an email',
  description:
    'Accepts one email to one recipient for sending, written as `html`, `tiptap` or `markdown`. The email is stored before the answer is returned.',
  singleStatement: isReadAtOnce,
  input: NewEmail,
  output: closed({ id }),
  handler: async (call, input) => sentAnswer(await create(call, input)),
})

export const createEmails = defineTool({
  ...sending,
  name: 'create_emails',
  title: 'Send a batch of emails',
  description: `Accepts up to ${BATCH_EMAILS} emails, each to one recipient. Either all are accepted, or none, with the reason.`,
  input: closed({ emails: Type.Array(NewEmail, { minItems: 1, maxItems: BATCH_EMAILS }) }),
  output: closed({ data: Type.Array(closed({ id })) }),
  handler: async (call, { emails }) => {
    const ids = await createAll(call, emails)
    return { data: ids.map(sentAnswer) }
  },
})

export const getEmail = defineTool({
  name: 'get_email',
  title: 'Get an email',
  description:
    'Returns one email of any kind: its subject, bodies and source as far as they are kept, and its delivery history.',
  group: 'emails',
  effect: 'read',
  permission: 'emails',
  listed: false,
  input: closed({ emailId: id }),
  output: Email,
  handler: (call, { emailId }) => read(call, emailId),
})
