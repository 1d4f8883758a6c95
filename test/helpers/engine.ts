import { sql } from 'kysely'

import type { Edge, Settings, Step } from '../../schema/automation.ts'
import type { Run } from '../../schema/run.ts'
import { row, rows } from '../../src/database.ts'
import { type Lanes, startLanes } from '../../src/delivery/lanes.ts'
import { enterByHand } from '../../src/domain/automations/entry/enter-by-hand.ts'
import { requestFastForward, settleFastForward } from '../../src/domain/automations/runs/run-control.ts'
import { recordEvents } from '../../src/domain/events.ts'
import { encodeId } from '../../src/ids.ts'
import { startSegmentWatch } from '../../worker/segment-watch.ts'
import { type Engine, startEngine } from '../../worker/workers.ts'
import { edges, makeTenant, publish, type RunRow, runsOf, step, type Tenant, trailOf } from './automation.ts'
import { type TestServices, testServices } from './database.ts'
import { eventually } from './eventually.ts'
import { type Sink, startSmtpSink } from './smtp-sink.ts'

/** The trigger of graphs that tests enter by hand. */
export const START = step('start', 'TRIGGER', { type: 'MANUAL' })

/** A step that shows in the trail that a run came to it. */
export const TAGGED = step('tag', 'ADD_TAG', { tagNames: ['Later'] })

/** A graph to publish. */
export type Graph = {
  steps: Step[]
  edges: Edge[]
  settings?: Partial<Settings>
  successGoals?: unknown[]
}

/** Returns a graph with the steps in sequence after START. */
export function chain(steps: readonly Step[], settings: Partial<Settings> = {}): Graph {
  const all = [START, ...steps]
  return { steps: all, edges: edges(all.map(({ id }) => id)), settings }
}

/** A run with its trail. */
export type Ended = RunRow & { trail: string[]; automationId: string }

/** A real engine with its lanes, a relay that keeps the mail, and one organization. */
export type EngineWorld = {
  services: TestServices
  sink: Sink
  tenant: Tenant
  publish(graph: Graph): Promise<string>
  enter(automationId: string, subscriberId: string, context?: Record<string, unknown>): Promise<Run>
  /** Waits until the newest run of an automation matches `what` and returns it. */
  runWhen(automationId: string, what: Partial<RunRow>): Promise<RunRow>
  endOf(automationId: string): Promise<Ended>
  /** Publishes a graph, enters a subscriber, and waits for the end of the run. */
  ended(graph: Graph, subscriberId: string, context?: Record<string, unknown>): Promise<Ended>
  happened(subscriberId: string, type: string, data?: Record<string, unknown>): Promise<void>
  fastForward(automationId: string, subscriberId: string): Promise<void>
  eventsOf(
    subscriberId: string,
    type: string,
  ): Promise<{ data: Record<string, unknown>; cause: { kind: string } }[]>
  fieldsOf(subscriberId: string): Promise<unknown>
  close(): Promise<void>
}

/**
 * Starts an engine. `name` keeps its task queues apart from those of other test files. With `watching`, segments and
 * goals are watched too.
 */
export async function openEngine(
  name: string,
  env: Record<string, string> = {},
  options: { watching?: boolean } = {},
): Promise<EngineWorld> {
  const sink = await startSmtpSink()
  const services = await testServices({
    TEMPORAL_TASK_QUEUE: `${name}-${process.pid}`,
    RELAY_URL: sink.url,
    LOG_LEVEL: 'error',
    ...env,
  })
  const lanes: Lanes = await startLanes(services, { workerName: 'test' })
  const engine: Engine = await startEngine(services)
  await engine.ready
  const watch = options.watching ? startSegmentWatch(services) : undefined
  const tenant = await makeTenant(services)
  const idsOf = (automationId: string, subscriberId: string) => ({
    workflowId: encodeId('wf', automationId),
    subscriberId: encodeId('sub', subscriberId),
  })
  const world: EngineWorld = {
    services,
    sink,
    tenant,
    publish: async (graph) => (await publish(services, tenant, graph)).id,
    enter: (automationId, subscriberId, context = {}) =>
      tenant.within((call) => enterByHand(call, { ...idsOf(automationId, subscriberId), context })),
    runWhen: (automationId, what) =>
      eventually(`a run with ${JSON.stringify(what)}`, async () => {
        const run = (await runsOf(services, tenant, automationId)).at(-1)
        const isSo = run && Object.entries(what).every(([key, value]) => Object(run)[key] === value)
        return isSo ? run : null
      }),
    async endOf(automationId) {
      const run = await eventually('the run to end', async () => {
        const newest = (await runsOf(services, tenant, automationId)).at(-1)
        return newest && ['COMPLETED', 'CANCELED', 'FAILED'].includes(newest.status) ? newest : null
      })
      return { ...run, trail: await trailOf(services, run.id), automationId }
    },
    async ended(graph, subscriberId, context = {}) {
      const id = await world.publish(graph)
      await world.enter(id, subscriberId, context)
      return await world.endOf(id)
    },
    async happened(subscriberId, type, data = {}) {
      await tenant.within((call) => recordEvents(call, [{ subscriberId, type, data }]))
    },
    async fastForward(automationId, subscriberId) {
      let expectedStepId: string | undefined
      await eventually('the run to move', async () => {
        const ids = { ...idsOf(automationId, subscriberId), expectedStepId }
        const { data, call } = await tenant.within(async (within) => ({
          data: await requestFastForward(within, ids),
          call: { organization: within.organization, actor: within.actor, services },
        }))
        // When the outcome is unknown yet, the next attempt names the same step.
        expectedStepId = data.fromStep.id
        await settleFastForward(call, data)
        return true
      })
    },
    eventsOf: (subscriberId, type) =>
      rows(
        services.orm.em.fork(),
        sql`select data, cause from subscriber_event where organization_id = ${tenant.id}
          and subscriber_id = ${subscriberId} and type = ${type} order by id`,
      ),
    async fieldsOf(subscriberId) {
      const found = await row<{ fields: object }>(
        services.orm.em.fork(),
        sql`select fields from subscriber where organization_id = ${tenant.id} and id = ${subscriberId}`,
      )
      return found?.fields
    },
    async close() {
      await watch?.stop()
      await engine.stop()
      await lanes.stop()
      await services.close()
      await sink.close()
    },
  }
  return world
}
