import Type from 'typebox'

import { Campaign, RENDER_FORMATS, RenderWarning } from '../../schema/campaign.ts'
import { closed, defaulted, oneOf } from '../../schema/define.ts'
import { defineTool } from '../catalogue/tool.ts'
import { getCampaign as readCampaign, renderCampaign as render } from '../domain/campaigns.ts'

const campaignId = Type.String({ description: 'The id of a campaign or of a workflow email, cmp_….' })

export const getCampaign = defineTool({
  name: 'get_campaign',
  title: 'Get a campaign',
  description:
    'Reads a campaign or the internal email of a workflow step: content, subject, sender, audience.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({ campaignId }),
  output: closed({ campaign: Campaign }),
  handler: async (call, input) => ({ campaign: await readCampaign(call, input.campaignId) }),
})

export const renderCampaign = defineTool({
  name: 'render_campaign',
  title: 'Render a campaign',
  description:
    'Shows the final HTML and text of a campaign or workflow email as it would arrive, without counting, and warns of ' +
    'unknown variables and a missing unsubscribe link. Nothing is sent. Without subscriberId, fallbacks show.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({
    campaignId,
    subscriberId: Type.Optional(Type.String({ description: 'Whose variables fill it in, sub_….' })),
    format: defaulted(oneOf(RENDER_FORMATS), 'both'),
  }),
  output: closed({
    subject: Type.String(),
    preview: Type.String(),
    html: Type.Optional(Type.String()),
    text: Type.Optional(Type.String()),
    warnings: Type.Array(RenderWarning),
  }),
  handler: render,
})
