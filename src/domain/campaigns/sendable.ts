import { type Fault, refuseFaults } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import type { CompiledEmail } from '../../content/compile.ts'
import type { ContentWarning } from '../../content/references.ts'
import { audiencePredicate } from '../audience/match.ts'
import type { Predicate } from '../audience/predicate.ts'
import { customFieldTypes, zonedScope } from '../audience/references.ts'
import { validateFilters } from '../audience/validate.ts'
import { sizeFault } from '../emails/size.ts'
import { isEmptyContent } from '../library/carried-content.ts'
import { type CampaignRow, titleOf } from './records.ts'
import { compileCampaign } from './render.ts'
import { type CampaignSender, senderFault, senderOf } from './sender.ts'

/** The parts of a campaign that can be sent: its sender, the predicate of its audience, and content warnings. */
export type Sendable = {
  sender: CampaignSender
  predicate: Predicate
  warnings: readonly ContentWarning[]
}

/**
 * Checks that a campaign can be sent, when it is scheduled and again when it is due. Throws `WRONG_STATE` with all
 * faults, or `FILTER_REFERENCE_MISSING`.
 */
export async function readSendable(call: Call, campaign: CampaignRow): Promise<Sendable> {
  const sender = await senderOf(call, campaign)
  const unable = senderFault(sender)
  const compiled = await compileCampaign(call, campaign)
  const faults = contentFaults(campaign, compiled)
  if (unable !== null) faults.push({ path: 'senderId', message: unable })
  faults.push(...validateFilters(campaign.recipientFilters, 'recipientFilters'))
  refuseAny(campaign, faults)
  const { em, organization } = call
  const predicate = await audiencePredicate(em, zonedScope(organization), campaign.recipientFilters)
  // The type of a custom field may have changed since the filters were saved.
  const customFields = await customFieldTypes(em, organization.id)
  refuseAny(campaign, validateFilters(campaign.recipientFilters, 'recipientFilters', { customFields }))
  if (sender === null) throw new Error('a campaign without a sender was not refused')
  const { name, email, stoodInFor, replyTo } = sender
  const { warnings } = compiled
  return {
    sender: { name, email, stoodInFor, replyTo: campaign.replyTo ?? replyTo },
    predicate,
    warnings,
  }
}

function refuseAny(campaign: CampaignRow, faults: readonly Fault[]): void {
  if (faults.length === 0) return
  refuseFaults(faults, `The campaign ${titleOf(campaign)} cannot be sent yet: it`, 'WRONG_STATE')
}

function contentFaults(campaign: CampaignRow, compiled: CompiledEmail): Fault[] {
  const faults: Fault[] = []
  if (campaign.subject.trim() === '') {
    faults.push({ path: 'subject', message: 'there is no subject; write one with edit_campaign' })
  }
  if (isEmptyContent(campaign.content)) {
    faults.push({ path: 'content', message: 'there is no content; write some with edit_campaign' })
  } else if (!compiled.hasUnsubscribeLink) {
    const message =
      'there is no unsubscribe link; add a link to {{unsubscribeUrl}} with edit_campaign, such as [Unsubscribe]({{unsubscribeUrl}})'
    faults.push({ path: 'content', message })
  }
  const size = sizeFault(compiled)
  if (size !== null) faults.push({ path: 'content', message: size })
  return faults
}
