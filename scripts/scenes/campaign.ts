import { sql } from 'kysely'

import { execute } from '../../src/database.ts'
import { createCampaign } from '../../src/domain/campaigns/create.ts'
import { cancelSchedule, scheduleCampaign } from '../../src/domain/campaigns/schedule.ts'
import { campaignWorkflowId } from '../../temporal/contract.ts'
import { eventually } from '../../test/helpers/eventually.ts'
import type { Studio } from './studio.ts'

const DAY_MS = 86_400_000
const CONTENT = 'Hi, [leave]({{unsubscribeUrl}}).'

/** Campaigns whose histories are recorded. Each function starts one and returns its workflow id. */
export const CAMPAIGN_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  campaign: (studio) => schedule(studio),
  'campaign-canceled': async (studio) => {
    const workflowId = await schedule(studio, new Date(Date.now() + DAY_MS))
    const client = await studio.services.temporal.client()
    await eventually('the send to wait', async () => {
      const { historyLength } = await client.workflow.getHandle(workflowId).describe()
      return historyLength > 10
    })
    const [, campaignId = ''] = workflowId.split('/')
    await studio.tenant.within((call) => cancelSchedule(call, campaignId))
    return workflowId
  },
  'campaign-refused': async (studio) => {
    const workflowId = await schedule(studio, new Date(Date.now() + 2_000))
    await execute(
      studio.services.orm.em.fork(),
      sql`update campaign set subject = '' where organization_id = ${studio.tenant.id} and send_at > now()
        and send_at < now() + interval '1 minute'`,
    )
    return workflowId
  },
}

/** Schedules a campaign for `due`, or for now, and returns the workflow id. */
export async function schedule({ tenant }: Pick<Studio, 'tenant'>, due?: Date): Promise<string> {
  const { id } = await tenant.within((call) =>
    createCampaign(call, { subject: 'News', name: 'Recorded', contentType: 'MARKDOWN', content: CONTENT }),
  )
  const wish = { campaignId: id, timezone: 'UTC', ...(due && { date: due.toISOString() }) }
  await tenant.within((call) => scheduleCampaign(call, wish))
  return campaignWorkflowId(id, 1)
}
