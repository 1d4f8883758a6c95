import { sql } from 'kysely'

import type { HistorySource } from '../../../schema/campaign.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute } from '../../database.ts'
import { newId } from '../../ids.ts'

/** Keeps what the campaign says now, as the entry of the change that has just been written. */
export async function recordHistory(
  { em, organization }: Call,
  campaignId: string,
  source: HistorySource,
): Promise<void> {
  await execute(
    em,
    sql`insert into campaign_history (id, organization_id, campaign_id, source, subject, preview, content, content_type)
      select ${newId()}, organization_id, id, ${source}, subject, preview, content, content_type
      from campaign where organization_id = ${organization.id} and id = ${campaignId}`,
  )
}
