import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { PersonalData } from '../../schema/privacy.ts'
import { defineTool } from '../catalogue/tool.ts'
import { eraseSubscriber as erase, summarizeErasure } from '../domain/subscribers/erasure.ts'
import { exportPersonalData } from '../domain/subscribers/personal-data.ts'

const subscriber = Type.String({ description: 'The id (`sub_…`) or the email address of the subscriber.' })

export const exportSubscriber = defineTool({
  name: 'export_subscriber',
  title: "Export a subscriber's data",
  description:
    'Returns all data that is stored about one subscriber: profile, consent, events, emails, visits and workflow runs.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  listed: false,
  input: closed({ subscriber }),
  output: PersonalData,
  handler: (call, input) => exportPersonalData(call, input.subscriber),
})

export const eraseSubscriber = defineTool({
  name: 'erase_subscriber',
  title: 'Erase a subscriber',
  description:
    'Permanently erases a subscriber. Their profile, the content of their emails and their workflow runs are deleted, events are kept without personal data, and a hash of the address stays suppressed.',
  group: 'subscribers',
  effect: 'impact',
  permission: 'subscribers',
  listed: false,
  input: closed({ subscriber }),
  output: closed({ id: Type.String({ description: 'The id of the erased subscriber (`sub_…`).' }) }),
  summarize: (call, input) => summarizeErasure(call, input.subscriber),
  handler: async (call, input) => ({ id: await erase(call, input.subscriber) }),
})
