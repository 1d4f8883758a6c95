import { sql } from 'kysely'

import type { DomainStatus } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { decodeId, missing } from '../../ids.ts'
import type { CampaignRow } from './records.ts'

/** The sender of a campaign. `stoodInFor` is the sender's own address when a fallback domain is used instead of it. */
export type CampaignSender = {
  name: string
  email: string
  stoodInFor: string | null
  replyTo: string | null
}

/** A sender with the status of its domain, and whether email may be sent from it. */
type JudgedSender = CampaignSender & { domain: string; domainStatus: DomainStatus; canLeave: boolean }

/** Returns the uuid of a sender and locks it against deletion. Throws `NOT_FOUND` when there is none. */
export async function findSender({ em, organization }: Call, senderId: string): Promise<string> {
  const found = await row<{ id: string }>(
    em,
    sql`select id from sender where organization_id = ${organization.id} and id = ${decodeId('snd', senderId)}
      for key share`,
  )
  return found?.id ?? missing('snd', senderId)
}

/** Returns the campaign's sender, else the default one; null when there is none. */
export async function senderOf(
  { em, organization }: Call,
  { senderId }: Pick<CampaignRow, 'senderId'>,
): Promise<JudgedSender | null> {
  return await row<JudgedSender>(
    em,
    sql`select sender.name, coalesce(leaving.email, sender.email) as email, leaving.stood_in_for as "stoodInFor",
        coalesce(sender.reply_to, leaving.stood_in_for) as "replyTo", domain.domain,
        domain.status as "domainStatus", leaving.email is not null as "canLeave"
      from sender join domain on domain.organization_id = sender.organization_id and domain.id = sender.domain_id
      left join lateral leave_from(sender.organization_id, sender.email, domain.status) leaving on true
      where sender.organization_id = ${organization.id}
        and (sender.id = ${senderId} or (${senderId}::uuid is null and sender.is_default))`,
  )
}

/** Returns why nothing can be sent from this sender and how to repair it; null when email can be sent. */
export function senderFault(sender: JudgedSender | null): string | null {
  if (sender === null) {
    return 'there is no sender; make one with create_email_sender, or choose one with edit_campaign'
  }
  if (sender.canLeave) return null
  return `the sender ${sender.email} is on ${sender.domain}, which is ${sender.domainStatus}; verify the domain or choose a sender on a verified one`
}
