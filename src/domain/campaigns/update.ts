import { sql } from 'kysely'

import type { Campaign } from '../../../schema/campaign.ts'
import { audit } from '../../catalogue/audit.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { execute } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { lockSegments } from '../segments/lock.ts'
import { type CampaignChange, editCampaign, updateFilters } from './edit.ts'
import { findCampaign, getCampaign, titleOf } from './records.ts'
import { nextStatus } from './status.ts'

/** A partial update of a campaign: the members of an edit, and its audience. */
type CampaignPatch = Omit<CampaignChange, 'operations'> & { recipientFilters?: unknown }

/** Applies the given changes all or none; an empty patch changes nothing. */
export async function updateCampaign(
  call: Call,
  campaignId: string,
  { recipientFilters, ...change }: CampaignPatch,
): Promise<Campaign> {
  if (recipientFilters !== undefined) await updateFilters(call, campaignId, recipientFilters)
  if (Object.keys(change).length > 0) await editCampaign(call, campaignId, change)
  return await getCampaign(call, campaignId)
}

/** Deletes a draft or an archived campaign with its history. Returns its id. */
export async function deleteCampaign(call: Call, campaignId: string): Promise<string> {
  // Filters may refer to the campaign, so no such filter may be added meanwhile.
  await lockSegments(call)
  const campaign = await findCampaign(call, campaignId, { lock: true })
  nextStatus(campaign, 'delete')
  await execute(
    call.em,
    sql`delete from campaign where organization_id = ${call.organization.id} and id = ${campaign.id}`,
  )
  const id = encodeId('cmp', campaign.id)
  await audit(call, 'campaign.deleted', id, { status: campaign.status })
  return id
}

/** Summarizes what deleting a campaign does. Throws when it cannot be deleted. */
export async function summarizeDeletion(call: Call, campaignId: string): Promise<Impact> {
  const campaign = await findCampaign(call, campaignId)
  nextStatus(campaign, 'delete')
  return {
    target: `the campaign ${titleOf(campaign)}`,
    effects: ['It is deleted with its history; this cannot be undone.'],
    warnings: [],
  }
}
