import { sql } from 'kysely'

import type { DomainStatus } from '../../../schema/values.ts'
import { type Fault, refuseFaults } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { audiencePredicate } from '../audience/match.ts'
import type { Predicate } from '../audience/predicate.ts'
import { customFieldTypes } from '../audience/references.ts'
import { validateFilters } from '../audience/validate.ts'
import { isEmptyContent } from '../carried-content.ts'
import { type CampaignRow, titleOf } from './records.ts'
import { compileCampaign } from './render.ts'

/** Who a campaign comes from. */
export type CampaignSender = { name: string; email: string; replyTo: string | null }

/** What a campaign needs to be sent: its sender, and the condition that its audience fulfils. */
export type Sendable = { sender: CampaignSender; predicate: Predicate }

type SenderRow = CampaignSender & { domain: string; domainStatus: DomainStatus }

/**
 * Refuses a campaign that cannot be sent as it is: WRONG_STATE with everything that is missing, or
 * FILTER_REFERENCE_MISSING. Asked when it is scheduled, and again when it is due.
 */
export async function readSendable(call: Call, campaign: CampaignRow): Promise<Sendable> {
  const sender = await senderOf(call, campaign)
  const faults = [...(await contentFaults(call, campaign)), ...senderFaults(sender)]
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

function senderFaults(sender: SenderRow | null): Fault[] {
  if (sender === null) {
    const message = 'there is no sender; make one with create_email_sender, or choose one with edit_campaign'
    return [{ path: 'senderId', message }]
  }
  if (sender.domainStatus === 'VERIFIED') return []
  const message = `the sender ${sender.email} is on ${sender.domain}, which is ${sender.domainStatus}; verify the domain or choose a sender on a verified one`
  return [{ path: 'senderId', message }]
}

/** The campaign's sender, else the default one. */
async function senderOf({ em, organization }: Call, { senderId }: CampaignRow): Promise<SenderRow | null> {
  return await row<SenderRow>(
    em,
    sql`select sender.name, sender.email, sender.reply_to as "replyTo", domain.domain,
        domain.status as "domainStatus"
      from sender join domain on domain.organization_id = sender.organization_id and domain.id = sender.domain_id
      where sender.organization_id = ${organization.id}
        and (sender.id = ${senderId} or (${senderId}::uuid is null and sender.is_default))`,
  )
}
