import { sql } from 'kysely'

import type { DomainStatus } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import type { CampaignRow } from './records.ts'

/** Who a campaign comes from. */
export type CampaignSender = { name: string; email: string; replyTo: string | null }

/** A sender, and whether email may leave from there. */
type JudgedSender = CampaignSender & { domain: string; domainStatus: DomainStatus }

/** The campaign's sender, else the default one; null where there is none. */
export async function senderOf(
  { em, organization }: Call,
  { senderId }: Pick<CampaignRow, 'senderId'>,
): Promise<JudgedSender | null> {
  return await row<JudgedSender>(
    em,
    sql`select sender.name, sender.email, sender.reply_to as "replyTo", domain.domain,
        domain.status as "domainStatus"
      from sender join domain on domain.organization_id = sender.organization_id and domain.id = sender.domain_id
      where sender.organization_id = ${organization.id}
        and (sender.id = ${senderId} or (${senderId}::uuid is null and sender.is_default))`,
  )
}

/** Why nothing can be sent from here, and how to repair it; null when email may leave. */
export function senderFault(sender: JudgedSender | null): string | null {
  if (sender === null) {
    return 'there is no sender; make one with create_email_sender, or choose one with edit_campaign'
  }
  if (sender.domainStatus === 'VERIFIED') return null
  return `the sender ${sender.email} is on ${sender.domain}, which is ${sender.domainStatus}; verify the domain or choose a sender on a verified one`
}
