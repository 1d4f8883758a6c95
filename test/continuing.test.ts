import { type WorkflowHandle, type WorkflowUpdateHandle, WorkflowUpdateStage } from '@temporalio/client'
import test, { type ExecutionContext } from 'ava'
import { sql } from 'kysely'

import { SHORT_HISTORY } from '../scripts/scenes/continued.ts'
import { register } from '../scripts/scenes/domain.ts'
import type { Temporal } from '../scripts/services/temporal.ts'
import { row, rows } from '../src/database.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { decodeId, encodeId } from '../src/ids.ts'
import {
  AUTOMATION_RUN,
  CHECK_NOW,
  type DomainChecked,
  domainWorkflowId,
  FAST_FORWARD,
  type FastForward,
  type FastForwarded,
  NUDGE,
  runWorkflowId,
  taskQueue,
} from '../temporal/contract.ts'
import { startEngine } from '../worker/workers.ts'
import { makeTenant, publish, runsOf, step, type Tenant } from './helpers/automation.ts'
import { testServices, type TestServices } from './helpers/database.ts'
import { chain } from './helpers/engine.ts'
import { eventually } from './helpers/eventually.ts'
import { type NameServer, startNameServer } from './helpers/name-server.ts'
import { scratchDirectory, startOwnTemporal } from './helpers/services.ts'

let temporal: Temporal
let names: NameServer
let services: TestServices
let tenant: Tenant

test.before(async () => {
  temporal = await startOwnTemporal(scratchDirectory('continuing'), 0, SHORT_HISTORY)
  names = await startNameServer()
  services = await testServices({
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_TASK_QUEUE: `continuing-${process.pid}`,
    DNS_SERVERS: names.address,
  })
  tenant = await makeTenant(services)
})
test.after.always(async () => {
  await services?.close()
  await names?.close()
  await temporal?.stop()
})

/** Runs `work` while a workflow's turn waits for the lock on a row, and then releases the lock. */
async function duringTurn<Result>(
  table: 'automation_run' | 'domain',
  id: string,
  begin: () => Promise<unknown>,
  work: () => Promise<Result>,
): Promise<Result> {
  return await services.orm.em.fork().transactional(async (em) => {
    await rows(em, sql`select from ${sql.table(table)} where id = ${id} for update`)
    await begin()
    await eventually('the turn to wait for the row', () =>
      row(
        services.orm.em.fork(),
        sql`select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      ),
    )
    return await work()
  })
}

/** Returns the answer to an update. The deadline fails the test if the workflow waits for itself. */
async function answerTo<Answer>(question: WorkflowUpdateHandle<Answer>): Promise<Answer> {
  const client = await services.temporal.client()
  return await client.withDeadline(Date.now() + 60_000, () => question.result())
}

async function untilContinued(handle: WorkflowHandle, firstRunId: string): Promise<void> {
  await eventually('it to continue as new', async () => (await handle.describe()).runId !== firstRunId)
}

test.serial('an update in the last turn before a run continues as new is answered first', async (t) => {
  const { id } = await publish(services, tenant, chain([step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })]))
  const ids = { automationId: encodeId('wf', id), subscriberId: encodeId('sub', await tenant.subscribe()) }
  const { id: runId } = await tenant.within((call) =>
    enterByHand(call, { ...ids, workflowId: ids.automationId }),
  )
  const client = await services.temporal.client()
  const workflowId = runWorkflowId(ids.automationId, ids.subscriberId, 1)
  // Started as the relay does, but with a short task timeout, so that updates arrive in the middle of a turn.
  const { firstExecutionRunId } = await client.workflow.start(AUTOMATION_RUN, {
    workflowId,
    taskQueue: taskQueue(services.config.temporal.taskQueue, 'runs'),
    args: [{ ...ids, organizationId: encodeId('org', tenant.id), runId, searchable: true }],
    workflowTaskTimeout: '2 seconds',
  })
  const engine = await startEngine(services)
  t.teardown(() => engine.stop())
  await eventually('the run to wait', async () => {
    const [run] = await runsOf(services, tenant, id)
    return run?.status === 'WAITING'
  })
  const handle = client.workflow.getHandle(workflowId)
  const question = await duringTurn(
    'automation_run',
    decodeId('run', runId),
    () => handle.signal(NUDGE),
    () =>
      handle.startUpdate<FastForwarded, [FastForward]>(FAST_FORWARD, {
        args: [{ stepId: 'pause', visit: 2 }],
        waitForStage: WorkflowUpdateStage.ACCEPTED,
      }),
  )
  t.deepEqual(await answerTo(question), { stepId: 'pause', visit: 2, state: 'WAITING' })
  await untilContinued(handle, firstExecutionRunId)
})

/** Registers a domain and returns its running verification. */
async function verifiedDomain(t: ExecutionContext) {
  const engine = await startEngine(services)
  t.teardown(() => engine.stop())
  const { id } = await register({ tenant })
  const client = await services.temporal.client()
  const handle = client.workflow.getHandle(domainWorkflowId(id))
  const { runId } = await eventually('its workflow', () => handle.describe())
  return { id, client, handle, runId }
}

test.serial('an update in the last check before a domain continues as new is answered first', async (t) => {
  const { id, handle, runId } = await verifiedDomain(t)
  const ask = () =>
    handle.startUpdate<DomainChecked, []>(CHECK_NOW, { waitForStage: WorkflowUpdateStage.ACCEPTED })
  const question = await duringTurn('domain', decodeId('dom', id), ask, ask)
  t.is((await answerTo(question)).status, 'VERIFYING')
  await untilContinued(handle, runId)
})

test.serial(
  'a domain that gets a signal in the last check before it continues as new checks again first',
  async (t) => {
    const { id, client, handle, runId } = await verifiedDomain(t)
    const signal = () => handle.signal(NUDGE)
    await duringTurn('domain', decodeId('dom', id), signal, signal)
    await untilContinued(handle, runId)
    const { events } = await client.workflow.getHandle(domainWorkflowId(id), runId).fetchHistory()
    const story = (events ?? []).flatMap((event) => {
      if (event.workflowExecutionSignaledEventAttributes) return ['signal']
      return event.activityTaskScheduledEventAttributes ? ['look'] : []
    })
    t.deepEqual(story, ['signal', 'look', 'signal', 'look'])
  },
)
