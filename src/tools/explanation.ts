import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Explanation } from '../../schema/explanation.ts'
import { subscriberChoice } from '../../schema/subscriber.ts'
import { defineTool } from '../catalogue/tool.ts'
import { explainDelivery as explain } from '../domain/explanation/explain.ts'

export const explainDelivery = defineTool({
  name: 'explain_delivery',
  title: 'Explain a delivery',
  description:
    'Explains why one subscriber received a campaign or the email of a workflow, did not receive it, or would not receive it. Returns every reason in order, both decisions recorded at the time and conditions that hold now, and a summary in words. Send exactly one of `campaignId` and `workflowId`.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    ...subscriberChoice,
    campaignId: Type.Optional(
      Type.String({ description: 'The id of a campaign (`cmp_…`). Send this or `workflowId`, not both.' }),
    ),
    workflowId: Type.Optional(
      Type.String({ description: 'The id of a workflow (`wf_…`). Send this or `campaignId`, not both.' }),
    ),
  }),
  output: Explanation,
  handler: explain,
})
