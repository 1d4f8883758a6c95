import { sql } from 'kysely'

import type { Campaign, HistoryEntry, HistorySource, HistorySummary } from '../../../schema/campaign.ts'
import type { Actor, Call } from '../../catalogue/tool.ts'
import { execute, row, rows } from '../../database.ts'
import { decodeId, encodeId, missing, newId } from '../../ids.ts'
import { readPosition } from '../cursor.ts'
import { keyset } from '../keyset.ts'
import { timestamp } from '../text.ts'
import { findCampaign, getCampaign } from './records.ts'

type EntryRow = Omit<HistorySummary, 'savedAt'> & { createdAt: string }

const COLUMNS = sql`id, source, subject, preview, content_type as "contentType", restored_from as "restoredFrom",
  created_at as "createdAt"`

/** Returns the source of a history entry, for campaigns and internal emails: `ai` for an agent, else `manual`. */
export function historySource({ isAgent }: Pick<Actor, 'isAgent'>): HistorySource {
  return isAgent ? 'ai' : 'manual'
}

/** Adds a history entry with the current content of the campaign; call it after a change was written. */
export async function recordHistory(
  { em, organization, actor }: Call,
  campaignId: string,
  restoredFrom: string | null = null,
): Promise<void> {
  await execute(
    em,
    sql`insert into campaign_history (id, organization_id, campaign_id, source, subject, preview, content, content_type,
        restored_from)
      select ${newId()}, organization_id, id, ${historySource(actor)}, subject, preview, content, content_type, ${restoredFrom}
      from campaign where organization_id = ${organization.id} and id = ${campaignId}`,
  )
}

/** Lists the history of a campaign, newest first. The cursor is an id, and works after its entry was deleted. */
export async function listHistory(
  call: Call,
  { campaignId, limit, cursor }: { campaignId: string; limit: number; cursor?: string | undefined },
): Promise<{ entries: HistorySummary[]; nextCursor: string | null; hasMore: boolean }> {
  const campaign = await findCampaign(call, campaignId)
  const walk = keyset(cursor === undefined ? null : readPosition('hst', cursor), limit)
  const found = await rows<EntryRow>(
    call.em,
    sql`select ${COLUMNS} from campaign_history
      where organization_id = ${call.organization.id} and campaign_id = ${campaign.id}
        ${walk.part(sql`id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  const entries = page.map(summarized)
  return { entries, nextCursor: hasMore ? (entries.at(-1)?.id ?? null) : null, hasMore }
}

/** Returns one entry with its content. */
export async function getHistoryEntry(
  call: Call,
  campaignId: string,
  historyId: string,
): Promise<HistoryEntry> {
  const campaign = await findCampaign(call, campaignId)
  const { content, ...entry } = await findEntry(call, campaign.id, historyId)
  return { ...summarized(entry), content }
}

/**
 * Restores subject, preview and content from an entry, whatever the status of the campaign: sends keep their own copy.
 * The restoration adds an entry of its own.
 */
export async function restoreHistory(call: Call, campaignId: string, historyId: string): Promise<Campaign> {
  const { em, organization } = call
  const campaign = await findCampaign(call, campaignId, { lock: true })
  const entry = await findEntry(call, campaign.id, historyId)
  await execute(
    em,
    sql`update campaign set subject = entry.subject, preview = entry.preview, content = entry.content,
        content_type = entry.content_type
      from campaign_history entry
      where campaign.organization_id = ${organization.id} and campaign.id = ${campaign.id}
        and entry.organization_id = campaign.organization_id and entry.id = ${entry.id}`,
  )
  await recordHistory(call, campaign.id, entry.id)
  return await getCampaign(call, campaignId)
}

async function findEntry(
  { em, organization }: Call,
  campaignId: string,
  historyId: string,
): Promise<EntryRow & { content: unknown }> {
  const found = await row<EntryRow & { content: unknown }>(
    em,
    sql`select ${COLUMNS}, content from campaign_history
      where organization_id = ${organization.id} and campaign_id = ${campaignId}
        and id = ${decodeId('hst', historyId)}`,
  )
  return found ?? missing('hst', historyId)
}

function summarized({ id, createdAt, restoredFrom, ...entry }: EntryRow): HistorySummary {
  return {
    ...entry,
    id: encodeId('hst', id),
    savedAt: timestamp(createdAt),
    restoredFrom: restoredFrom === null ? null : encodeId('hst', restoredFrom),
  }
}
