import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Sender, SENDER_LIMITS } from '../../schema/sender.ts'
import { defineTool } from '../catalogue/tool.ts'
import { createSender, listSenders } from '../domain/domains/senders.ts'

export const getEmailSenders = defineTool({
  name: 'get_email_senders',
  title: 'Get email senders',
  description:
    'Returns the senders (from-addresses), the default sender first. `verified` says whether the domain of a sender may send now.',
  group: 'senders',
  effect: 'read',
  permission: 'emails',
  input: closed({}),
  output: closed({ senders: Type.Array(Sender) }),
  handler: async (call) => ({ senders: await listSenders(call) }),
})

export const createEmailSender = defineTool({
  name: 'create_email_sender',
  title: 'Create an email sender',
  description:
    'Creates a sender: a from-address on a domain of the organization. The domain need not be verified yet, but email cannot be sent from it until it is. The first sender becomes the default. Returns the sender.',
  group: 'senders',
  effect: 'write',
  permission: 'emails',
  input: closed({
    localPart: Type.String({ description: 'The part of the address before "@", such as hello.' }),
    domain: Type.String({
      description: 'The host name or id of a sending domain; `list_domains` lists them.',
    }),
    name: Type.String({
      description: `The name that recipients see, up to ${SENDER_LIMITS.name} characters.`,
    }),
    replyTo: Type.Optional(
      Type.String({ description: 'The address that replies go to. Defaults to the address of the sender.' }),
    ),
  }),
  output: closed({ sender: Sender }),
  handler: async (call, input) => ({ sender: await createSender(call, input) }),
})
