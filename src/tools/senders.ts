import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Sender, SENDER_LIMITS } from '../../schema/sender.ts'
import { defineTool } from '../catalogue/tool.ts'
import { createSender, listSenders } from '../domain/senders.ts'

export const getEmailSenders = defineTool({
  name: 'get_email_senders',
  title: 'Get email senders',
  description:
    'Lists the from-addresses, the default one first; verified says whether its domain may send now.',
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
    'Makes a from-address on a domain of the organization. The domain need not be verified yet, but sending waits for that. The first sender becomes the default.',
  group: 'senders',
  effect: 'write',
  permission: 'emails',
  input: closed({
    localPart: Type.String({ description: 'What stands before "@", such as hello.' }),
    domain: Type.String({ description: 'A domain of list_domains, by host name or id.' }),
    name: Type.String({ description: `The name readers see, up to ${SENDER_LIMITS.name} characters.` }),
    replyTo: Type.Optional(Type.String({ description: 'Where answers go when not to the sender.' })),
  }),
  output: closed({ sender: Sender }),
  handler: async (call, input) => ({ sender: await createSender(call, input) }),
})
