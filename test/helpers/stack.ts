import type { EntityManager } from '../../src/database.ts'
import { startLanes } from '../../src/delivery/lanes.ts'
import { startEngine } from '../../worker/workers.ts'
import { startApi, type TestApi } from './api.ts'
import { QUICK } from './mailroom.ts'
import { type Sink, startSmtpSink } from './smtp-sink.ts'

/** A part of the service that a test can stop and start again. */
export type Part = { start(): Promise<void>; stop(): Promise<void> }

/** The API on its own database, a relay that keeps the mail, lanes with short times, and optionally an engine. */
export type Stack = {
  api: TestApi
  sink: Sink
  lanes: Part
  engine: Part
  em(): EntityManager
  close(): Promise<void>
}

/**
 * Starts a stack, with an engine if `queue` is given. `queue` keeps its task queues apart from those of other test
 * files.
 */
export async function startStack(
  options: { queue?: string; env?: Record<string, string> } = {},
): Promise<Stack> {
  const { queue, env } = options
  const sink = await startSmtpSink()
  const api = await startApi({
    RELAY_URL: sink.url,
    ...(queue && { TEMPORAL_TASK_QUEUE: `${queue}-${process.pid}` }),
    ...env,
  })
  const lanes = part(() => startLanes(api.services, { workerName: 'test', lane: QUICK, reviveMs: 50 }))
  const engine = part(() => startEngine(api.services))
  await lanes.start()
  if (queue) await engine.start()
  return {
    api,
    sink,
    lanes,
    engine,
    em: () => api.services.orm.em.fork(),
    async close() {
      await engine.stop()
      await lanes.stop()
      await api.close()
      await sink.close()
    },
  }
}

function part(begin: () => Promise<{ stop(): Promise<unknown> }>): Part {
  let running: { stop(): Promise<unknown> } | undefined
  return {
    async start() {
      running = await begin()
    },
    async stop() {
      await running?.stop()
      running = undefined
    },
  }
}
