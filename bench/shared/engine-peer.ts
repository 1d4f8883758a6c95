import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { Client, Connection } from '@temporalio/client'
import { NativeConnection, Worker } from '@temporalio/worker'
import { sql } from 'kysely'

import type { Step } from '../../schema/automation.ts'
import { type Child, startChild } from '../../scripts/services/child.ts'
import { freePort } from '../../scripts/services/ports.ts'
import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { array, execute, row } from '../../src/database.ts'
import { recordEvents } from '../../src/domain/events.ts'
import { encodeId, newId } from '../../src/ids.ts'
import { edges, publish, type Tenant } from '../../test/helpers/automation.ts'
import { median } from './report.ts'
import type { System } from './system.ts'

/**
 * Shared by the engine's benchmarks: a bare Temporal worker as the peer, and functions that enter many runs at once.
 */

const QUEUE = 'bare'
const STARTS = 100
const SAMPLE = 20
const ACTOR = { kind: 'system' as const, id: 'bench', name: 'bench' }

/** A worker process with bare workflows. `touched()` returns the number of activities it has run. */
export type Peer = {
  start(workflow: string, argument: number, count: number): Promise<void>
  touched(): Promise<number>
  stop(): Promise<void>
}

const { values } = parseArgs({
  options: { serve: { type: 'string' }, address: { type: 'string' } },
  strict: false,
})
if (typeof values['serve'] === 'string') await serve(Number(values['serve']), String(values['address']))

async function serve(port: number, address: string): Promise<void> {
  let touched = 0
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }),
    taskQueue: QUEUE,
    workflowsPath: join(import.meta.dirname, 'bare-workflows.ts'),
    activities: {
      touch() {
        touched += 1
        return Promise.resolve()
      },
    },
    maxCachedWorkflows: 200,
    maxConcurrentActivityTaskExecutions: 24,
  })
  createServer((_request, response) => response.end(String(touched))).listen(port, '127.0.0.1')
  await worker.run()
}

/** Starts the peer's process on the same Temporal server as the service. */
export async function startPeer(system: System): Promise<Peer> {
  const port = await freePort()
  const child: Child = await startChild({
    command: process.execPath,
    arguments: [import.meta.filename, '--serve', String(port), '--address', system.temporalAddress],
    identity: 'engine-peer.ts',
    pidFile: join(process.env['TMPDIR'] ?? '/tmp', `postloom-bench-peer-${process.pid}.pid`),
    output: (line) => line.includes('ERROR') && console.error(`peer: ${line}`),
    environment: process.env,
    directory: join(import.meta.dirname, '..', '..'),
  })
  const connection = await Connection.connect({ address: system.temporalAddress })
  const client = new Client({ connection })
  const touched = async () => Number(await (await fetch(`http://127.0.0.1:${port}/`)).text())
  await until('the peer', async () => (await touched().catch(() => -1)) >= 0)
  return {
    touched,
    async start(workflow, argument, count) {
      let next = 0
      const starter = async () => {
        while (next++ < count) {
          await client.workflow.start(workflow, {
            taskQueue: QUEUE,
            workflowId: `bare/${newId()}`,
            args: [argument],
          })
        }
      }
      await Promise.all(Array.from({ length: STARTS }, starter))
    },
    async stop() {
      await connection.close()
      await child.stop()
    },
  }
}

/** Returns the seconds that `count` bare workflows take until `perWorkflow` activities of each have run. */
export async function timeBare(
  peer: Peer,
  workflow: string,
  argument: number,
  count: number,
  perWorkflow: number,
) {
  const before = await peer.touched()
  const begun = performance.now()
  await peer.start(workflow, argument, count)
  await until('the bare workflows', async () => (await peer.touched()) >= before + count * perWorkflow)
  return (performance.now() - begun) / 1_000
}

/**
 * Returns the seconds until `count` workflows that do nothing have ended. This is the least that a server needs per
 * workflow, so no run can take less.
 */
export async function timeEmpty(system: System, peer: Peer, count: number): Promise<number> {
  const client = await system.services.temporal.client()
  const begun = performance.now()
  await peer.start('bareActivities', 0, count)
  const query = `WorkflowType='bareActivities' AND ExecutionStatus='Running'`
  await until('the empty workflows', async () => (await client.workflow.count(query)).count === 0)
  return (performance.now() - begun) / 1_000
}

/** Returns the visibility query for the workflows of an automation. */
export function ofAutomation(automationId: string, status: 'Running' | 'Completed'): string {
  return `AutomationId='${encodeId('wf', automationId)}' AND ExecutionStatus='${status}'`
}

/** Returns the visibility query for the finished bare workflows of a type. */
export function ofBare(type: string): string {
  return `WorkflowType='${type}' AND ExecutionStatus='Completed'`
}

