import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import {
  removeFromWorkflow,
  requestFastForward,
  settleFastForward,
} from '../src/domain/automations/runs/run-control.ts'
import { resumeHeldRuns } from '../src/domain/automations/runs/runs.ts'
import { recordEvents } from '../src/domain/events.ts'
import { encodeId } from '../src/ids.ts'
import type { Services } from '../src/services.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { edges, makeTenant, publish, step, type Tenant } from '../test/helpers/automation.ts'
import { testServices } from '../test/helpers/database.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { type Recorded, readHistories, replay, toPlainEvents } from '../test/helpers/histories.ts'
import { scratchDirectory, startOwnTemporal } from '../test/helpers/services.ts'
import { startEngine } from '../worker/workers.ts'
import { atOnce, defineExperiment, is } from './experiment.ts'

const SHORT = { amount: 1, unit: 'SECONDS' as const }
const WAITS = Array.from({ length: 8 }, (_, number) => step(`wait${number}`, 'WAIT', SHORT))
const STEPS = [
  step('start', 'TRIGGER', { type: 'EVENT', eventType: 'GO' }),
  step('paid', 'WAIT_UNTIL', {
    mode: 'EVENT',
    eventType: 'PAID',
    scope: 'STEP',
    timeout: { amount: 3, unit: 'SECONDS' },
    onTimeout: 'CONTINUE',
  }),
  ...WAITS,
  step('tag', 'ADD_TAG', { tagNames: ['through'] }),
]
/** The limit after which Temporal suggests to continue as new; it is reached during the waits. */
const LONGEST_HISTORY = 40
const READERS = 8
/** The actions on a run. The last `ENDING` of them end it. */
const NAMES = ['events', 'fast-forwards', 'nudges', 'pauses', 'removals', 'cancellations']
const ENDING = 2

/**
 * Signals, updates, cancellations and pauses arrive at any point of a run; each recorded history must replay without
 * differences.
 */
export const replays = defineExperiment({
  id: 'R14',
  title: 'histories, recorded and made by chance, are replayed',
  sizes: { small: { runs: 20 }, full: { runs: 300 } },
  async run(lab, { runs }) {
    const temporal = await startOwnTemporal(scratchDirectory('temporal'), 0, {
      'limit.historyCount.suggestContinueAsNew': LONGEST_HISTORY,
    })
    lab.defer(() => temporal.stop())
    const services = await testServices({
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_TASK_QUEUE: `faults-r14-${process.pid}`,
    })
    lab.defer(() => services.close())
    const engine = await startEngine(services)
    lab.defer(() => engine.stop())
    const tenant = await makeTenant(services)
    const { id } = await publish(services, tenant, {
      steps: STEPS,
      edges: edges(STEPS.map((each) => each.id)),
    })
    const people = await Promise.all(Array.from({ length: runs }, () => tenant.subscribe()))
    const client = await services.temporal.client()
    const events = people.map((subscriberId) => ({ subscriberId, type: 'GO' }))
    await tenant.within((call) => recordEvents(call, events))

    const count = async (condition: string) =>
      (
        await row<{ count: number }>(
          services.orm.em.fork(),
          sql`select count(*)::int as count from automation_run where organization_id = ${tenant.id} and ${sql.raw(condition)}`,
        )
      )?.count ?? 0
    const isOver = async () => (await count('ended_at is not null')) === runs
    const done: Record<string, number> = {}
    while (!(await isOver())) {
      const place = Math.floor(lab.random() * runs)
      const subscriberId = people[place] ?? ''
      const ids = { workflowId: encodeId('wf', id), subscriberId: encodeId('sub', subscriberId) }
      const acts: Record<string, () => Promise<unknown>> = {
        events: () => tenant.within((call) => recordEvents(call, [{ subscriberId, type: 'PAID' }])),
        'fast-forwards': () => fastForward(services, tenant, ids),
        nudges: () =>
          client.workflow.getHandle(runWorkflowId(ids.workflowId, ids.subscriberId, 1)).signal('nudge'),
        pauses: () => pauseAndResume(tenant, id),
        removals: () => tenant.within((call) => removeFromWorkflow(call, ids)),
        cancellations: () =>
          client.workflow.getHandle(runWorkflowId(ids.workflowId, ids.subscriberId, 1)).cancel(),
      }
      // Every third run gets no ending action, so that its history becomes long.
      const most = place % 3 === 0 ? NAMES.length - ENDING : NAMES.length
      const name = NAMES[Math.floor(lab.random() * most)] ?? 'nudges'
      // An action on a finished run is refused, which is correct.
      const worked = await (acts[name]?.() ?? Promise.resolve()).then(
        () => true,
        () => false,
      )
      if (worked) done[name] = (done[name] ?? 0) + 1
    }
    lab.say(`${runs} runs are over`)

    const histories = new Map<string, Recorded>()
    let continued = 0
    const left = people.values()
    await atOnce(READERS, async () => {
      for (const subscriberId of left) {
        const workflowId = runWorkflowId(encodeId('wf', id), encodeId('sub', subscriberId), 1)
        let runId = (
          await client.workflow
            .getHandle(workflowId)
            .describe()
            .catch(() => null)
        )?.runId
        // Follows the chain of executions that continued as new, from the last to the first.
        while (runId) {
          const handle = client.workflow.getHandle(workflowId, runId)
          const ended = async () => (await handle.describe()).status.name !== 'RUNNING'
          await eventually('its end', ended, { withinMs: 120_000 })
          const history = await handle.fetchHistory()
          histories.set(`${workflowId}/${runId}`, { workflowId, events: toPlainEvents(history) })
          const begun = history.events?.[0]?.workflowExecutionStartedEventAttributes
          runId = begun?.continuedExecutionRunId || undefined
          if (runId) continued += 1
        }
      }
    })
    const recorded = await readHistories()
    const failed = [...(await replay(recorded)), ...(await replay(histories))]
    const completed = await count(`status = 'COMPLETED'`)
    const tagged = await row<{ count: number }>(
      services.orm.em.fork(),
      sql`select count(*)::int as count from subscriber_event
        where organization_id = ${tenant.id} and type = 'TAG_ADDED'`,
    )
    for (const [name, error] of failed) lab.say(`${name}: ${error.message}`)
    return {
      injected: done,
      seen: { runs, recorded: recorded.size, made: histories.size, 'continued as new': continued },
      claims: [
        is('histories that do not replay', failed.length, 0),
        is('some runs continued as new', String(continued > 0), 'true'),
        is(
          'runs without a history',
          people.length - new Set([...histories.values()].map(({ workflowId }) => workflowId)).size,
          0,
        ),
        is('last steps of runs that completed', tagged?.count ?? -1, completed),
      ],
    }
  },
})

async function fastForward(
  services: Services,
  tenant: Tenant,
  ids: { workflowId: string; subscriberId: string },
): Promise<void> {
  const { data, outside } = await tenant.within(async (call) => ({
    data: await requestFastForward(call, ids),
    outside: { organization: call.organization, actor: call.actor, services },
  }))
  await settleFastForward(outside, data)
}

async function pauseAndResume(tenant: Tenant, automationId: string): Promise<void> {
  for (const status of ['PAUSED', 'ACTIVE']) {
    await tenant.within(async (call) => {
      await execute(
        call.em,
        sql`update automation set status = ${status} where organization_id = ${tenant.id} and id = ${automationId}`,
      )
      if (status === 'ACTIVE') await resumeHeldRuns(call, automationId)
    })
  }
}
