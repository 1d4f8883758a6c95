import { setTimeout as sleep } from 'node:timers/promises'

import { DefaultLogger, NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker'

import { listenForRings } from '../src/ports/doorbell.ts'
import type { Services } from '../src/services.ts'
import { type QueueKind, taskQueue } from '../temporal/contract.ts'
import { createIntakeActivities } from './activities/automation-intake.ts'
import { createRunActivities } from './activities/automation-run.ts'
import { createCampaignActivities } from './activities/campaign-send.ts'
import { createDomainActivities } from './activities/domain-verification.ts'
import { createSegmentActivities } from './activities/segment-refresh.ts'
import { createImportActivities } from './activities/subscriber-import.ts'
import { createFiringActivities } from './activities/trigger-firing.ts'
import { workflowBundle } from './bundle.ts'
import { type OutboxRelay, startOutboxRelay } from './outbox.ts'
import { startReconciler } from './reconciler.ts'
import { watchSearchAttributes } from './search-attributes.ts'
import { startWebhookSteps } from './webhook-steps.ts'

/** The engine of automations and background work in this process. */
export type Engine = {
  /** Returns whether both Temporal workers poll their queues. */
  isRunning(): boolean
  /** Returns the search attributes that the server does not know; null before it was asked. */
  missingAttributes(): string[] | null
  /** Resolves when both workers poll for the first time. */
  ready: Promise<unknown>
  relay: OutboxRelay
  stop(): Promise<void>
}

const RECONNECT_MS = 2_000
/** How long before the end of the grace period running activities are cancelled, and the wait for Temporal ends. */
const CANCELED_BEFORE_MS = 3_000
const ABANDONED_BEFORE_MS = 1_000

/** One worker for each queue, so that a long import in the background never makes a run wait. */
const WORKERS = {
  runs: { maxCachedWorkflows: 200, maxConcurrentLocalActivityExecutions: 24 },
  background: { maxCachedWorkflows: 20, maxConcurrentActivityTaskExecutions: 32 },
} as const satisfies Record<QueueKind, Partial<WorkerOptions>>

const ACTIVITIES = {
  runs: createRunActivities,
  background: (services: Services) => ({
    ...createCampaignActivities(services),
    ...createIntakeActivities(services),
    ...createImportActivities(services),
    ...createSegmentActivities(services),
    ...createDomainActivities(services),
    ...createFiringActivities(services),
  }),
} as const satisfies Record<QueueKind, (services: Services) => object>

/**
 * Starts the outbox relay, the Temporal workers, the reconciler and the requests of WEBHOOK steps. While Temporal is
 * down, they keep trying.
 */
export async function startEngine(services: Services, { graceMs = 4_000 } = {}): Promise<Engine> {
  installLogger(services)
  const attributes = watchSearchAttributes(services.config.temporal.namespace)
  const relay = startOutboxRelay(services, { knowsAttributes: (client) => attributes.known(client) })
  const rings = await listenForRings(
    services.config.databaseUrl,
    (channel) => {
      if (channel === 'outbox') relay.ring()
    },
    services.log,
  )
  const workers = (['runs', 'background'] as const).map((kind) => superviseWorker(services, kind, graceMs))
  const reconciler = startReconciler(services)
  const webhookSteps = startWebhookSteps(services, graceMs)
  return {
    isRunning: () => workers.every((worker) => worker.isRunning()),
    missingAttributes: () => attributes.missing(),
    ready: Promise.all(workers.map(({ ready }) => ready)),
    relay,
    async stop() {
      await rings.close()
      await Promise.all([
        relay.stop(),
        reconciler.stop(),
        webhookSteps.stop(),
        ...workers.map((worker) => worker.stop()),
      ])
    },
  }
}

type Supervised = { isRunning(): boolean; ready: Promise<void>; stop(): Promise<void> }

/** Keeps one Temporal worker running: connects, works, and starts over when the server went away. */
function superviseWorker(services: Services, kind: QueueKind, graceMs: number): Supervised {
  const { promise: ready, resolve: becomeReady } = Promise.withResolvers<void>()
  const halt = new AbortController()
  let current: Worker | undefined

  async function session(): Promise<void> {
    const connection = await connect(services)
    try {
      const worker = await createWorker(services, connection, kind, graceMs)
      current = worker
      const running = worker.run()
      // A worker releases its connection only after it ran, so a stop during the start still runs it and shuts it down.
      if (halt.signal.aborted) worker.shutdown()
      becomeReady()
      await running
    } finally {
      current = undefined
      await connection.close()
    }
  }

  async function work(): Promise<void> {
    while (!halt.signal.aborted) {
      try {
        await session()
      } catch (error) {
        if (halt.signal.aborted) return
        services.log.warn({ err: error, kind }, 'the Temporal worker cannot run; trying again')
        await sleep(RECONNECT_MS, undefined, { signal: halt.signal }).catch(() => undefined)
      }
    }
  }

  const working = work()
  return {
    isRunning: () => current?.getState() === 'RUNNING',
    ready,
    async stop() {
      halt.abort()
      if (current?.getState() === 'RUNNING') current.shutdown()
      // Temporal's core waits for a server that does not answer, both to connect and to shut down, and cannot be told
      // not to. Its work is safe in rows and leases, so it is abandoned in time for the process to end in order.
      await Promise.race([working, sleep(graceMs - ABANDONED_BEFORE_MS, undefined, { ref: false })])
    },
  }
}

async function connect({ config }: Services): Promise<NativeConnection> {
  const { address, tls, apiKey } = config.temporal
  return await NativeConnection.connect({
    address,
    ...(tls && { tls: true }),
    ...(apiKey !== undefined && { apiKey }),
  })
}

async function createWorker(
  services: Services,
  connection: NativeConnection,
  kind: QueueKind,
  graceMs: number,
): Promise<Worker> {
  const { config } = services
  return await Worker.create({
    connection,
    namespace: config.temporal.namespace,
    taskQueue: taskQueue(config.temporal.taskQueue, kind),
    workflowBundle: await workflowBundle(),
    activities: ACTIVITIES[kind](services),
    ...WORKERS[kind],
    // Workflows only wait and coordinate: one thread is enough, and each more costs a heap of its own.
    workflowThreadPoolSize: 1,
    shutdownGraceTime: graceMs - CANCELED_BEFORE_MS,
  })
}

let isLoggerInstalled = false

/** Sends Temporal's own messages to our log. A process has only one Temporal runtime. */
function installLogger({ log }: Services): void {
  if (isLoggerInstalled) return
  isLoggerInstalled = true
  const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('WARN', ({ level, message, meta }) =>
      log[levels[level]]({ temporal: meta }, message),
    ),
  })
}
