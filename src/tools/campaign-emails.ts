import Type from 'typebox'

import {
  Campaign,
  CAMPAIGN_LIMITS,
  FittedImage,
  RENDER_FORMATS,
  RenderWarning,
} from '../../schema/campaign.ts'
import { closed, defaulted, oneOf } from '../../schema/define.ts'
import { defineTool } from '../catalogue/tool.ts'
import { fitCampaignImages, measureCampaignImages } from '../domain/campaigns/fit-images.ts'
import { renderCampaign as render } from '../domain/campaigns/render.ts'
import { sendTest } from '../domain/campaigns/test-send.ts'

const campaignId = Type.String({ description: 'The id of a campaign or of a workflow email, cmp_….' })
const pixels = Type.Integer({ minimum: 1, maximum: 4_000, description: 'In pixels.' })

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

export const sendTestEmail = defineTool({
  name: 'send_test_email',
  title: 'Send a test of a campaign',
  description:
    'Sends a campaign or the internal email of a workflow as it is now to up to five addresses, with [Test] before the subject. Fallbacks show for what is not known, and nothing is counted.',
  group: 'campaigns',
  effect: 'write',
  permission: 'campaigns',
  input: closed({
    campaignId,
    emails: Type.Array(Type.String(), {
      minItems: 1,
      maxItems: CAMPAIGN_LIMITS.testEmails,
      uniqueItems: true,
      description: `1 to ${CAMPAIGN_LIMITS.testEmails} addresses; they need not be subscribers.`,
    }),
  }),
  output: closed({ emails: Type.Array(closed({ id: Type.String(), email: Type.String() })) }),
  handler: async (call, input) => ({ emails: await sendTest(call, input.campaignId, input.emails) }),
})

export const autoFitCampaignImages = defineTool({
  name: 'auto_fit_campaign_images',
  title: 'Fit the images of a campaign',
  description:
    'Gives the images of a draft or an internal email their natural size, made smaller where they exceed the bounds, never larger. Images of the library are known, others are fetched; one that cannot be read stays as it is and says why. dryRun lists the images and their sizes and changes nothing.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  input: closed({
    campaignId,
    imageIndexes: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0 }), {
        minItems: 1,
        uniqueItems: true,
        description: `Which images, by their index in the dry run; all without it. At most ${CAMPAIGN_LIMITS.imagesAtOnce} a call.`,
      }),
    ),
    maxWidth: defaulted(pixels, 600),
    maxHeight: defaulted(pixels, 400),
    dryRun: defaulted(Type.Boolean({ description: 'Only tell what would change.' }), false),
  }),
  output: closed({ campaign: Campaign, images: Type.Array(FittedImage) }),
  prepare: measureCampaignImages,
  handler: fitCampaignImages,
})
