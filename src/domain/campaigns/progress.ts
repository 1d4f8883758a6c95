import { sql } from 'kysely'

import type { CampaignProgress } from '../../../schema/campaign.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { timestampOrNull } from '../text.ts'
import { countOutcomes } from './outcomes.ts'
import { findCampaign } from './records.ts'

type Latest = { total: number; startedAt: string; finishedAt: string | null; seconds: number }

/** The rate is that of the last ten seconds, or of all of it when that is shorter. */
const RATE_SECONDS = 10

/** How far a campaign is. */
export async function readProgress(call: Call, campaignId: string): Promise<CampaignProgress> {
  const { em, organization } = call
  const campaign = await findCampaign(call, campaignId)
  const latest = await row<Latest>(
    em,
    sql`select total, started_at as "startedAt", finished_at as "finishedAt",
        extract(epoch from coalesce(finished_at, now()) - started_at)::float8 as seconds
      from campaign_send where organization_id = ${organization.id} and campaign_id = ${campaign.id}
      order by number desc limit 1`,
  )
  const outcomes = await countOutcomes(call, campaign.id)
  const { settled, sent, delivered, bounced, complained, failed, skipped } = outcomes
  const total = latest?.total ?? settled
  const isOver = latest !== null && latest.finishedAt !== null
  const seconds = Math.max(1, latest?.seconds ?? 1)
  const rate = isOver || seconds < RATE_SECONDS ? sent / seconds : outcomes.recent / RATE_SECONDS
  const queued = Math.max(0, total - settled)
  const isMoving = campaign.status === 'SENDING' && !campaign.paused && rate > 0
  return {
    status: campaign.status,
    paused: campaign.paused,
    total,
    queued,
    sent,
    delivered,
    bounced,
    complained,
    failed,
    skipped,
    ratePerSecond: latest === null ? null : Math.round(rate * 10) / 10,
    etaSeconds: isMoving ? Math.ceil(queued / rate) : null,
    startedAt: timestampOrNull(latest?.startedAt ?? null),
    finishedAt: timestampOrNull(latest?.finishedAt ?? null),
    ambiguousResent: outcomes.resent,
  }
}
