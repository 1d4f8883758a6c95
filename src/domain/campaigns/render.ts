import type { RenderFormat, RenderWarning } from '../../../schema/campaign.ts'
import type { Call } from '../../catalogue/tool.ts'
import { compileContent, type CompiledEmail } from '../../content/compile.ts'
import { fillContent } from '../../content/fill.ts'
import { customFieldTypes } from '../audience/references.ts'
import { sizeFault } from '../emails/size.ts'
import { withSnippets } from '../library/carried-content.ts'
import { organizationVariables, personVariables } from '../library/variables.ts'
import { findSubscriber } from '../subscribers/records.ts'
import { type CampaignRow, findCampaign } from './records.ts'

/** An email as its recipient gets it, without tracking; parts that were not requested are absent. */
export type Rendered = {
  subject: string
  preview: string
  html?: string
  text?: string
  warnings: RenderWarning[]
}

/**
 * Renders a campaign for one subscriber or, without `subscriberId`, for an unknown person, with the code that renders
 * every sent email. Links are not tracked, and the unsubscribe and online addresses are samples. Without a subscriber,
 * conditional content shows as well.
 */
export async function renderCampaign(
  call: Call,
  {
    campaignId,
    subscriberId,
    format,
  }: { campaignId: string; subscriberId?: string | undefined; format: RenderFormat },
): Promise<Rendered> {
  const campaign = await findCampaign(call, campaignId)
  const variables = await variablesFor(call, subscriberId)
  const compiled = await compileCampaign(call, campaign)
  const { baseUrl } = call.services.config
  const filled = fillContent(compiled, {
    variables,
    urls: { unsubscribe: `${baseUrl}/u/preview`, online: `${baseUrl}/v/preview` },
    showAll: subscriberId === undefined,
  })
  return {
    subject: filled.subject,
    preview: filled.preheader,
    ...(format !== 'text' && { html: filled.html }),
    ...(format !== 'html' && { text: filled.text }),
    warnings: [
      ...compiled.warnings.map(({ code, message }) => ({ code, message })),
      ...missingParts(campaign, compiled),
    ],
  }
}

/** Compiles a campaign. Frozen content already includes its snippets; other content gets their current versions. */
export async function compileCampaign(
  call: Call,
  campaign: CampaignRow,
  { isFrozen = false }: { isFrozen?: boolean } = {},
): Promise<CompiledEmail> {
  const { content, contentType, subject, preview, transactional } = campaign
  const fields = await customFieldTypes(call.em, call.organization.id)
  return compileContent({
    contentType,
    source: isFrozen ? content : await withSnippets(call, contentType, content),
    subject,
    preview,
    kind: transactional ? 'transactional' : 'marketing',
    knownVariables: fields.keys(),
  })
}

/** Returns values by variable name; without a subscriber only those of the organization, so fallbacks show. */
async function variablesFor(call: Call, subscriberId: string | undefined): Promise<Record<string, unknown>> {
  const { name } = call.organization
  if (subscriberId === undefined) return organizationVariables(name)
  return personVariables(await findSubscriber(call, { subscriberId }), name)
}

/** Warns of omissions that are no content faults but that the sender may not expect. */
function missingParts({ kind, subject }: CampaignRow, compiled: CompiledEmail): RenderWarning[] {
  const warnings: RenderWarning[] = []
  if (subject.trim() === '') warnings.push({ code: 'NO_SUBJECT', message: 'There is no subject; write one.' })
  const size = sizeFault(compiled)
  if (size !== null) warnings.push({ code: 'TOO_LARGE', message: `As it is it cannot be sent: ${size}.` })
  if (!compiled.unsubscribeLinkAdded) return warnings
  const consequence =
    kind === 'BROADCAST'
      ? 'scheduling it will be refused: add {{unsubscribeUrl}} as a link, or a footer.'
      : 'a footer with one was added.'
  warnings.push({
    code: 'UNSUBSCRIBE_LINK_ADDED',
    message: `The content has no unsubscribe link; ${consequence}`,
  })
  return warnings
}
