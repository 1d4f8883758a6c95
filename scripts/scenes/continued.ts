import { sql } from 'kysely'

import { execute } from '../../src/database.ts'
import { cancelSchedule } from '../../src/domain/campaigns/schedule.ts'
import { domainWorkflowId, NUDGE } from '../../temporal/contract.ts'
import { step } from '../../test/helpers/automation.ts'
import { chain } from '../../test/helpers/engine.ts'
import { eventually } from '../../test/helpers/eventually.ts'
import type { NameServer } from '../../test/helpers/name-server.ts'
import { importReaders, lockReader } from './background.ts'
import { schedule } from './campaign.ts'
import { failDomain, register, verify } from './domain.ts'
import { begin } from './intake.ts'
import { enter } from './run.ts'
import { cancelWorkflow, outlast, untilDoing } from './slow-work.ts'
import type { Studio as Stage } from './studio.ts'

type Studio = Stage & { names: NameServer }

/** Temporal suggests to continue as new after this few events, so that each of these scenes does. */
export const SHORT_HISTORY = { 'limit.historyCount.suggestContinueAsNew': 12 }

/** Recipients that are stored, and rows that are imported, in one transaction. */
const AUDIENCE_PAGE = 10_000
const IMPORT_PAGE = 500

/** Workflows that continue as new. Each function starts one, brings it to its end and returns its workflow id. */
export const CONTINUED_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  'run-continued': async (studio) => {
    const wait = (id: string) => step(id, 'WAIT', { amount: 1, unit: 'SECONDS' })
    const { run } = await enter(studio, chain(['a', 'b', 'c', 'd'].map(wait)))
    return run
  },
  'intake-continued': async (studio) => {
    const workflowId = await begin(studio, 'PAUSED')
    await continued(studio, workflowId)
    const { tenant, services } = studio
    const em = services.orm.em.fork()
    await execute(
      em,
      sql`update automation set status = 'ACTIVE' where organization_id = ${tenant.id} and status = 'PAUSED'`,
    )
    return workflowId
  },
  'campaign-continued': async (studio) => {
    const workflowId = await schedule(studio, new Date(Date.now() + 86_400_000))
    const [, campaignId = ''] = workflowId.split('/')
    await continued(studio, workflowId, { isNudged: true })
    await studio.tenant.within((call) => cancelSchedule(call, campaignId))
    return workflowId
  },
  // No delivery lane runs here, so the campaign is never sent and lasts until it is canceled.
  'sending-continued': async ({ services, tenant }) => {
    await execute(
      services.orm.em.fork(),
      sql`insert into subscriber (id, organization_id, email, name, status)
        select new_id(), ${tenant.id}, 'r' || number || '@reader.example', 'Reader', 'SUBSCRIBED'
        from generate_series(1, ${AUDIENCE_PAGE} + 1) as number`,
    )
    const frozen = sql`lock table campaign_recipient in share mode`
    const workflowId = await outlast(services, frozen, () => schedule({ tenant }))
    await untilDoing(services, workflowId, 'deliverCampaign')
    await cancelWorkflow(services, workflowId)
    return workflowId
  },
  'import-continued': async (studio) => {
    const { services } = studio
    const [first, second] = [await lockReader(studio, 0), await lockReader(studio, IMPORT_PAGE)]
    return await outlast(services, second, () =>
      outlast(services, first, () => importReaders(studio, 2 * IMPORT_PAGE + 1)),
    )
  },
  'domain-continued': async (studio) => {
    const domain = await register(studio)
    for (let count = 0; count < 3; count++) await verify(studio, domain.id)
    await failDomain(studio, domain)
    return domainWorkflowId(domain.id)
  },
}

/** Waits until a workflow has continued as new. With `isNudged`, signals make its history grow sooner. */
async function continued({ services }: Studio, workflowId: string, { isNudged = false } = {}): Promise<void> {
  const client = await services.temporal.client()
  const handle = client.workflow.getHandle(workflowId)
  const idNow = async () => (await handle.describe()).runId
  const first = await eventually('the workflow to begin', () => idNow().catch(() => null))
  await eventually(
    'the workflow to continue as new',
    async () => {
      if (isNudged) await handle.signal(NUDGE)
      return (await idNow()) !== first
    },
    { withinMs: 120_000, everyMs: 500 },
  )
}
