import test from 'ava'
import { sql } from 'kysely'

import type { Settings, Step } from '../schema/automation.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { advanceRun } from '../src/domain/automations/runs/advance.ts'
import { findOverdueRuns, repairRun } from '../src/domain/automations/runs/overdue.ts'
import { decodeId, encodeId } from '../src/ids.ts'
import { startApi, type TestApi } from './helpers/api.ts'
import { edges, makeTenant, publish, runsOf, step, type Tenant } from './helpers/automation.ts'
import { eventually } from './helpers/eventually.ts'

/** Calls and background work that meet in the database. Serial tests, because each counts who waits for a lock. */
let api: TestApi
let tenant: Tenant

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `concurrency-${process.pid}`, LANE_RATE_TRANSACTIONAL: '40' })
  tenant = await makeTenant(api.services)
})
test.after.always(() => api?.close())

const em = () => api.services.orm.em.fork()

const START = step('start', 'TRIGGER', { type: 'MANUAL' })
const LONG_WAIT = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })

/** Publishes these steps after START, and lets a subscriber in, whose run does nothing before `turn`. */
async function begun(
  steps: readonly Step[],
  settings: Partial<Settings> = {},
  fields: Record<string, unknown> = {},
) {
  const all = [START, ...steps]
  const graph = { steps: all, edges: edges(all.map(({ id }) => id)), settings }
  const automation = await publish(api.services, tenant, graph)
  const subscriberId = await tenant.subscribe(undefined, fields)
  const run = await tenant.within((call) =>
    enterByHand(call, {
      workflowId: encodeId('wf', automation.id),
      subscriberId: encodeId('sub', subscriberId),
    }),
  )
  return {
    subscriberId,
    runId: decodeId('run', run.id),
    stands: async () => (await runsOf(api.services, tenant, automation.id))[0],
  }
}

async function turn(runId: string): Promise<void> {
  await tenant.within((call) => advanceRun(call, runId, FIRST))
}

/** The Temporal workflow that asks for the turns. */
const FIRST = { execution: 'first', attempt: 'first' }

test.serial('a repair leaves a run alone that has come to another wait since it was found', async (t) => {
  const { runId, stands } = await begun([LONG_WAIT])
  const overdue = await eventually('the run to be overdue', async () =>
    (await findOverdueRuns(em(), 0, 100)).find(({ id }) => id === runId),
  )
  await turn(runId)
  await tenant.within((call) => repairRun(call, overdue, { state: 'MISSING', temporalRunId: null }))
  await turn(runId)
  t.like(await stands(), { status: 'WAITING', stepId: 'pause' })
})
