import { sql } from 'kysely'

import type { Step } from '../schema/automation.ts'
import { execute } from '../src/database.ts'
import {
  removeFromWorkflow,
  requestFastForward,
  settleFastForward,
} from '../src/domain/automations/runs/run-control.ts'
import { resumeHeldRuns } from '../src/domain/automations/runs/runs.ts'
import { recordEvents } from '../src/domain/events.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { edges, runsOf, step, type Tenant } from '../test/helpers/automation.ts'
import type { TestServices } from '../test/helpers/database.ts'
import { eventually } from '../test/helpers/eventually.ts'

/** What scenes are played in. */
export type Studio = { services: TestServices; tenant: Tenant }
/** The graph of a scene. */
export type Graph = { steps: Step[]; edges: ReturnType<typeof edges> }
/** One person in one workflow. */
export type Performance = {
  automationId: string
  subscriberId: string
  ids: { workflowId: string; subscriberId: string }
}
type Act = (studio: Studio, who: Performance) => Promise<void>

const START = step('start', 'TRIGGER', { type: 'MANUAL' })
const SHORT = step('rest', 'WAIT', { amount: 1, unit: 'SECONDS' })
const LONG = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })
const TAG = step('tag', 'ADD_TAG', { tagNames: ['Later'] })
const MAIL = { subject: 'Hello', content: 'Hi', contentType: 'MARKDOWN' as const, transactional: false }
const UNKNOWN_TAG = [{ field: 'tags', operator: 'has_any' as const, value: ['nobody made this one'] }]

/** What is recorded: a graph, and what is done once somebody entered it. */
export type Scene = { graph: Graph; act?: Act }

/** A wait and a step after it. */
export const PLAIN: Graph = chain(START, SHORT, TAG)

/** Runs to be recorded, by name. */
export const RUN_SCENES: Record<string, Scene> = {
  waits: { graph: chain(START, SHORT, TAG, step('again', 'WAIT', { amount: 1, unit: 'SECONDS' })) },
  email: { graph: chain(START, step('hello', 'EMAIL', MAIL), SHORT, TAG) },
  branch: { graph: branch() },
  event: { graph: chain(START, forPayment(3_600), TAG), act: pay },
  timeout: { graph: chain(START, forPayment(1), TAG) },
  'fast-forward': {
    graph: chain(START, LONG, step('second', 'WAIT', { amount: 2, unit: 'DAYS' }), TAG),
    act: hurry,
  },
  waiting: { graph: chain(START, LONG, TAG), act: untilWaiting },
  paused: { graph: chain(START, SHORT, TAG), act: pauseAndResume },
  removed: { graph: chain(START, LONG, TAG), act: remove },
  canceled: { graph: chain(START, LONG, TAG), act: cancel },
  failed: {
    graph: chain(START, SHORT, step('broken', 'ADD_TAG', { tagNames: ['x'] }, { conditions: UNKNOWN_TAG })),
  },
}
function chain(...steps: Step[]): Graph {
  return { steps, edges: edges(steps.map(({ id }) => id)) }
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

async function untilWaiting({ services, tenant }: Studio, { automationId }: Performance): Promise<void> {
  await eventually('the run to wait', async () => {
    return (await runsOf(services, tenant, automationId))[0]?.status === 'WAITING'
  })
}

async function pay(studio: Studio, who: Performance): Promise<void> {
  await untilWaiting(studio, who)
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
  await client.workflow.getHandle(runWorkflowId(who.ids.workflowId, who.ids.subscriberId, 1)).cancel()
}
