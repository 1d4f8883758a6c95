import { sql } from 'kysely'

import type { Step } from '../../schema/automation.ts'
import { execute } from '../../src/database.ts'
import { enterByHand } from '../../src/domain/automations/entry/enter-by-hand.ts'
import {
  removeFromWorkflow,
  requestFastForward,
  settleFastForward,
} from '../../src/domain/automations/runs/run-control.ts'
import { resumeHeldRuns } from '../../src/domain/automations/runs/runs.ts'
import { recordEvents } from '../../src/domain/events.ts'
import { encodeId } from '../../src/ids.ts'
import { runWorkflowId } from '../../temporal/contract.ts'
import { edges, publish, runsOf, step, type Tenant } from '../../test/helpers/automation.ts'
import { chain, type Graph, START } from '../../test/helpers/engine.ts'
import { eventually } from '../../test/helpers/eventually.ts'
import type { Studio } from './studio.ts'

/** One subscriber in one workflow. `run` is the id of the Temporal workflow of their run. */
export type Performance = {
  automationId: string
  subscriberId: string
  ids: { workflowId: string; subscriberId: string }
  run: string
}

/** A wait of one second. */
export const SHORT = step('rest', 'WAIT', { amount: 1, unit: 'SECONDS' })
const LONG = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })
const TAG = step('tag', 'ADD_TAG', { tagNames: ['Later'] })
const MAIL = { subject: 'Hello', content: 'Hi', contentType: 'MARKDOWN' as const, transactional: false }
const UNKNOWN_TAG = [{ field: 'tags', operator: 'has_any' as const, value: ['nobody made this one'] }]

/** A wait followed by another step. */
export const PLAIN: Graph = chain([SHORT, TAG])

/** Runs whose histories are recorded. Each function starts one and returns its workflow id. */
export const RUN_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  waits: played(chain([SHORT, TAG, step('again', 'WAIT', { amount: 1, unit: 'SECONDS' })])),
  email: played(chain([step('hello', 'EMAIL', MAIL), SHORT, TAG])),
  branch: played(branch()),
  event: played(chain([forPayment(3_600), TAG]), pay),
  timeout: played(chain([forPayment(1), TAG])),
  'fast-forward': played(chain([LONG, step('second', 'WAIT', { amount: 2, unit: 'DAYS' }), TAG]), hurry),
  waiting: played(chain([LONG, TAG]), untilAsleep),
  paused: played(chain([SHORT, TAG]), pauseAndResume),
  removed: played(chain([LONG, TAG]), remove),
  canceled: played(chain([LONG, TAG]), cancel),
  failed: played(chain([SHORT, step('broken', 'ADD_TAG', { tagNames: ['x'] }, { conditions: UNKNOWN_TAG })])),
}

/** Returns a scene in which a new subscriber enters `graph`; `act` then acts on the run. */
function played(graph: Graph, act?: (studio: Studio, who: Performance) => Promise<void>) {
  return async (studio: Studio): Promise<string> => {
    const who = await enter(studio, graph)
    await act?.(studio, who)
    return who.run
  }
}

/** Publishes `graph` and lets a new subscriber enter it. */
export async function enter({ services, tenant }: Studio, graph: Graph): Promise<Performance> {
  const { id } = await publish(services, tenant, graph, { name: 'Recorded' })
  const subscriberId = await tenant.subscribe()
  const ids = { workflowId: encodeId('wf', id), subscriberId: encodeId('sub', subscriberId) }
  await tenant.within((call) => enterByHand(call, ids))
  return { automationId: id, subscriberId, ids, run: runWorkflowId(ids.workflowId, ids.subscriberId, 1) }
}

function branch(): Graph {
  const filters = [{ field: 'tags', operator: 'has_any' as const, value: ['later'] }]
  const fork = step('fork', 'BRANCH', { paths: [{ id: 'tagged', filters }] })
  return {
    steps: [START, TAG, SHORT, fork, step('out', 'EXIT', {})],
    edges: edges(['start', 'tag', 'rest', 'fork'], ['fork', 'tagged', 'out']),
  }
}

function forPayment(seconds: number): Step {
  return step('paid', 'WAIT_UNTIL', {
    mode: 'EVENT',
    eventType: 'PAID',
    scope: 'STEP',
    timeout: { amount: seconds, unit: 'SECONDS' },
    onTimeout: 'CONTINUE',
  })
}

/** Waits until the run is WAITING, in step `stepId` if given. */
export async function untilWaiting(
  { services, tenant }: Studio,
  { automationId }: Performance,
  stepId?: string,
): Promise<void> {
  await eventually(`the run to wait ${stepId ?? ''}`, async () => {
    const [run] = await runsOf(services, tenant, automationId)
    return run?.status === 'WAITING' && (stepId === undefined || run.stepId === stepId)
  })
}

async function untilAsleep({ services }: Studio, { run }: Performance): Promise<void> {
  const client = await services.temporal.client()
  await eventually('the timer of the run', async () => {
    const { events = [] } = await client.workflow.getHandle(run).fetchHistory()
    return events?.some(({ timerStartedEventAttributes }) => timerStartedEventAttributes)
  })
}

/** Records a PAID event once the run waits. */
export async function pay(studio: Studio, who: Performance, stepId?: string): Promise<void> {
  await untilWaiting(studio, who, stepId)
  const { subscriberId } = who
  await studio.tenant.within((call) => recordEvents(call, [{ subscriberId, type: 'PAID', data: {} }]))
}

async function hurry(studio: Studio, who: Performance): Promise<void> {
  const { services, tenant } = studio
  for (const expectedStepId of ['pause', 'second']) {
    await untilWaiting(studio, who)
    const { data, settling } = await tenant.within(async (call) => ({
      data: await requestFastForward(call, { ...who.ids, expectedStepId }),
      settling: { organization: call.organization, actor: call.actor, services },
    }))
    await settleFastForward(settling, data)
  }
}

async function pauseAndResume(studio: Studio, who: Performance): Promise<void> {
  const { services, tenant } = studio
  await untilWaiting(studio, who)
  await setStatus(tenant, who.automationId, 'PAUSED')
  await eventually('the run to be held', async () => {
    return (await runsOf(services, tenant, who.automationId))[0]?.held
  })
  await setStatus(tenant, who.automationId, 'ACTIVE')
}

async function setStatus(tenant: Tenant, automationId: string, status: string): Promise<void> {
  await tenant.within(async (call) => {
    await execute(
      call.em,
      sql`update automation set status = ${status} where organization_id = ${tenant.id} and id = ${automationId}`,
    )
    if (status === 'ACTIVE') await resumeHeldRuns(call, automationId)
  })
}

async function remove(studio: Studio, who: Performance): Promise<void> {
  await untilWaiting(studio, who)
  await studio.tenant.within((call) => removeFromWorkflow(call, who.ids))
}

async function cancel(studio: Studio, who: Performance): Promise<void> {
  await untilWaiting(studio, who)
  const client = await studio.services.temporal.client()
  await client.workflow.getHandle(who.run).cancel()
}