/** Publishes a chain of steps with a new event type as its trigger. Returns the automation. */
export async function publishChain(
  system: System,
  steps: Step[],
): Promise<{ id: string; eventType: string }> {
  const eventType = `BENCH_${newId().replaceAll('-', '').toUpperCase()}`
  const start: Step = { id: 'start', type: 'TRIGGER', config: { type: 'EVENT', eventType }, onError: 'FAIL' }
  const graph = { steps: [start, ...steps], edges: edges(['start', ...steps.map(({ id }) => id)]) }
  const { id } = await publish(system.services, tenantOf(system), graph)
  return { id, eventType }
}

/** Creates subscribers and records the event for all of them in one unit of work, so that each one enters. */
export async function enterMany(system: System, eventType: string, count: number): Promise<void> {
  const ids = Array.from({ length: count }, newId)
  await execute(
    system.services.orm.em.fork(),
    sql`insert into subscriber (id, organization_id, email, status)
      select id, ${system.organizationId}, id || '@reader.example', 'SUBSCRIBED' from unnest(${array(ids, 'uuid')}) as given (id)`,
  )
  await unitOfWork(system.services, { organizationId: system.organizationId, actor: ACTOR }, (call) =>
    recordEvents(
      call,
      ids.map((subscriberId) => ({ subscriberId, type: eventType })),
    ),
  )
}

/** The cost of one workflow on the Temporal server according to its history; medians of a sample. */
export type RoundTrips = { 'round trips/run': number; 'events/run': number; 'bytes/run': number }

/**
 * Counts the start, a poll and a response for each workflow task and each activity, and each signal. A local activity
 * causes no round trip of its own. `query` is a visibility query that selects the workflows.
 */
export async function countRoundTrips(system: System, query: string): Promise<RoundTrips> {
  const client = await system.services.temporal.client()
  const found: RoundTrips[] = []
  for await (const { workflowId, runId } of client.workflow.list({ query, pageSize: SAMPLE })) {
    const handle = client.workflow.getHandle(workflowId, runId)
    const { events } = await handle.fetchHistory()
    const count = (kind: EventKind) => (events ?? []).filter((event) => event[kind]).length
    const tasks =
      count('workflowTaskCompletedEventAttributes') + count('activityTaskCompletedEventAttributes')
    found.push({
      'round trips/run': 1 + 2 * tasks + count('workflowExecutionSignaledEventAttributes'),
      'events/run': events?.length ?? 0,
      'bytes/run': (await handle.describe()).historySize ?? 0,
    })
    if (found.length === SAMPLE) break
  }
  const middle = (of: keyof RoundTrips) => median(found.map((each) => each[of]))
  return {
    'round trips/run': middle('round trips/run'),
    'events/run': middle('events/run'),
    'bytes/run': middle('bytes/run'),
  }
}

type EventKind =
  | 'workflowTaskCompletedEventAttributes'
  | 'activityTaskCompletedEventAttributes'
  | 'workflowExecutionSignaledEventAttributes'

/** Waits until `count` runs of an automation have `status`, checking every `everyMs`. */
export async function untilRuns(
  system: System,
  automationId: string,
  status: string,
  count: number,
  everyMs?: number,
): Promise<void> {
  const hasCome = async () => {
    const found = await row<{ count: number }>(
      system.services.orm.em.fork(),
      sql`select count(*)::int as count from automation_run where automation_id = ${automationId} and status = ${status}`,
    )
    return (found?.count ?? 0) >= count
  }
  await until(`${count} runs ${status}`, hasCome, everyMs)
}

/**
 * Throws unless every run (or every run with `status`) visited these steps exactly once without failing. Otherwise the
 * measured figure would be meaningless.
 */
export async function proveSteps(
  system: System,
  automationId: string,
  count: number,
  steps: number,
  status: string | null = null,
): Promise<void> {
  const found = await row<{ runs: number; visits: number }>(
    system.services.orm.em.fork(),
    sql`select count(distinct run.id)::int as runs, count(step.visit)::int as visits from automation_run run
      join run_step step on step.run_id = run.id where run.automation_id = ${automationId} and run.status <> 'FAILED'
        and run.status = coalesce(${status}, run.status)`,
  )
  if (found?.runs === count && found.visits === count * steps) return
  throw new Error(`expected ${count} runs of ${steps} steps, found ${JSON.stringify(found)}`)
}

async function until(awaited: string, ask: () => Promise<boolean>, everyMs = 50): Promise<void> {
  const deadline = Date.now() + 600_000
  while (!(await ask())) {
    if (Date.now() > deadline) throw new Error(`waited ten minutes in vain for ${awaited}`)
    await sleep(everyMs)
  }
}

function tenantOf(system: System): Tenant {
  return {
    id: system.organizationId,
    senderId: '',
    domain: '',
    within: (work) =>
      unitOfWork(system.services, { organizationId: system.organizationId, actor: ACTOR }, work),
    subscribe: () => Promise.reject(new Error('use enterMany')),
  }
}
