import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { cancelSchedule } from '../src/domain/campaigns/schedule.ts'
import { startImport } from '../src/domain/imports/records.ts'
import { receiveFile } from '../src/domain/imports/upload.ts'
import { encodeId } from '../src/ids.ts'
import type { Services } from '../src/services.ts'
import {
  domainWorkflowId,
  importWorkflowId,
  NUDGE,
  runWorkflowId,
  SEGMENT_REFRESH,
  taskQueue,
} from '../temporal/contract.ts'
import { edges, publish, step, type Tenant } from '../test/helpers/automation.ts'
import { eventually } from '../test/helpers/eventually.ts'
import type { NameServer } from '../test/helpers/name-server.ts'
import { schedule } from './campaign-scenes.ts'
import { failDomain, register, verify } from './domain-scenes.ts'
import { begin } from './intake-scenes.ts'

type Studio = { services: Services; tenant: Tenant; names: NameServer }

/** So short that each of these scenes is suggested to continue as new. */
export const SHORT_HISTORY = { 'limit.historyCount.suggestContinueAsNew': 12 }

/** Workflows that continue as new, by name: each is driven to its end, and the id of its workflow answered. */
export const CONTINUED_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  'run-continued': async ({ services, tenant }) => {
    const wait = (id: string) => step(id, 'WAIT', { amount: 1, unit: 'SECONDS' })
    const steps = [step('start', 'TRIGGER', { type: 'MANUAL' }), ...['a', 'b', 'c', 'd'].map(wait)]
    const graph = { steps, edges: edges(steps.map(({ id }) => id)) }
    const { id } = await publish(services, tenant, graph, { name: 'Recorded' })
    const [workflowId, subscriberId] = [encodeId('wf', id), encodeId('sub', await tenant.subscribe())]
    await tenant.within((call) => enterByHand(call, { workflowId, subscriberId }))
    return runWorkflowId(workflowId, subscriberId, 1)
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
  'domain-continued': async (studio) => {
    const domain = await register(studio)
    for (let count = 0; count < 3; count++) await verify(studio, domain.id)
    await failDomain(studio, domain)
    return domainWorkflowId(domain.id)
  },
}

/** Workflows that are over too soon to continue as new. */
export const SHORT_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  import: async ({ services, tenant }) => {
    const kept = await tenant.within(({ organization, actor }) =>
      receiveFile({ services, organization, actor }, { resubscribe: false, triggerWorkflows: false }, file()),
    )
    const { id } = await tenant.within((call) => startImport(call, kept))
    return importWorkflowId(id)
  },
  'segment-refresh': async ({ services }) => {
    const client = await services.temporal.client()
    const { workflowId } = await client.workflow.start(SEGMENT_REFRESH, {
      taskQueue: taskQueue(services.config.temporal.taskQueue, 'background'),
      workflowId: 'segments/refresh/histories',
    })
    return workflowId
  },
}

async function* file(): AsyncIterable<Buffer> {
  yield await Promise.resolve(Buffer.from('email\nreader@example.com\n'))
}

/** Waits until a workflow goes on in another execution, which a nudge brings about sooner. */
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
