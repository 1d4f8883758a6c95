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

const campaignId = Type.String({
  description: 'The id of a campaign or of the internal email of a workflow (`cmp_…`).',
})
const pixels = Type.Integer({ minimum: 1, maximum: 4_000, description: 'The limit in pixels.' })

export const renderCampaign = defineTool({
  name: 'render_campaign',
  title: 'Render a campaign',
  description:
    'Renders a campaign or an internal email of a workflow as it would arrive, and returns the final subject, preview, HTML and text, with warnings about unknown variables and a missing unsubscribe link. Nothing is sent or counted. Without `subscriberId`, variables show their fallbacks.',
  group: 'campaigns',
  effect: 'read',
  permission: 'campaigns',
  input: closed({
    campaignId,
    subscriberId: Type.Optional(
      Type.String({
        description:
          'The id of the subscriber whose data fills in the variables (`sub_…`). Without it, variables show their fallbacks.',
      }),
    ),
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
    'Sends the current version of a campaign, or of an internal email of a workflow, as a test to up to five addresses, with [Test] before the subject. Variables show their fallbacks. Opens and clicks are not counted. Returns the ids of the emails.',
  group: 'campaigns',
  effect: 'write',
  permission: 'campaigns',
  input: closed({
    campaignId,
    emails: Type.Array(Type.String(), {
      minItems: 1,
      maxItems: CAMPAIGN_LIMITS.testEmails,
      uniqueItems: true,
      description: `The 1 to ${CAMPAIGN_LIMITS.testEmails} addresses to send to. They need not belong to subscribers.`,
    }),
  }),
  output: closed({ emails: Type.Array(closed({ id: Type.String(), email: Type.String() })) }),
  handler: async (call, input) => ({ emails: await sendTest(call, input.campaignId, input.emails) }),
})

export const autoFitCampaignImages = defineTool({
  name: 'auto_fit_campaign_images',
  title: 'Fit the images of a campaign',
  description:
    'Sets the images of a draft, or of an internal email of a workflow, to their natural size, scaled down to fit within `maxWidth` and `maxHeight` and never scaled up. The sizes of images in the library are known; other images are fetched. An image that cannot be read is left unchanged, with the reason. Returns the campaign and the images. With `dryRun`, lists the images and their sizes without changing anything.',
  group: 'campaigns',
  effect: 'draft',
  permission: 'campaigns',
  input: closed({
    campaignId,
    imageIndexes: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0 }), {
        minItems: 1,
        uniqueItems: true,
        description: `The images to change, by their index in the dry run, at most ${CAMPAIGN_LIMITS.imagesAtOnce} per call. Defaults to all images.`,
      }),
    ),
    maxWidth: defaulted(pixels, 600),
    maxHeight: defaulted(pixels, 400),
    dryRun: defaulted(Type.Boolean({ description: 'Whether to only report what would change.' }), false),
  }),
  output: closed({ campaign: Campaign, images: Type.Array(FittedImage) }),
  prepare: measureCampaignImages,
  handler: fitCampaignImages,
})
