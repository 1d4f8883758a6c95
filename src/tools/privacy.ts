import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { PersonalData } from '../../schema/privacy.ts'
import { defineTool } from '../catalogue/tool.ts'
import { exportPersonalData } from '../domain/personal-data.ts'

const subscriber = Type.String({ description: 'The id (sub_…) or the email address.' })

export const exportSubscriber = defineTool({
  name: 'export_subscriber',
  title: "Export a subscriber's data",
  description:
    'Reads everything that is kept of one person: profile, consent, events, emails, visits and runs.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  listed: false,
  input: closed({ subscriber }),
  output: PersonalData,
  handler: (call, input) => exportPersonalData(call, input.subscriber),
})
