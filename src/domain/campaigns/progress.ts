import type { CampaignProgress } from '../../../schema/campaign.ts'
import type { Call } from '../../catalogue/tool.ts'
import { findStop } from '../deliverability/stops.ts'
import { timestampOrNull } from '../text.ts'
import { countOutcomes } from './outcomes.ts'
import { findCampaign } from './records.ts'
import { latestSend } from './sends.ts'

/** The rate covers the last ten seconds, or the whole send when that is shorter or finished. */
const RATE_SECONDS = 10

/** Returns the progress of a campaign. */
export async function readProgress(call: Call, campaignId: string): Promise<CampaignProgress> {
  const campaign = await findCampaign(call, campaignId)
  const latest = await latestSend(call, campaign.id)
  const outcomes = await countOutcomes(call, campaign.id)
  const { settled, sent, delivered, bounced, complained, failed, skipped } = outcomes
  const total = latest?.total ?? settled
  const isOver = latest !== null && latest.finishedAt !== null
  const seconds = Math.max(1, latest?.seconds ?? 1)
  const rate = isOver || seconds < RATE_SECONDS ? sent / seconds : outcomes.recent / RATE_SECONDS
  const queued = Math.max(0, total - settled)
  const isUnderWay = campaign.status === 'SENDING' && latest !== null
  const stop = isUnderWay ? await findStop(call, latest.from) : null
  const isMoving = isUnderWay && !campaign.paused && stop === null && rate > 0
  return {
    status: campaign.status,
    paused: campaign.paused,
    stop,
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
