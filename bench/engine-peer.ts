import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { Client, Connection } from '@temporalio/client'
import { NativeConnection, Worker } from '@temporalio/worker'
import { sql } from 'kysely'

import type { Step } from '../schema/automation.ts'
import { type Child, startChild } from '../scripts/services/child.ts'
import { freePort } from '../scripts/services/ports.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { array, execute, row } from '../src/database.ts'
import { recordEvents } from '../src/domain/events.ts'
import { encodeId, newId } from '../src/ids.ts'
import { edges, publish, type Tenant } from '../test/helpers/automation.ts'
import { median } from './report.ts'
import type { System } from './system.ts'

/** What the engine's benchmarks share: a bare Temporal worker as the peer, and ways to enter many runs at once. */

const QUEUE = 'bare'
const STARTS = 100
const SAMPLE = 20
const ACTOR = { kind: 'system' as const, id: 'bench', name: 'bench' }

/** A worker process with bare workflows; `touched()` counts the activities it has run. */
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

/** Starts the peer's process beside the service, on the same Temporal server. */
export async function startPeer(system: System): Promise<Peer> {
  const port = await freePort()
  const child: Child = await startChild({
    command: process.execPath,
    arguments: [import.meta.filename, '--serve', String(port), '--address', system.temporalAddress],
    identity: 'engine-peer.ts',
    pidFile: join(process.env['TMPDIR'] ?? '/tmp', `postloom-bench-peer-${process.pid}.pid`),
    output: (line) => line.includes('ERROR') && console.error(`peer: ${line}`),
    environment: process.env,
    directory: join(import.meta.dirname, '..'),
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

/** The seconds that bare workflows take until `perWorkflow` activities of each have run. */
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
 * The seconds until as many workflows have ended that do nothing: what a server spends on a workflow whatever it does, so
 * that no run can cost less.
 */
export async function timeEmpty(system: System, peer: Peer, count: number): Promise<number> {
  const client = await system.services.temporal.client()
  const begun = performance.now()
  await peer.start('bareActivities', 0, count)
  const query = `WorkflowType='bareActivities' AND ExecutionStatus='Running'`
  await until('the empty workflows', async () => (await client.workflow.count(query)).count === 0)
  return (performance.now() - begun) / 1_000
}

/** The workflows of an automation, as the server lists them. */
export function ofAutomation(automationId: string, status: 'Running' | 'Completed'): string {
  return `AutomationId='${encodeId('wf', automationId)}' AND ExecutionStatus='${status}'`
}

/** The finished bare workflows of a type, as the server lists them. */
export function ofBare(type: string): string {
  return `WorkflowType='${type}' AND ExecutionStatus='Completed'`
}

/** Publishes a chain of steps behind an event of its own and answers the automation. */
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

/** Records the event for new subscribers in one unit of work: each of them enters. */
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

/** What one workflow costs the Temporal server, as its history tells; medians of a few. */
export type RoundTrips = { 'round trips/run': number; 'events/run': number; 'bytes/run': number }

/**
 * The start, a poll and an answer for each workflow task, the same for each activity, and each signal: a local activity
 * costs none of its own. `query` says which workflows, as the server lists them.
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

/** Waits until this many runs of an automation have a status, and looks `everyMs`. */
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
 * Every run, or those of a status, took these steps exactly once, none failed: a figure of wrong work is worth nothing.
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
