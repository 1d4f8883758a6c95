import { type Fault, refuseFaults } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { audiencePredicate } from '../audience/match.ts'
import type { Predicate } from '../audience/predicate.ts'
import { customFieldTypes } from '../audience/references.ts'
import { validateFilters } from '../audience/validate.ts'
import { isEmptyContent } from '../carried-content.ts'
import { type CampaignRow, titleOf } from './records.ts'
import { compileCampaign } from './render.ts'
import { type CampaignSender, senderFault, senderOf } from './sender.ts'

/** What a campaign needs to be sent: its sender, and the condition that its audience fulfils. */
export type Sendable = { sender: CampaignSender; predicate: Predicate }

/**
 * Refuses a campaign that cannot be sent as it is: WRONG_STATE with everything that is missing, or
 * FILTER_REFERENCE_MISSING. Asked when it is scheduled, and again when it is due.
 */
export async function readSendable(call: Call, campaign: CampaignRow): Promise<Sendable> {
  const sender = await senderOf(call, campaign)
  const unable = senderFault(sender)
  const faults = await contentFaults(call, campaign)
  if (unable !== null) faults.push({ path: 'senderId', message: unable })
  faults.push(...validateFilters(campaign.recipientFilters, 'recipientFilters'))
  refuseAny(campaign, faults)
  const { em, organization } = call
  const scope = { organizationId: organization.id, timezone: organization.timezone }
  const predicate = await audiencePredicate(em, scope, campaign.recipientFilters)
  // A custom field may have another type by now than when the filters were saved.
  const customFields = await customFieldTypes(em, scope)
  refuseAny(campaign, validateFilters(campaign.recipientFilters, 'recipientFilters', { customFields }))
  if (sender === null) throw new Error('a campaign without a sender was not refused')
  const { name, email, replyTo } = sender
  return { sender: { name, email, replyTo: campaign.replyTo ?? replyTo }, predicate }
}

function refuseAny(campaign: CampaignRow, faults: readonly Fault[]): void {
  if (faults.length === 0) return
  refuseFaults(faults, `The campaign ${titleOf(campaign)} cannot be sent yet: it`, 'WRONG_STATE')
}

async function contentFaults(call: Call, campaign: CampaignRow): Promise<Fault[]> {
  const faults: Fault[] = []
  if (campaign.subject.trim() === '') {
    faults.push({ path: 'subject', message: 'there is no subject; write one with edit_campaign' })
  }
  const compiled = await compileCampaign(call, campaign)
  if (isEmptyContent(campaign.content)) {
    faults.push({ path: 'content', message: 'there is no content; write some with edit_campaign' })
  } else if (!compiled.hasUnsubscribeLink) {
    const message =
      'there is no unsubscribe link; add a link to {{unsubscribeUrl}} with edit_campaign, such as [Unsubscribe]({{unsubscribeUrl}})'
    faults.push({ path: 'content', message })
  }
  return faults
}
