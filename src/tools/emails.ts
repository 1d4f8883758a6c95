import Type from 'typebox'

import { closed, defaulted } from '../../schema/define.ts'
import { Failure } from '../catalogue/failure.ts'
import { defineTool } from '../catalogue/tool.ts'
import { sendTransactional } from '../domain/transactional.ts'
import { encodeId } from '../ids.ts'

const MAXIMUM_LINE = 998
const CONTENT_TYPES = ['MARKDOWN', 'HTML', 'TIPTAP'] as const

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
    subject: Type.String({ minLength: 1, maxLength: MAXIMUM_LINE, description: 'May hold {{variables}}.' }),
    content: Type.String({ minLength: 1, description: 'Markdown or HTML, as contentType says.' }),
    contentType: defaulted(
      Type.Unsafe<(typeof CONTENT_TYPES)[number]>(Type.Enum([...CONTENT_TYPES])),
      'MARKDOWN',
    ),
    from: Type.Optional(
      Type.String({ description: '"hello@example.com" or "Name <hello@example.com>" on a verified domain.' }),
    ),
    replyTo: Type.Optional(Type.String({ description: 'Where answers go.' })),
    preview: Type.Optional(Type.String({ maxLength: MAXIMUM_LINE, description: 'The preheader.' })),
    tracking: defaulted(Type.Boolean({ description: 'Counts opens and clicks.' }), true),
  }),
  output: closed({ id: Type.String({ description: 'eml_…' }) }),
  async handler(call, { to, subject, content, contentType, from, replyTo, preview, tracking }) {
    if (contentType === 'TIPTAP') {
      throw new Failure(
        'INVALID_INPUT',
        'contentType TIPTAP is not available yet; send the content as MARKDOWN or HTML.',
        { details: [{ path: 'contentType', message: 'TIPTAP is not available yet' }] },
      )
    }
    const source = { subject, content, contentType, preview: preview ?? null }
    const id = await sendTransactional(call, { ...source, to, from, replyTo, tracking })
    return { id: encodeId('eml', id) }
  },
})
