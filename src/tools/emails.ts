import Type from 'typebox'

import { closed, defaulted } from '../../schema/define.ts'
import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { defineTool } from '../catalogue/tool.ts'
import { sendTransactional } from '../domain/transactional.ts'
import { readWritten, WRITTEN_TYPES, type WrittenType } from '../domain/written-email.ts'
import { encodeId } from '../ids.ts'

const MAXIMUM_LINE = 998

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
  bodyLimit: DOCUMENT_LIMITS.bytes,
  input: closed({
    to: Type.String({ description: 'The address of the recipient.' }),
    subject: Type.String({ minLength: 1, maxLength: MAXIMUM_LINE, description: 'May hold {{variables}}.' }),
    content: Type.String({
      minLength: 1,
      description: 'Markdown, HTML, or the JSON text of a TipTap document, as contentType says.',
    }),
    contentType: defaulted(Type.Unsafe<WrittenType>(Type.Enum([...WRITTEN_TYPES])), 'MARKDOWN'),
    from: Type.Optional(
      Type.String({ description: '"hello@example.com" or "Name <hello@example.com>" on a verified domain.' }),
    ),
    replyTo: Type.Optional(Type.String({ description: 'Where answers go.' })),
    preview: Type.Optional(Type.String({ maxLength: MAXIMUM_LINE, description: 'The preheader.' })),
    tracking: defaulted(Type.Boolean({ description: 'Counts opens and clicks.' }), true),
  }),
  output: closed({ id: Type.String({ description: 'eml_…' }) }),
  async handler(call, { to, subject, content, contentType, from, replyTo, preview, tracking }) {
    const source = await readWritten(call, { subject, content, contentType, preview })
    const id = await sendTransactional(call, { ...source, to, from, replyTo, tracking })
    return { id: encodeId('eml', id) }
  },
})
