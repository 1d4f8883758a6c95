import { beginSend, cancelSend } from '../../src/domain/campaigns/begin.ts'
import { closeRecipients } from '../../src/domain/campaigns/close.ts'
import { deliver } from '../../src/domain/campaigns/deliver.ts'
import { freezeAudience } from '../../src/domain/campaigns/freeze.ts'
import type { SendKey } from '../../src/domain/campaigns/sends.ts'
import type { WorkControl } from '../../src/domain/work-control.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type {
  CampaignActivities,
  CampaignSendProgress,
  CampaignSendRequest,
} from '../../temporal/contract.ts'
import { longWork } from './long-work.ts'

type Control = WorkControl<CampaignSendProgress>
type Work = (services: Services, key: SendKey, control: Control) => Promise<CampaignSendProgress>

/** The database side of CampaignSend. */
export function createCampaignActivities(services: Services): CampaignActivities {
  async function run(request: CampaignSendRequest, work: Work): Promise<CampaignSendProgress> {
    return await longWork<CampaignSendProgress, CampaignSendProgress>(services, async (control) => {
      const key = {
        organizationId: decodeId('org', request.organizationId),
        campaignId: decodeId('cmp', request.campaignId),
        number: request.number,
      }
      const progress = await work(services, key, control)
      // Here, so that an attempt that follows a crash does it again.
      if (progress.stage === 'FAILED') await closeRecipients(services, key)
      return progress
    })
  }

  return {
    beginCampaign: (request) => run(request, beginAndGoOn),
    freezeAudience: (request) => run(request, freezeAudience),
    deliverCampaign: (request) => run(request, deliver),
    cancelCampaign: (request) => run(request, cancelSend),
  }
}

/**
 * What is due goes on at once as far as it can: a round through Temporal costs more than all of a small campaign, and
 * hundreds may be due in the same minute.
 */
async function beginAndGoOn(
  services: Services,
  key: SendKey,
  control: Control,
): Promise<CampaignSendProgress> {
  let progress = await beginSend(services, key)
  for (const [stage, work] of [
    ['FREEZING', freezeAudience],
    ['DELIVERING', deliver],
  ] as const) {
    if (progress.stage !== stage || progress.waitMs > 0 || control.isStopping()) continue
    progress = await work(services, key, control)
  }
  return progress
}
